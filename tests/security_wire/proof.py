# SPDX-License-Identifier: Apache-2.0
"""proof.py - the proof of the group secret, from docs/wire.md and not from the sources."""
import hashlib
import hmac
import os
import struct

HELLO, CHALLENGE, ANSWER, ACCEPTED, REFUSED = range(1, 6)
MAGIC = b"TNRP"
HEAD = 8
MAC = 32


def derive(secret, info):
    """32 bytes of HKDF-SHA256 without a salt."""
    drawn = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(drawn, info + b"\x01", hashlib.sha256)


def blob(data):
    return bytes([len(data)]) + data


def party(name=b"", rank=-1, incarnation=0, address=b""):
    return struct.pack("<iQ", rank, incarnation) + blob(name) + blob(address)


def record(kind, body):
    return MAGIC + struct.pack("<BBH", 1, kind, len(body)) + body


class Dialler:
    """A tool that has the secret, and wants the worker of this name."""

    def __init__(self, secret, wanted, binding=b""):
        self.key, self.binding = derive(secret, b"tenrec proof 1 tensorpipe"), binding
        self.hello = record(HELLO, b"\x01" + os.urandom(32) + blob(b"tensorpipe") + party() + party(wanted) + blob(b""))
        self.past = self.hello

    def mac(self, role, head):
        return hmac.digest(self.key, role + b"\0" + self.binding + self.past + head, hashlib.sha256)

    def checks(self, role, data):
        """Whether the record ends with the right mac."""
        right = data[-MAC:] == self.mac(role, data[:-MAC])
        self.past += data
        return right

    def answer(self):
        head = record(ANSWER, bytes(MAC))[:-MAC]
        data = head + self.mac(b"tenrec proof: dialler", head)
        self.past += data
        return data


def first(data):
    """The kind and the bytes of the record at the front of `data`; None while it is not whole."""
    if len(data) < HEAD:
        return None
    size = HEAD + struct.unpack_from("<H", data, 6)[0]
    return (data[5], data[:size]) if len(data) >= size else None
