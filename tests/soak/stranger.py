# SPDX-License-Identifier: Apache-2.0
"""stranger.py SEED - a hostile process that reaches the ports of a soak's workers and store.

Reads lines on stdin until it ends: "attack STORE-PORT WORKER-PORT ..." says where the store and the
workers listen; "rest" closes all connections until the next line, and is answered with one.

Attacks: connections that say nothing or nonsense, greetings that claim to be a member, control
messages, calls whose answers are not read, and requests to the store that never become whole. It
never writes a key of the store: the store believes every process that reaches it.

The numbers of attacks are the last line on stdout.
"""
import collections
import random
import select
import socket
import struct
import sys

HELD_MAX = 120        # connections at once, far less than a worker has descriptors
UNREAD_CALLS = 400
EMPTY_LIST = b"\x80\x02ctorch.jit._pickle\nbuild_tensorlist\nq\0(](etR."
VIEW, CANCEL, USER_DELETE, CHILD_ACCEPT, FETCH, CALL, RET = 0x184, 0x181, 0x10B, 0x10D, 0x108, 0x102, 0x203


def text(data):
    return b"\xbd" + uint(len(data)) + data


def uint(v):
    if v < 0x80:
        return bytes([v])
    return b"\x80" + bytes([v]) if v < 0x100 else b"\x81" + struct.pack("<H", v)


def frame(body):
    return struct.pack("<Q", len(body)) + body


def message(kind, number, payload):
    """One message without tensors, as docs/wire.md has it."""
    parts = [struct.pack("<i", kind), struct.pack("<q", number), payload, EMPTY_LIST]
    head = b"\xb9\x03\xbd\0\xba\x04" + b"".join(b"\xb9\x02" + uint(len(p)) + b"\xbd\0" for p in parts) + b"\xba\0"
    return frame(head) + b"".join(frame(p) for p in parts)


def numbers(*values):
    """A CBOR array of integers behind the tag that begins each payload."""
    out = b"\xd9\xd9\xf7" + bytes([0x80 + len(values)])
    return out + b"".join(b"\x1b" + struct.pack(">Q", v) for v in values)


def call(name):
    return b"\xd9\xd9\xf7\x84" + bytes([0x60 + len(name)]) + name + b"\x80\xf6\xa0"


