# SPDX-License-Identifier: Apache-2.0
"""transport_process_test.py WHY - the transport `tenrec` between processes: how they meet, and how they are lost."""
import base64
import json
import os
import tempfile

from transports import Process, made, pair, refused, remote  # first: it makes torch.distributed._transport available

import torch
import torch.distributed as dist
from cases import contains, equal, main, true, until
from torch.distributed._transport import Transport, _registry, register_transport
from torch.distributed._transport._bootstrap import new_transport_rank

from tenrec_torch._transport_memory import TenrecRemoteBuffer

# A peer with one tensor, which it tells; it then obeys lines.
PEER = """
tensor = torch.zeros(int(sys.argv[2]), dtype=torch.uint8)
t = made()
memory = t.register_memory(tensor)
tell(t.bind(), memory.to_remote_buffer().serialize())
t.connect(heard()[0])
while line := heard():
    if line[0] == b"sum":
        tell(str(int(tensor.sum())).encode())
    elif line[0] == b"unregister":
        t.unregister_memory(memory)
        tell(b"done")
"""


def met(transport, peer):
    """Connects with a peer, and returns the descriptor of its memory."""
    record, buffer = peer.heard()
    peer.tell(transport.bind())
    transport.connect(record)
    return TenrecRemoteBuffer.deserialize(buffer)


def processes_write_and_read_each_other():
    with Process(PEER, 1 << 20) as peer, made() as transport:
        theirs = met(transport, peer)
        memory = transport.register_memory(torch.ones(1 << 20, dtype=torch.uint8))
        transport.write(memory.to_view(), theirs)
        peer.tell(b"sum")
        equal(peer.heard(), [str(1 << 20).encode()])
        back = torch.zeros(1 << 20, dtype=torch.uint8)
        transport.read(transport.register_memory(back).to_mutable_view(), theirs)
        equal(back.sum().item(), 1 << 20)
        peer.tell(b"unregister")
        peer.heard()
        refused(RuntimeError, "ESTALE", transport.write, memory.to_view(), theirs)


def processes_connect_before_the_peer_does():
    with Process(PEER, 4) as peer, made() as transport:
        record, buffer = peer.heard()
        own = transport.bind()
        equal(transport.connect(record), 0)
        memory, theirs = transport.register_memory(torch.ones(4, dtype=torch.uint8)), TenrecRemoteBuffer.deserialize(buffer)
        early = transport.write(memory.to_view(), theirs, async_op=True)
        refused(TimeoutError, "goes on", transport.write, memory.to_view(), theirs, timeout=0)
        true(not early.is_completed(), "the peer has not connected")
        refused(RuntimeError, "pending transfers", transport.unregister_memory, memory)
        refused(TimeoutError, "pending transfers", transport.close, timeout=0)
        refused(RuntimeError, "closed", transport.write, memory.to_view(), theirs)
        peer.tell(own)
        early.wait()
        peer.tell(b"sum")
        equal(peer.heard(), [b"4"])


def processes_in_a_ring_connect_in_any_order():
    text = """
before, after = made(), made()
tell(before.bind(), after.bind())
record_before, record_after = heard()
after.connect(record_after)
before.connect(record_before)
tensor = torch.zeros(4)
tell(before.register_memory(tensor).to_remote_buffer().serialize())
after.write(after.register_memory(torch.ones(4)).to_view(), receive(heard()[0]))
tell(b"wrote")
heard()
equal(tensor.sum().item(), 4)
"""
    with Process(text) as a, Process(text) as b, Process(text) as c:
        ring = [a, b, c]
        records = [p.heard() for p in ring]
        for i, p in enumerate(ring):
            p.tell(records[i - 1][1], records[(i + 1) % 3][0])
        buffers = [p.heard()[0] for p in ring]
        for i, p in enumerate(ring):
            p.tell(buffers[(i + 1) % 3])
        for p in ring:
            p.heard()
        for p in ring:
            p.tell(b"end")
        for p in ring:
            p.end()


