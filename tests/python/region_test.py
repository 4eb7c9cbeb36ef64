# SPDX-License-Identifier: Apache-2.0
"""region_test.py WHY PEER - memory that other workers read and write; numpy is optional, and its cases skip without it."""
import array
import asyncio
import gc
import os
import sys
import tempfile
import threading
import weakref

from cases import Failed, Skipped, contains, environment, equal, main, start, true, until
from workers import at_once, program, programs_end, refused, started, stop, tenrec

PEER = os.path.abspath(sys.argv[2])

try:
    import numpy
except ImportError:
    numpy = None


def need_numpy():
    if not numpy:
        raise Skipped("no numpy")


class Lazy: # pylint: disable=too-few-public-methods
    """A tensor of torch that is conjugated when it is used."""

    def is_conj(self):
        return True


def region_is_read_and_written_at_offsets():
    with started() as (w0, w1):
        memory = bytearray(range(64))
        r = w1.region(memory, "rw")
        into = bytearray(8)
        w0.read(r.ref, into, offset=16)
        equal(into, bytes(range(16, 24)))
        w0.write(r.ref, b"12345678", offset=56)
        w0.write(r.ref, array.array("I", [7]), 4)
        equal((memory[56:], memory[4:8]), (b"12345678", bytes([7, 0, 0, 0])))
        equal((memory[:4], memory[8:56]), (bytes(range(4)), bytes(range(8, 56))))
        part = memoryview(into)[2:4]
        w0.read(r.ref, part, timeout=30)
        equal(into, bytes([16, 17, 0, 1, 20, 21, 22, 23]))
        w0.read(r.ref, bytearray())


def region_of_arrays_and_tensors_needs_no_copy():
    need_numpy()
    with started() as (w0, w1):
        theirs, own = numpy.arange(12.).reshape(3, 4), tenrec.empty((3, 4), "float64")
        r = w1.region(theirs, "rw")
        w0.read(r.ref, own)
        equal(own.tolist(), theirs.tolist())
        w0.write(r.ref, numpy.full(4, 7.0), offset=32)
        equal(theirs[1].tolist(), [7.0] * 4)
        shared = w1.region(tenrec.empty((3,), "int32", shared=True), "rw")
        w0.write(shared.ref, numpy.array([1, 2, 3], numpy.int32))
        equal(shared.tensor.tolist(), [1, 2, 3])


def region_shares_its_memory_by_the_buffer_protocol_and_dlpack():
    need_numpy()
    with started() as (w0, _):
        r = w0.region(numpy.arange(6, dtype=numpy.int32).reshape(2, 3), "rw")
        memoryview(r)[1, 2] = 50
        numpy.asarray(r)[0, 0] = 60
        equal(numpy.from_dlpack(r).tolist(), [[60, 1, 2], [3, 4, 50]])
        equal((r.__dlpack_device__(), r.tensor.shape), ((1, 0), (2, 3)))
        r.drop()
        contains(str(refused(ValueError, memoryview, r)), "was dropped")


def region_ref_travels_by_a_call_and_names_its_parts():
    with started() as (w0, w1):
        memory = bytearray(b"abcd")
        kept = []

        def offer():
            kept.append(w1.region(memory, "r"))
            return kept[0].ref

        w1.register(offer)
        got = w0.call("w1", "offer")
        equal((type(got), got.owner, got.length, got.rights, len(got)), (tenrec.RegionRef, "w1", 4, "r", 184))
        equal((got, tenrec.RegionRef(bytes(got))), (kept[0].ref, kept[0].ref))
        into = bytearray(4)
        w0.read(got, into)
        w0.read(bytes(got), into)
        equal(into, memory)
        contains(str(refused(ValueError, tenrec.RegionRef, got[:-1])), "183 bytes")
        contains(str(refused(ValueError, w0.read, got[:-1], into)), "183 bytes")


