# SPDX-License-Identifier: Apache-2.0
"""link_test.py WHY - workers of two processes, or of one, that are linked by records."""
import contextlib
import itertools

from cases import contains, equal, main, true, until
from workers import program, refused, tenrec

_numbers = itertools.count()


def alone(name, **overrides):
    """A worker that is the only member of its group."""
    worker = tenrec.Worker(name, overrides={"init_method": f"memory://link{next(_numbers)}?rank=0&world_size=1", **overrides})
    worker.register("add", lambda a, b: a + b)
    worker.init_rpc()
    return worker


@contextlib.contextmanager
def two():
    workers = alone("north"), alone("south")
    try:
        yield workers
    finally:
        for worker in workers:
            worker.shutdown()


def link_calls_its_peer_and_is_called_back():
    with two() as (north, south):
        record = south.bind()
        true(isinstance(record, bytes) and len(record) <= 1024, "a record is small")
        with north.connect(record) as link:
            equal(link.name, "south")
            equal(north.call(link.name, "add", 1, 2), 3)
            equal(south.call("north", "add", 3, 4), 7)
        refused(tenrec.Error, north.call, "south", "add", 1, 2)
        equal(link.name, "south")
        link.drop()


def link_carries_regions_and_is_shared():
    with two() as (north, south):
        first, second = north.connect(south.bind()), north.connect(south.bind())
        r = south.region(bytearray(b"12345678"), "rw")
        into = bytearray(4)
        north.read(r.ref, into, offset=2)
        equal(into, b"3456")
        first.drop()
        north.write(r.ref, b"ab")
        equal(bytes(memoryview(r))[:3], b"ab3")
        second.drop()


def link_refuses_records_that_are_none():
    with two() as (north, south):
        record = south.bind()
        for bad in b"", record[:-1], record + b"\0", bytes([record[0] ^ 1]) + record[1:], bytes(1025):
            contains(str(refused(tenrec.Error, north.connect, bad)), "are no record of a link")
        refused(TypeError, north.connect, "text")
        contains(str(refused(tenrec.InvalidError, north.connect, north.bind())), "of this worker itself ('north')")
        contains(str(refused(ValueError, lambda: tenrec.Link().name)), "not made by Tenrec")


def link_ends_with_its_process():
    text = """
worker = tenrec.Worker("south", overrides={"init_method": "memory://link?rank=0&world_size=1"})
worker.register("add", lambda a, b: a + b)
worker.init_rpc()
print(worker.bind().hex(), flush=True)
threading.Event().wait()
"""
    north = alone("north")
    lost = []
    north.on_peer_lost(lambda member, why: lost.append(member.name))
    south = program(text)
    try:
        link = north.connect(bytes.fromhex(south.stdout.readline()))
        equal(north.call(link.name, "add", 1, 2), 3)
        south.kill()
        until(lambda: "south" in lost, "the loss was reported")
        refused(tenrec.Error, north.call, link.name, "add", 1, 2)
    finally:
        south.kill()
        south.communicate()
    link.drop()
    north.shutdown()


if __name__ == "__main__":
    main(globals(), "link_", "python_link")