class Stranger:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.workers, self.store = [], None
        self.held = collections.deque()
        self.count = collections.Counter()

    # ---- connections -------------------------------------------------------------------

    def connect(self, port):
        s = socket.create_connection(("127.0.0.1", port), timeout=0.5)
        s.settimeout(0.2)
        return s

    def hold(self, s):
        self.held.append(s)
        while len(self.held) > HELD_MAX:
            self.held.popleft().close()

    def greet(self, s):
        identity = self.rng.choice([None, b"tenrec:1:%d:%x:f" % (self.rng.randrange(6), self.rng.randrange(1, 9)),
                                    b"tenrec:1:%d:%x:f:%x" % (self.rng.randrange(6), self.rng.randrange(1, 9),
                                                              self.rng.getrandbits(64))])
        entries = [text(b"uv") + text(b"uv:*")] + ([text(b"tenrec") + text(identity)] if identity else [])
        brochure = (b"\xb9\x02\xbb" + uint(len(entries)) + b"".join(entries) +
                    b"\xbb\x01\xbd\x05basic\xbb\x01\xb9\x02\xbd\x03cpu\0\xbd\x03any")
        s.sendall(frame(b"\xb8\0\xb9\x01" + text(b"stranger")) + frame(brochure))
        return s.recv(65536)[8:]

    def ids_of(self, answer):
        """Of the reply and the channel connection; the encoding of each says how long it is."""
        at = answer.index(b"\xbb\x01\x01") + 3
        reply, _ = self.number(answer, at)
        at = answer.index(b"basic\xbc") + 6
        _, at = self.number(answer, at)
        return [reply, struct.unpack_from("<Q", answer, at)[0]]

    @staticmethod
    def number(data, at):
        wide = {0x80: "<B", 0x81: "<H", 0x82: "<I", 0x83: "<Q"}.get(data[at])
        if not wide:
            return data[at], at + 1
        return struct.unpack_from(wide, data, at + 1)[0], at + 1 + struct.calcsize(wide)

    def pipe(self, port):
        s = self.connect(port)
        for number in self.ids_of(self.greet(s)):
            other = self.connect(port)
            other.sendall(frame(b"\xb8\x01\xb9\x01\x83" + struct.pack("<Q", number)))
            self.hold(other)
        return s

    # ---- attacks -----------------------------------------------------------------------

    def silent(self, port):
        for _ in range(20):
            self.hold(self.connect(port))

    def nonsense(self, port):
        s = self.connect(port)
        s.sendall(self.rng.randbytes(self.rng.randrange(1, 300)))
        self.hold(s)

    def guess(self, port):
        s = self.connect(port)
        s.sendall(frame(b"\xb8\x01\xb9\x01" + uint(self.rng.randrange(0x10000))))
        self.hold(s)

    def greet_and_go(self, port):
        s = self.connect(port)
        self.greet(s)
        s.close()

    def control(self, port):
        s = self.pipe(port)
        for _ in range(self.rng.randrange(1, 8)):
            kind = self.rng.choice([VIEW, USER_DELETE, CHILD_ACCEPT, FETCH, CANCEL, RET])
            small = [self.rng.randrange(8) for _ in range(4)]
            if kind == VIEW:
                payload = numbers(1 << 40, self.rng.randrange(4), *small[:2])
            elif kind == FETCH:
                payload = b"\xd9\xd9\xf7\x85" + numbers(*small)[4:] + b"\x00"
            elif kind == CANCEL:
                payload = b""
            else:
                payload = numbers(*small)
            s.sendall(message(kind, self.rng.randrange(64), payload))
        self.rng.choice([s.close, lambda: self.hold(s)])()

    def unread(self, port):
        s = self.pipe(port)
        s.setblocking(False)
        request = message(CALL, 1, call(b"tenrec.debug_info"))
        try:
            for _ in range(UNREAD_CALLS):
                s.send(request)
        except BlockingIOError:
            pass
        self.hold(s)

    def torn_request(self, port):
        """A SET of 8 MiB of which some KiB come; a list of keys that trickles."""
        s = self.connect(port)
        piece = self.rng.choice([b"\x01" + struct.pack("<Q", 5) + b"never" + struct.pack("<Q", 8 << 20) + bytes(4096),
                                 b"\x0a" + struct.pack("<Q", 10**6) + struct.pack("<Q", 3) + b"abc"])
        s.sendall(b"\x00" + struct.pack("<I", 0x3C85F7CE) + piece)
        self.hold(s)

    # ---- the life ----------------------------------------------------------------------

    def attack(self):
        attacks = [(self.silent, 1), (self.nonsense, 4), (self.guess, 4), (self.greet_and_go, 4), (self.control, 6),
                   (self.unread, 1)]
        port = self.rng.choice(self.workers) if self.workers else None
        if self.store and (not port or self.rng.random() < 0.1):
            attacks, port = [(self.torn_request, 1), (self.silent, 1), (self.nonsense, 2)], self.store
        if not port:
            return
        what = self.rng.choices([a for a, _ in attacks], [w for _, w in attacks])[0]
        try:
            what(port)
            self.count[what.__name__] += 1
        except (OSError, ValueError, IndexError, struct.error):
            self.count[f"{what.__name__} refused"] += 1

    def rest(self):
        """Closes all connections until the next list of ports."""
        self.workers, self.store = [], None
        while self.held:
            self.held.popleft().close()
        print("rests", flush=True)

    def run(self):
        while True:
            ready = select.select([sys.stdin], [], [], 0.05)[0]
            if ready:
                line = sys.stdin.readline()
                if not line:
                    break
                word, *ports = line.split()
                if word == "rest":
                    self.rest()
                else:
                    self.store, *self.workers = map(int, ports)
            self.attack()
        print(", ".join(f"{n} {what}" for what, n in sorted(self.count.items())), flush=True)


Stranger(int(sys.argv[1])).run()