def region_refs_are_values_in_lists_and_dicts():
    with started() as (w0, w1):
        r = w1.region(bytearray(b"abcd"), "r")
        ref = r.ref
        w1.register("echo", lambda *x: x)
        got = w0.call("w1", "echo", [ref, {"a": (ref,)}], bytes(ref))
        equal(got, [[ref, {"a": [ref]}], ref])
        equal([type(x) for x in (got[0][0], got[0][1]["a"][0], got[1])], [tenrec.RegionRef, tenrec.RegionRef, bytes])
        equal(w0.rref(ref).to_here(), ref)
        for bad in bytes.__new__(tenrec.RegionRef, ref[:-1]), tenrec.RegionRef(ref[:56] + b"x" * 128):
            refused(ValueError, w0.call, "w1", "echo", bad)


def region_refs_are_region_values_of_a_worker_in_c():
    with tempfile.TemporaryDirectory(prefix="tenrec-python-") as folder:
        peer = start(PEER, env=environment(RANK="1", WORLD_SIZE="2", TENREC_INIT_METHOD=f"file://{folder}/store"))
        w = tenrec.Worker("w0", overrides={"init_method": f"file://{folder}/store", "worker.world_size": 2, "worker.rank": 0})
        w.init_rpc()
        own, into = w.region(b"abcd", "r"), bytearray(4)
        got, = w.call("worker1", "copy", own.ref)
        equal((type(got["ref"]), got["ref"].owner), (tenrec.RegionRef, "worker1"))
        w.read(got["ref"], into)
        equal(into, b"abcd")
        contains(str(refused(tenrec.InvalidError, w.call, "worker1", "copy", b"abcd")), "argument 1 is bytes")
        w.shutdown()
        programs_end(peer)


def region_of_the_own_worker_is_used_likewise():
    with started() as (w0, _):
        memory, into = bytearray(b"abcd"), bytearray(2)
        r = w0.region(memory, "rw")
        w0.read(r.ref, into, 1)
        w0.write(r.ref, b"xy", 2)
        equal((into, memory), (b"bc", b"abxy"))


def region_batch_has_one_end_and_names_the_entry_that_failed():
    with started() as (w0, w1):
        r, s = w1.region(bytearray(b"01234567"), "r"), w1.region(bytearray(8), "w")
        into = bytearray(8)
        view = memoryview(into)
        w0.transfer([tenrec.Read(r.ref, view[4:]), tenrec.Read(r.ref, view[:4], 4), tenrec.Write(s.ref, b"abc", 5)])
        equal((bytes(into), bytes(s)), (b"45670123", b"\0" * 5 + b"abc"))
        w0.transfer([])
        contains(str(refused(tenrec.PermissionError, w0.transfer, [tenrec.Write(s.ref, b"x"), tenrec.Write(r.ref, b"x")])), "entry 1")
        contains(str(refused(tenrec.InvalidError, w0.transfer, [tenrec.Read(r.ref, view[:4]), tenrec.Read(r.ref, view[3:5])])), "overlaps")
        contains(str(refused(tenrec.InvalidError, w0.read, r.ref, bytearray(2), 7)), "the region has 8")
        s.revoke()
        error = refused(tenrec.Error, w0.transfer, [tenrec.Read(r.ref, view[:4]), tenrec.Write(s.ref, b"x")])
        equal(error.status, "ESTALE")
        contains(str(error), "entry 1")


def region_transfers_are_awaited_at_once():
    with started() as (w0, w1):
        memory = bytearray(range(200))
        r = w1.region(memory, "rw")
        parts = [bytearray(10) for _ in range(10)]

        async def use():
            await asyncio.gather(*(asyncio.ensure_future(w0.read_async(r.ref, part, 10 * i)) for i, part in enumerate(parts)))
            await w0.write_async(r.ref, b"end", 197)
            await w0.transfer_async([tenrec.Write(r.ref, b"a"), tenrec.Write(r.ref, b"b", 1)])

        asyncio.run(use())
        equal((b"".join(parts), memory[197:], memory[:2]), (bytes(range(100)), b"end", b"ab"))


