# SPDX-License-Identifier: Apache-2.0
"""wire.py DELAY_MS LOSS SEED PORT... - a switch with bad cables.

Carries Ethernet frames between the given interfaces, each DELAY_MS later, and loses a part LOSS
(0.01) of them, by a generator with SEED. It does what tc's netem does, which many kernels lack.
Says "ready", works until its stdin ends, and says how many frames it carried and lost.
"""
import array
import fcntl
import heapq
import random
import select
import socket
import struct
import sys
import time

SIOCETHTOOL = 0x8946
SET_TX_CHECKSUM, SET_TSO, SET_GSO = 0x17, 0x1F, 0x24
FRAME_MAX = 65536


def switch_off(port, command):
    """The interface's peer must send whole frames of their final size: what it leaves to the
    hardware nobody does here."""
    value = array.array("B", struct.pack("II", command, 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sP", port.encode(), value.buffer_info()[0])
        fcntl.ioctl(s, SIOCETHTOOL, request)


def open_port(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    s.bind((name, 0))
    s.setblocking(False)
    return s


def main():
    delay_s, loss, seed = float(sys.argv[1]) / 1e3, float(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    ports = [open_port(name) for name in sys.argv[4:]]
    where, queue, order, lost = {}, [], 0, 0
    poll = select.poll()
    poll.register(sys.stdin, select.POLLIN | select.POLLHUP)
    for p in ports:
        poll.register(p, select.POLLIN)
    by_fd = {p.fileno(): p for p in ports}
    print("ready", flush=True)
    while True:
        left = max(queue[0][0] - time.monotonic(), 0) if queue else 3600
        for fd, _ in poll.poll(left * 1e3):
            if fd == sys.stdin.fileno():
                print(order, lost)
                return
            for _ in range(256):
                try:
                    frame, (_, _, kind, *_) = by_fd[fd].recvfrom(FRAME_MAX)
                except BlockingIOError:
                    break
                if kind == socket.PACKET_OUTGOING:
                    continue
                where[frame[6:12]] = by_fd[fd]
                if chance.random() < loss:
                    lost += 1
                    continue
                order += 1
                heapq.heappush(queue, (time.monotonic() + delay_s, order, fd, frame))
        now = time.monotonic()
        while queue and queue[0][0] <= now:
            _, _, fd, frame = heapq.heappop(queue)
            to = where.get(frame[:6])
            for p in ([to] if to else ports):
                if p is by_fd[fd]:
                    continue
                try:
                    p.send(frame)
                except OSError:  # its queue is full, or the cable out: one more that is lost
                    lost += 1


if len(sys.argv) == 3 and sys.argv[1] == "--plain":
    for what in (SET_TX_CHECKSUM, SET_TSO, SET_GSO):
        switch_off(sys.argv[2], what)
else:
    main()