def process_that_is_stopped_ends_the_wait_and_one_that_is_killed_the_transfer():
    with Process(PEER, 1 << 20) as peer, made() as transport:
        theirs = met(transport, peer)
        source = torch.ones(1 << 20, dtype=torch.uint8)
        memory = transport.register_memory(source)
        transport.write(memory.to_view(), theirs)
        peer.stop()
        work = transport.write(memory.to_view(), theirs, async_op=True)
        refused(TimeoutError, "goes on", transport.read, memory.to_mutable_view(), theirs, timeout=0.05)
        refused(RuntimeError, "pending transfers", transport.unregister_memory, memory)
        true(not work.is_completed(), "the transfer goes on")
        peer.kill()
        refused(ConnectionError, "", work.wait)
        until(lambda: not transport.connected(), "the loss is known")
        refused(ConnectionError, "", transport.write, memory.to_view(), theirs)
        refused(ConnectionError, "", work.get_future().wait) if torch.__version__ > "2" else None
        until(lambda: not transport._pending, "no transfer is pending")
        transport.unregister_memory(memory)


def process_of_another_life_is_another_peer():
    with Process(PEER, 4) as first, Process(PEER, 4) as second, made() as transport, made() as next_one:
        theirs = met(transport, first)
        memory = transport.register_memory(torch.ones(4, dtype=torch.uint8))
        transport.write(memory.to_view(), theirs)
        first.kill()
        again = met(next_one, second)
        refused(ValueError, "connected peer", next_one.write, next_one.register_memory(torch.ones(4, dtype=torch.uint8)).to_view(), theirs)
        next_one.write(next_one.register_memory(torch.ones(4, dtype=torch.uint8)).to_view(), again)
        second.tell(b"sum")
        equal(second.heard(), [b"4"])


def process_that_forks_makes_workers_of_its_own():
    with pair() as (first, _), Process(PEER, 4) as peer:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with made() as transport:
                    theirs = met(transport, peer)
                    transport.write(transport.register_memory(torch.ones(4, dtype=torch.uint8)).to_view(), theirs)
                    status = 0
            finally:
                os._exit(status)
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        true(first.connected(), "the parent is as it was")


def process_with_a_secret_of_its_own_puts_none_into_the_record():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("5e" * 32)
        file.flush()
        with Process(PEER, 4, TENREC_SECRET_FILE=file.name) as a, Process(PEER, 4) as b:
            without, has = (base64.b64decode(json.loads(p.heard()[0])["link"]) for p in (a, b))
            true(bytes.fromhex("5e" * 32) not in without, "a record with the configured secret")
            equal(len(has) - len(without), 32)


def processes_with_a_secret_of_their_own_meet_by_it():
    with tempfile.NamedTemporaryFile("w") as file, tempfile.NamedTemporaryFile("w") as other:
        for f, secret in (file, "5e"), (other, "6f"):
            f.write(secret * 32)
            f.flush()
        text = PEER.replace("t.connect(heard()[0])", "record, buffer = heard()\nt.connect(record)\n"
                            "refusal = None\n"
                            "try:\n    t.read(memory.to_mutable_view(), receive(buffer), timeout=float(sys.argv[3]))\n"
                            "except Exception as e:\n    refusal = e\ntell(repr(refusal).encode())\n")
        for mine, theirs, limit in (file, file, 60), (file, other, 3):
            with Process(text, 4, limit, TENREC_SECRET_FILE=mine.name) as a, Process(text, 4, limit, TENREC_SECRET_FILE=theirs.name) as b:
                of_a, of_b = a.heard(), b.heard()
                a.tell(*of_b)
                b.tell(*of_a)
                said = a.heard()[0].decode(), b.heard()[0].decode()
                equal(said == ("None", "None"), mine is theirs, f"success of {said}")


# ---- new_transport_rank

RANK = """
from datetime import timedelta
from torch.distributed._transport._bootstrap import new_transport_rank
import torch.distributed as dist
rank, peer = int(sys.argv[2]), int(sys.argv[3])
store = dist.TCPStore("127.0.0.1", int(sys.argv[4]), is_master=False, timeout=timedelta(seconds=60))
for attempt in 1, 2:
    t = new_transport_rank("tenrec", "cpu", store=store, rank=rank, peer_rank=peer, host="127.0.0.1")
    tensor = torch.zeros(4)
    store.set(f"buffer/{attempt}/{rank}", t.register_memory(tensor).to_remote_buffer().serialize())
    theirs = receive(store.get(f"buffer/{attempt}/{peer}"))
    t.write(t.register_memory(torch.full((4,), float(rank))).to_view(), theirs)
    store.set(f"wrote/{attempt}/{rank}", "")
    store.wait([f"wrote/{attempt}/{peer}"])
    equal(tensor.tolist(), [float(peer)] * 4)
    store.add(f"done/{attempt}", 1)
    until(lambda: store.add(f"done/{attempt}", 0) == 2, "both are done")
    t.close()
"""