def region_transfer_calls_a_function_of_the_owner_then():
    with started() as (w0, w1):
        memory, into, seen = bytearray(8), bytearray(4), []
        r = w1.region(memory, "rw")

        def apply(*args):
            seen.append(args)
            return bytes(memory[:4]), *args
        w1.register(apply)
        equal(w0.write(r.ref, b"1234", then="apply", args=(7, r.ref)), [b"1234", 7, r.ref])
        equal(w0.read(r.ref, into, then="apply"), [b"1234"])
        equal(w0.transfer([tenrec.Write(r.ref, b"ab"), tenrec.Read(r.ref, into, 4)], then="apply", args=[[]]), [b"ab34", []])
        equal(w0.write_async(r.ref, b"x", then="apply", timeout=60).wait(60), [b"xb34"])
        equal((w0.write(r.ref, b"y"), w0.read_async(r.ref, into).wait(60)), (None, None))
        equal(seen, [(7, r.ref), (), ([],), ()])
        w1.register("fails", lambda: 1 // 0)
        contains(str(refused(tenrec.RemoteError, w0.write, r.ref, b"1", then="fails")), "ZeroDivisionError")
        refused(tenrec.NotFoundError, w0.write, r.ref, b"1", then="absent")
        refused(tenrec.InvalidError, w0.write, r.ref, b"1", args=(1,))
        refused(tenrec.InvalidError, w0.transfer, [], then="apply")
        refused(TypeError, w0.write, r.ref, b"1", then="apply", args=({1},))
        r.revoke()
        equal(refused(tenrec.Error, w0.write, r.ref, b"1", then="apply").status, "ESTALE")
        equal(len(seen), 4)


def region_transfer_has_three_ends():
    with started() as (w0, w1):
        memory, begun, go_on = bytearray(4), threading.Event(), threading.Event()
        r = w1.region(memory, "w")

        def hold():
            begun.set()
            go_on.wait()
            return 7
        w1.register(hold)

        async def use():
            f = w0.write_async(r.ref, b"1234", then="hold", timeout=float("inf"))
            await asyncio.gather(f.free, f.free)
            equal((await f.visible, await f.free, f.free.done(), f.visible.done()), (None, None, True, True))
            equal(memory, b"1234")
            begun.wait()
            true(not f.done(), "the function has not returned")
            go_on.set()
            equal(await f, 7)
        try:
            asyncio.run(use())
        finally:
            go_on.set()
        refused(ValueError, lambda: tenrec.Transfer().free)


def region_that_is_revoked_refuses_its_holders():
    with started() as (w0, w1):
        r = w1.region(bytearray(4), "rw")
        ref = r.ref
        w0.write(ref, b"1234")
        equal(r.pending, 0)
        r.revoke(timeout=10)
        r.revoke()
        equal(refused(tenrec.Error, w0.read, ref, bytearray(4)).status, "ESTALE")
        with w1.region(bytearray(4), "rw") as other:
            w0.write(other.ref, b"1234")
            ref = other.ref
        equal(refused(tenrec.Error, w0.read, ref, bytearray(4)).status, "ESTALE")
        for gone in [lambda: other.ref, lambda: other.pending, other.revoke, lambda: other.tensor]:
            contains(str(refused(ValueError, gone)), "was dropped")
        other.drop()


def region_of_memory_that_has_one_is_the_same():
    with started() as (w0, w1):
        memory = bytearray(4)
        first, second = w1.region(memory, "rw"), w1.region(memory, "rw")
        equal(first.ref, second.ref)
        equal(refused(tenrec.Error, w1.region, memory, "r").status, "EEXIST")
        first.drop()
        w0.write(second.ref, b"1234")
        equal(memory, b"1234")


def region_releases_the_memory_of_python_at_its_end():
    need_numpy()

    class Array(numpy.ndarray):
        pass
    with started() as (w0, w1):
        x = numpy.ones(50000).view(Array)
        gone = weakref.ref(x)
        r = w1.region(x, "r")
        into = numpy.zeros(50000)
        w0.read(r.ref, into)
        del x
        gc.collect()
        true(gone() is not None and into.all(), "the region keeps its memory")
        r.drop()
        del r
        until(lambda: w0.running and not gone(), "the array is released")


def region_and_transfers_refuse_what_has_no_memory_or_rights():
    with started() as (w0, w1):
        r = w1.region(bytearray(4), "rw")
        contains(str(refused(ValueError, w1.region, bytearray(4), "x")), "'r', 'w' or 'rw'")
        contains(str(refused(TypeError, w1.region, 7, "r")), "has no memory")
        contains(str(refused(TypeError, w1.region, Lazy(), "r")), "resolve_conj")
        contains(str(refused(TypeError, w0.read, r.ref, Lazy())), "resolve_conj")
        contains(str(refused(tenrec.InvalidError, w1.region, b"abcd", "w")), "read-only")
        contains(str(refused(tenrec.InvalidError, w1.region, bytearray(), "r")), "empty")
        contains(str(refused(tenrec.InvalidError, w0.read, r.ref, b"abcd")), "read-only")
        contains(str(refused(tenrec.InvalidError, w0.write, r.ref, memoryview(bytearray(8))[::2])), "not contiguous")
        contains(str(refused(TypeError, w0.transfer, [(r.ref, b"")])), "entry 0")
        contains(str(refused(ValueError, w0.write, r.ref, b"", -1)), "-1")
        contains(str(refused(TypeError, w0.write, "text", b"")), "bytes")
    contains(str(refused(tenrec.Error, w0.region, bytearray(4), "r")), "ESHUTDOWN")


OWNER = """
memory = bytearray(1 << 20)
w = tenrec.Worker("owner", overrides=overrides)
w.register("ref", lambda: kept.ref)
w.init_rpc()
kept = w.region(memory, "rw")
print("up", flush=True)
threading.Event().wait()
"""


def region_of_a_stopped_owner_ends_the_wait_and_of_a_killed_one_at_once():
    with tempfile.TemporaryDirectory(prefix="tenrec-python-") as folder:
        owner = program(OWNER, rank=1, world=2, folder=folder)
        w = tenrec.Worker("w0", overrides={"init_method": f"file://{folder}/store", "worker.world_size": 2, "worker.rank": 0})
        try:
            w.init_rpc()
            equal(owner.stdout.readline(), "up\n")
            ref, into = w.call("owner", "ref"), bytearray(1 << 20)
            stop(owner)
            refused(tenrec.TimeoutError, w.read, ref, into, timeout=0.05)
            late = w.read_async(ref, into, timeout=float("inf"))
            refused(tenrec.TimeoutError, late.wait, 0.05)
            owner.kill()
            error = refused(tenrec.ConnectionError, late.wait, 60)
            contains(str(error), "EPEER_LOST")
        finally:
            owner.kill()
            owner.communicate()
            w.shutdown(graceful=False)


def region_buffers_are_free_only_when_a_stopped_owner_is_lost():
    with tempfile.TemporaryDirectory(prefix="tenrec-python-") as folder:
        owner = program(OWNER, rank=1, world=2, folder=folder)
        w = tenrec.Worker("w0", overrides={"init_method": f"file://{folder}/store", "worker.world_size": 2, "worker.rank": 0})

        async def use(f):
            waits = asyncio.ensure_future(f.free)
            for limit in 0.05, 0.01:
                try:
                    await asyncio.wait_for(f.free, limit)
                    raise Failed("the memory is free while its owner is stopped")
                except asyncio.TimeoutError:
                    pass
            refused(tenrec.TimeoutError, f.free.wait, 0.01)
            true(not f.free.done(), "bytes may still arrive")
            owner.kill()
            await waits
            await f.free
        try:
            w.init_rpc()
            equal(owner.stdout.readline(), "up\n")
            ref, out = w.call("owner", "ref"), bytes(1 << 20)
            stop(owner)
            f = w.write_async(ref, out, timeout=0.05)
            refused(tenrec.TimeoutError, f.wait)
            asyncio.run(use(f))
            equal(f.free.wait(), None)
        finally:
            owner.kill()
            owner.communicate()
            w.shutdown(graceful=False)


def region_may_be_dropped_during_a_revoke():
    with started() as (w0, w1):
        r = w1.region(bytearray(1 << 20), "rw")
        ref, out = r.ref, bytes(1 << 20)
        writes = [w0.write_async(ref, out) for _ in range(8)]

        def revoke():
            try:
                r.revoke()
            except ValueError as e: # the drop was first
                contains(str(e), "was dropped")
        at_once(revoke, revoke, r.drop)
        for write in writes:
            try:
                write.wait(60)
            except tenrec.Error as e:
                equal(e.status, "ESTALE")


if __name__ == "__main__":
    main(globals(), "region_", "python_region")
