# SPDX-License-Identifier: Apache-2.0
"""ports.py - ports for servers that a test starts later."""
import random
import socket

FIRST = 10000
TAKEN = []  # sockets that keep the names of our ports until this process ends


def below_the_kernels():
    """Ports that the kernel chooses for no socket, so that none of them is that of a dead worker, whose peers
    dial it again."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        low, high = (int(n) for n in f.read().split())
    return range(FIRST, low) if low - FIRST >= 1000 else range(high + 1, 65536)


def reserve(port):
    """Returns true if no socket has the port and no other test has reserved it."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0tenrec-test-port-{port}")
        with socket.socket() as s:
            s.bind(("0.0.0.0", port))
    except OSError:
        name.close()
        return False
    TAKEN.append(name)
    return True


def free_port():
    ports = below_the_kernels()
    for port in random.sample(ports, min(len(ports), 1000)):
        if reserve(port):
            return port
    raise OSError(f"no free port among 1000 of {ports[0]} to {ports[-1]}")
