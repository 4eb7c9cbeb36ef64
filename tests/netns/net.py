# SPDX-License-Identifier: Apache-2.0
"""net.py - three hosts on one machine, in network namespaces.

    host0 (eth0, eth1)   host1 (eth0, eth1)   host2 (eth0, eth1)
        |     |              |     |              |     |
      bridge "lan": 10.77.0.0/24, fd77::/64, one port for each host
            bridge "slow": 10.78.0.0/24, likewise

All of it lives in namespaces of this process (network, mounts, processes), which `enter`
makes by unshare: no name of it is seen outside, the interfaces and addresses of the machine are
never touched, and the kernel removes all when the process ends, also by SIGKILL.
"""
import os
import random
import shutil
import subprocess
import sys

INSIDE = "TENREC_TEST_INSIDE_NET"
HOSTS = range(3)
RUN = "/run/netns"


def skip(names, why):
    print(f"1..{len(names)}")
    for i, name in enumerate(names, 1):
        print(f"ok {i} - {name} # SKIP {why}")
    sys.exit(0)


def unshare():
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return command if os.geteuid() == 0 else command + ["--map-root-user"]


def enter(names):
    """Goes on in namespaces of its own, or skips all cases."""
    if os.environ.get(INSIDE):
        return
    for tool in ("unshare", "nsenter", "ip"):
        if not shutil.which(tool):
            skip(names, f"'{tool}' is not installed")
    probe = subprocess.run([*unshare(), "sh", "-c",
                            "mount -t tmpfs none /run && mkdir /run/netns && ip netns add probe && "
                            "ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2"],
                           capture_output=True, text=True, check=False)
    if probe.returncode:
        skip(names, "network namespaces are not permitted here: " +
             " ".join(probe.stderr.split())[:120])
    sys.stdout.flush()
    os.execvpe("unshare", [*unshare(), sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def ip(*args, on=None):
    where = ["-n", f"host{on}"] if on is not None else []
    subprocess.run(["ip", *where, *[str(a) for a in args]], check=True, stdin=subprocess.DEVNULL,
                   capture_output=True, text=True)


def build():
    """Makes the hosts. Their names resolve as on Debian: to 127.0.1.1 on the host itself."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    os.makedirs(RUN)
    ip("link", "set", "lo", "up")
    for bridge in ("lan", "slow"):
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "set", bridge, "up")
    for h in HOSTS:
        ip("netns", "add", f"host{h}")
        ip("link", "set", "lo", "up", on=h)
        for eth, bridge, net in ((0, "lan", 77), (1, "slow", 78)):
            ip("link", "add", f"{bridge}{h}", "type", "veth", "peer", "name", f"eth{eth}",
               "netns", f"host{h}")
            ip("link", "set", f"{bridge}{h}", "master", bridge, "up")
            ip("address", "add", f"10.{net}.0.{h + 1}/24", "dev", f"eth{eth}", on=h)
            ip("address", "add", f"fd{net}::{h + 1}/64", "dev", f"eth{eth}", "nodad", on=h)
            ip("link", "set", f"eth{eth}", "up", on=h)
        with open(f"/run/hosts{h}", "w", encoding="ascii") as f:
            f.write("127.0.0.1 localhost\n" + "".join(
                f"{'127.0.1.1' if other == h else address(other)} host{other}\n"
                for other in HOSTS))


def address(h, net=77, v6=False):
    return f"fd{net}::{h + 1}" if v6 else f"10.{net}.0.{h + 1}"


def on(h, *, container=False, hosts_file=False):
    """What stands in front of a command that must run on host h.

    container: with processes, shared memory and mounts of its own, as a container that shares
    its host's network. hosts_file: names resolve as on that host."""
    command = ["nsenter", f"--net={RUN}/host{h}"]
    if container:
        command += ["unshare", "--pid", "--ipc", "--mount", "--fork", "--kill-child", "--mount-proc"]
    if hosts_file:
        command += ["unshare", "--mount", "sh", "-c",
                    f'mount --bind /run/hosts{h} /etc/hosts && exec "$@"', "sh"]
    return command


def cut(h):
    """Drops all packets to and from host h, without an error."""
    for bridge in ("lan", "slow"):
        ip("link", "set", f"{bridge}{h}", "nomaster")


def heal(h):
    for bridge in ("lan", "slow"):
        ip("link", "set", f"{bridge}{h}", "master", bridge, "up")


def unplug(h):
    """The host sees that its cables are out."""
    for bridge in ("lan", "slow"):
        ip("link", "set", f"{bridge}{h}", "down")


class Weather:
    """A bad line instead of the bridge "lan": a program (wire.py) carries its packets, later and
    not all of them."""

    def __init__(self, *, delay_ms, loss, seed=None):
        seed = random.randrange(1 << 30) if seed is None else seed
        self.what = f"{loss:.1%} loss, {delay_ms} ms delay, seed {seed}"
        for h in HOSTS:
            ip("link", "set", f"lan{h}", "nomaster")
        wire = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire.py")
        for h in HOSTS:
            subprocess.run([*on(h), sys.executable, wire, "--plain", "eth0"], check=True)
        self.process = subprocess.Popen([sys.executable, wire, str(delay_ms), str(loss), str(seed),
                                         *[f"lan{h}" for h in HOSTS]], stdout=subprocess.PIPE,
                                        stdin=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("wire.py does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        out = self.process.stdout.read()
        self.process.wait(timeout=30)
        self.process.stdout.close()
        for h in HOSTS:
            heal(h)
        self.carried, self.lost = (int(n) for n in out.split())
