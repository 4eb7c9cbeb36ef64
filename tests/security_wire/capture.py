# SPDX-License-Identifier: Apache-2.0
"""capture.py - the bytes that go over the loopback to and from some ports, as a stranger with a tap reads them.

A packet socket of the kernel is enough, and needs CAP_NET_RAW. The kernel filters: bytes of other tests
cannot fill the buffer."""
import ctypes
import socket
import struct
import threading

from cases import Failed, Skipped

IPV4, TCP, FIN, SYN = 0x0800, 6, 1, 2
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_ATTACH_FILTER, SO_RCVBUFFORCE = 26, 33
LOAD_HALF, JUMP_EQUAL, RETURN = 0x28, 0x15, 0x06
FROM_PORT, TO_PORT = 20, 22  # behind a head of IP without options, as the loopback has it
ROOM = 64 << 20


def port_filter(ports):
    """A classic BPF program that lets packets from or to these ports through."""
    code = []
    for at in (FROM_PORT, TO_PORT):
        code.append((LOAD_HALF, 0, 0, at))
        code += [(JUMP_EQUAL, 0, 0, port) for port in ports]
    for i, (op, _, _, value) in enumerate(code):
        if op == JUMP_EQUAL:
            code[i] = (op, len(code) - i, 0, value)  # to the second return
    code += [(RETURN, 0, 0, 0), (RETURN, 0, 0, 0xffffffff)]
    return ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code)), len(code)


class Capture:
    """From its begin to its end. `streams` then has the bytes of each connection and direction."""

    def __init__(self, *ports):
        self.ports, self.packets, self.streams = ports, [], []
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        except PermissionError:
            raise Skipped("packet sockets are not permitted here") from None
        program, n = port_filter(ports)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                               struct.pack("HL", n, ctypes.addressof(program)))
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        except PermissionError:
            pass  # drops are noticed
        self.socket.bind(("lo", IPV4))
        self.socket.settimeout(0.05)
        self.over = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)

    def read(self):
        """Until nothing is left after the end."""
        while True:
            try:
                packet, (_, _, kind, *_) = self.socket.recvfrom(1 << 17)
                if kind != socket.PACKET_OUTGOING:  # each packet of the loopback is seen twice
                    self.packets.append(packet)
            except TimeoutError:
                if self.over.is_set():
                    return

    def __enter__(self):
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.reader.join(60)
        lost = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self.socket.close()
        if lost:
            raise Failed(f"{lost} packets were not captured")
        self.streams = list(assemble(self.packets).values())

    def all(self):
        return b"".join(self.streams)


def assemble(packets):
    """The bytes of each direction of each connection, by its addresses and ports."""
    parts = {}
    for packet in packets:
        head, size = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0]
        if packet[9] != TCP or size > len(packet):
            raise Failed(f"a packet of protocol {packet[9]} with {len(packet)} bytes of {size}")
        ports, number = packet[head:head + 4], struct.unpack_from("!I", packet, head + 4)[0]
        data = packet[head + (packet[head + 12] >> 4) * 4:size]
        stream = parts.setdefault((packet[12:20], ports), {"first": None, "at": {}})
        if packet[head + 13] & SYN:
            stream["first"] = number + 1
        if data:
            stream["at"].setdefault(number, data)
    return {key: joined(one["first"], one["at"]) for key, one in parts.items() if one["at"]}


def joined(first, at):
    """The pieces in their order, without a hole and without doubles."""
    if first is None:
        raise Failed("the begin of a connection was not captured")
    whole = bytearray()
    for number, data in sorted(at.items(), key=lambda one: (one[0] - first) % (1 << 32)):
        behind = (number - first) % (1 << 32)
        if behind > len(whole):
            raise Failed(f"{behind - len(whole)} bytes of a connection were not captured")
        whole += data[len(whole) - behind:]
    return bytes(whole)