def served():
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def rank_meets_its_peer_in_a_store_each_call_the_same_of_the_other():
    store = served()
    with Process(RANK, 10, 11, store.port) as a, Process(RANK, 11, 10, store.port) as b:
        a.end()
        b.end()
    equal((store.add("transport/tenrec/10/11/attempts/10", 0), store.add("transport/tenrec/10/11/attempts/11", 0)), (2, 2))


def rank_without_a_peer_fails_and_closes_its_transport():
    closed = []

    class Watched(type(made())):
        def close(self, *, timeout=None):
            closed.append(self)
            super().close(timeout=timeout)
    register_transport("watched", Watched)
    try:
        store = served()
        refused(Exception, "", new_transport_rank, "watched", store=store, rank=0, peer_rank=1, bootstrap_timeout=0.2)
        equal(len(closed), 1)
        store.set("transport/watched/0/1/2/1", b"no record")
        refused(ValueError, "no record", new_transport_rank, "watched", store=store, rank=0, peer_rank=1, bootstrap_timeout=30)
        equal(len(closed), 2)
        for rank, peer in (-1, 1), (True, 0), (1, 1):
            refused(ValueError, "", new_transport_rank, "watched", store=store, rank=rank, peer_rank=peer)
    finally:
        del _registry._registered_transports["watched"]


# ---- a trainer that keeps a copy of its state at its neighbour

TRAINER = """
import struct
SIZE = 1 << 22
state = torch.zeros(SIZE, dtype=torch.uint8)
header = torch.zeros(16, dtype=torch.uint8)
t = made()
slot, heads = torch.zeros(SIZE, dtype=torch.uint8), [torch.zeros(16, dtype=torch.uint8) for _ in range(2)]
mine = [t.register_memory(x) for x in (slot, *heads)]
tell(t.bind(), *(m.to_remote_buffer().serialize() for m in mine))
record, *theirs = heard()
t.connect(record)
body, before, after = (receive(b) for b in theirs)
own, head = t.register_memory(state), t.register_memory(header)

def replicate(step):
    # A reader takes the body only if both headers have the same number.
    state.fill_(step % 251)
    header.copy_(torch.frombuffer(bytearray(struct.pack("=QQ", step, SIZE)), dtype=torch.uint8))
    t.write(head.to_view(), before)
    t.write(own.to_view(), body)
    t.write(head.to_view(), after)

def received():
    first, last = (struct.unpack("=QQ", bytes(h.numpy().tobytes()))[0] for h in heads)
    return first if first == last else None

import itertools
for step in itertools.count(1):
    try:
        replicate(step)
    except ConnectionError as error:
        # The state of the dead neighbour: whole, or known not to be.
        whole = received()
        true(whole is None or bool((slot == whole % 251).all()), f"the copy of step {whole}")
        tell(b"lost", str(step).encode(), str(whole).encode())
        break
    if step == 3:
        tell(b"replicates")
for memory in (*mine, own, head):
    t.unregister_memory(memory)
t.close()
"""


def trainer_outlives_its_neighbour_and_has_a_whole_copy_or_none():
    for _ in range(3):
        with Process(TRAINER) as a, Process(TRAINER) as b:
            of_a, of_b = a.heard(), b.heard()
            a.tell(*of_b)
            b.tell(*of_a)
            equal((a.heard(), b.heard()), ([b"replicates"], [b"replicates"]))
            b.kill()
            what, step, _ = a.heard()
            true(what == b"lost" and int(step) > 3, f"heard {what} at {step}")
            a.end()


if __name__ == "__main__":
    main({name: f for name, f in globals().items() if getattr(f, "__module__", "") == "__main__"}, ("process", "rank_", "trainer_"))
