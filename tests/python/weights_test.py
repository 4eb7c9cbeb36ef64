# SPDX-License-Identifier: Apache-2.0
"""weights_test.py WHY - versions of weights, between workers of this process and of others; numpy is optional, and its cases skip without it."""
import array
import asyncio
import gc
import os
import sys
import tempfile
import weakref

from cases import LIMIT_S, Failed, Skipped, contains, environment, equal, main, run, true, until
from workers import ROOT, at_once, program, programs_end, refused, started, tenrec

try:
    import numpy
except ImportError:
    numpy = None

TENREC = os.path.abspath(sys.argv[2])


def need_numpy():
    if not numpy:
        raise Skipped("no numpy")


def sets(workers):
    return [w.weights("policy", keeper="w0") for w in workers]


def states(weights, version):
    return {h["worker"]: h["state"] for h in weights.holders() if h["version"] == version}


# ---- versions


def weights_pull_has_the_elements_that_were_published():
    with started(3) as workers:
        s0, s1, s2 = sets(workers)
        memory, into = bytearray(b"abcd"), bytearray(4)
        s0.publish(7, {"b": memory, "i": array.array("i", [1, 2, 3]), "f": tenrec.empty((2, 2)), "none": b""})
        memory[:] = b"----" # the set has a copy
        memory += b"-"
        equal(s1.pull({"b": into, "none": bytearray()}), 7)
        equal(into, b"abcd")
        numbers = array.array("i", [0] * 3)
        equal(s2.pull([("b", memoryview(into)), ("i", numbers)], version=7), 7)
        equal((into, numbers.tolist()), (b"abcd", [1, 2, 3]))
        record = s2.wait(7)
        equal(record["version"], 7)
        true({"name": "i", "dtype": "int32", "shape": [3]} in record["tensors"], "it shows the tensors")
        equal(states(s0, 7), {"w0": "publishes", "w1": "has", "w2": "has"})


def weights_of_arrays_keep_type_shape_and_strides():
    need_numpy()
    with started() as workers:
        s0, s1 = sets(workers)
        x = numpy.arange(24, dtype=numpy.float64).reshape(4, 6)
        tensors = {"x": x.T, "part": x[1:3, ::2], "scalar": numpy.array(2.5), "half": x.astype(numpy.float16), "yes": x > 3}
        s0.publish(1, tensors)
        into = {name: numpy.zeros(v.shape, v.dtype) for name, v in tensors.items()}
        s1.pull(into)
        for name, v in tensors.items():
            true((into[name] == v).all(), f"{name} is the same")
        contains(str(refused(tenrec.InvalidError, s1.pull, {"x": numpy.zeros((6, 4), numpy.float32)})), "float64")
        contains(str(refused(tenrec.InvalidError, s1.pull, {"x": numpy.zeros((4, 6))})), "shape")
        contains(str(refused(tenrec.InvalidError, s1.pull, {"x": numpy.zeros((4, 6)).T})), "contiguous")


def weights_pull_waits_for_a_newer_version():
    with started() as workers:
        s0, s1 = sets(workers)
        into = bytearray(1)
        late = s1.pull_async({"x": into}, after=1)
        s0.publish(1, {"x": b"1"})
        refused(tenrec.TimeoutError, late.wait, 0.05)
        s0.publish(2, {"x": b"2"})
        equal((late.wait(LIMIT_S), into), (2, b"2"))
        refused(tenrec.TimeoutError, s1.pull, {"x": into}, after=2, timeout=0.05)


def weights_that_were_replaced_are_stale_and_numbers_grow():
    with started() as workers:
        s0, s1 = sets(workers)
        for version in 1, 2:
            s0.publish(version, {"x": bytes([version])})
        error = refused(tenrec.StaleError, s1.pull, {"x": bytearray(1)}, 1)
        equal(error.status, "ESTALE")
        contains(str(error), "version 1 of 'policy' has been replaced by a newer one")
        contains(str(refused(tenrec.ExistsError, s1.publish, 2, {"x": b"3"})), "not newer")
        contains(str(refused(tenrec.NotFoundError, s1.pull, {"y": bytearray(1)})), "'y'")


def weights_of_two_publishers_racing_for_a_number_are_of_one():
    with started(3) as workers:
        s0, s1, s2 = sets(workers)
        lost = []

        def publish(s, x):
            try:
                s.publish(1, {"x": x * 1000})
            except tenrec.ExistsError:
                lost.append(x)
        at_once(lambda: publish(s0, b"0"), lambda: publish(s1, b"1"))
        into = bytearray(1000)
        s2.pull({"x": into})
        equal((len(lost), into), (1, (b"1" if lost == [b"0"] else b"0") * 1000))


# ---- shards


def weights_of_two_publishers_are_one_version():
    with started(3) as workers:
        s0, s1, s2 = sets(workers)
        rows = [memoryview(bytes(range(12 * i, 12 * i + 12))).cast("B", (3, 4)) for i in range(2)]

        def publish(s, i):
            s.publish(1, {"m": tenrec.Shard(rows[i], (6, 4), (3 * i, 0)), f"own{i}": bytes([i])}, publishers=2)
        at_once(lambda: publish(s0, 0), lambda: publish(s1, 1))
        whole, box, own = (tenrec.empty(shape, "uint8") for shape in [(6, 4), (2, 3), (1,)])
        s2.pull({"m": whole, "own1": own})
        equal((whole.tolist(), own.tolist()), ([list(range(4 * i, 4 * i + 4)) for i in range(6)], [1]))
        s1.pull({"m": tenrec.Shard(box, (6, 4), [2, 1])})
        equal(box.tolist(), [[9, 10, 11], [13, 14, 15]])
        corners = [("m", tenrec.Shard(bytearray(1), (24,), (at,))) for at in (0, 23)]
        s0.publish(2, [("v", tenrec.Shard(b"a", (2,), (0,))), ("v", tenrec.Shard(b"b", (2,), (1,)))])
        v = bytearray(2)
        s2.pull({"v": v})
        equal(v, b"ab")
        refused(tenrec.NotFoundError, s2.pull, corners)


def weights_without_all_parts_are_not_visible():
    with started() as workers:
        s0, s1 = sets(workers)
        refused(tenrec.TimeoutError, s0.publish, 1, {"x": b"1"}, publishers=2, timeout=0.05)
        refused(tenrec.TimeoutError, s1.pull, {"x": bytearray(1)}, timeout=0.05)


# ---- memory


def weights_in_place_are_read_from_the_memory_until_they_are_withdrawn():
    with started() as workers:
        s0, s1 = sets(workers)
        memory, into = bytearray(b"1" * 1000), bytearray(1000)
        s0.publish(1, {"x": memory}, in_place=True)
        with s0.held(1) as version:
            s1.pull({"x": into}, version)
            refused(tenrec.Error, s0.publish, 2, {"x": memory}, in_place=True) # EBUSY
        memory[:] = b"2" * 1000
        equal(into, b"1" * 1000)
        with s1.held(1):
            pass
        refused(tenrec.StaleError, s1.pull, {"x": into}, 1)
        refused(tenrec.NotFoundError, s0.withdraw, 1)
        s0.publish(2, {"x": memory}, in_place=True)
        s0.withdraw(2, timeout=LIMIT_S)
        with s0.held(2):
            pass


def weights_with_another_checksum_than_the_published_are_refused():
    with started() as workers:
        s0, s1 = sets(workers)
        memory = bytearray(b"1" * 1000)
        s0.publish(1, {"x": memory}, in_place=True)
        memory[500] = 0
        error = refused(tenrec.Error, s1.pull, {"x": bytearray(1000)}, 1)
        equal(error.status, "EPROTOCOL")
        contains(str(error), "tensor 'x' of version 1 has not the checksum")


def weights_release_the_memory_of_python():
    need_numpy()

    class Array(numpy.ndarray):
        pass
    with started() as workers:
        s0, s1 = sets(workers)
        into, source = (numpy.ones(50000).view(Array) for _ in range(2))
        gone = [weakref.ref(into), weakref.ref(source)]
        s0.publish(1, {"x": source})
        s1.pull({"x": into})
        del into, source
        gc.collect()
        until(lambda: not gone[1](), "the published array is released: there is a copy")
        true(gone[0]() is not None, "the set shares the pulled array")
        s1.close()
        until(lambda: not gone[0](), "the pulled array is released")
        contains(str(refused(ValueError, s1.pull, {"x": bytearray(1)})), "were closed")
        s1.close()


def weights_may_be_closed_during_a_pull():
    with started() as workers:
        _, s1 = sets(workers)
        late = s1.pull_async({"x": bytearray(1)}, timeout=0.1)
        s1.close()
        refused(tenrec.TimeoutError, late.wait)
        contains(str(refused(ValueError, s1.wait)), "were closed")


# ---- reports


def weights_reports_come_back_to_the_publisher():
    with started(3) as workers:
        s0, s1, s2 = sets(workers)
        s0.publish(1, {"x": b"1"})
        for s in s1, s2:
            s.pull({"x": bytearray(1)})
        s1.report(1)
        try:
            raise KeyError("layer.7")
        except KeyError as e:
            s2.report(1, e)
        errors = {h["worker"]: (h["state"], h["error"]) for h in s0.wait(1, reports=2, timeout=LIMIT_S)["holders"]}
        equal((errors["w1"], errors["w2"][0]), (("applied", ""), "failed"))
        contains(errors["w2"][1], "KeyError: 'layer.7'")
        s2.report(1, "no room")
        until(lambda: any(h["error"] == "no room" for h in s0.holders()), "a later report takes its place")
        refused(tenrec.NotFoundError, s1.report, 2)
        refused(tenrec.TimeoutError, s0.wait, 1, 3, 0.05)


# ---- asyncio


def weights_are_awaited():
    with started(3) as workers:
        s0, s1, s2 = sets(workers)
        into = [bytearray(2) for _ in range(8)]

        async def use():
            pulls = [asyncio.ensure_future((s1, s2)[i % 2].pull_async({"x": b}, timeout=LIMIT_S)) for i, b in enumerate(into)]
            equal((await asyncio.wait(pulls, timeout=0.05))[0], set(), "pulls that end before the publish")
            equal(await s0.publish_async(1, {"x": b"ab"}), None)
            equal(await asyncio.gather(*pulls), [1] * 8)
            await s1.report_async(1)
            equal((await s0.wait_async(1, reports=1))["version"], 1)
            async with s2.held(1) as version:
                equal(version, 1)
            try:
                await asyncio.wait_for(s1.pull_async({"x": bytearray(2)}, after=1, timeout=0.2), 0.01)
                raise Failed("there is no newer version")
            except asyncio.TimeoutError:
                pass
        asyncio.run(use())
        equal(into, [b"ab"] * 8)


# ---- what is refused


def weights_refuse_what_is_wrong_before_anything_is_sent():
    with started() as workers:
        s0, _ = sets(workers)
        shard = tenrec.Shard(b"abcd", (8,), (6,))
        contains(str(refused(tenrec.InvalidError, s0.publish, 1, {"x": shard})), "dimension 0")
        contains(str(refused(ValueError, s0.publish, 1, {"x": shard._replace(at=(0, 0))})), "'at' has 2 numbers, and its tensor 1")
        contains(str(refused(ValueError, s0.publish, 1, {"x": shard._replace(shape=())})), "'shape' has 0 numbers")
        contains(str(refused(ValueError, s0.publish, 1, {"x": b""}, publishers=0)), "publishers is 0")
        contains(str(refused(ValueError, s0.wait, 1, -1)), "reports is -1")
        contains(str(refused(TypeError, s0.publish, 1, {"x": 7})), "has no memory")
        refused(TypeError, s0.publish, 1, {7: b"x"})
        refused(TypeError, s0.publish, "1", {"x": b"x"})
        refused(OverflowError, s0.publish, 1 << 63, {"x": b"x"})
        refused(ValueError, s0.publish, 1, {"x\0y": b"x"})
        for tensors in {}, {"": b"x"}, {"x" * 256: b"x"}:
            refused(tenrec.InvalidError, s0.publish, 1, tensors)
        refused(tenrec.InvalidError, s0.publish, 0, {"x": b"x"})
        contains(str(refused(tenrec.InvalidError, s0.pull, {"x": b"x"})), "read-only")
        refused(tenrec.InvalidError, s0.pull, {"x": bytearray(1)}, -1)
        refused(tenrec.NotFoundError, workers[0].weights("policy", "w9").publish, 1, {"x": b"x"})
        refused(tenrec.InvalidError, workers[0].weights, "", "w0")
        contains(str(refused(ValueError, tenrec.Weights().wait)), "not made by Tenrec")


# ---- processes

LATE = """
del overrides["worker.world_size"], overrides["worker.rank"]
w = tenrec.Worker(sys.argv[1], overrides=overrides)
w.init_rpc()
weights = w.weights("policy", "trainer")
x = bytearray(1 << 20)
version = weights.pull({"x": x})
weights.report(version, None if x == bytes([version]) * (1 << 20) else "mixed bytes")
if sys.argv[2] == "stays":
    sys.stdin.readline()
w.shutdown()
"""


def weights_reach_processes_that_join_late_and_go():
    with tempfile.TemporaryDirectory(prefix="tenrec-python-") as folder:
        w = tenrec.Worker("trainer", overrides={"init_method": f"file://{folder}/store", "worker.rpc_timeout": f"{LIMIT_S}s"})
        w.init_rpc()
        weights = w.weights("policy", "trainer")
        for version in 1, 2:
            weights.publish(version, {"x": bytes([version]) * (1 << 20)})
        first = program(LATE, "first", "stays", folder=folder)
        weights.wait(2, reports=1)
        second = program(LATE, "second", "goes", folder=folder)
        record = weights.wait(2, reports=2)
        equal({h["worker"]: (h["state"], h["error"]) for h in record["holders"]},
              {"trainer": ("publishes", ""), "first": ("applied", ""), "second": ("applied", "")})
        programs_end(second)
        first.kill() # with its copy
        first.communicate()
        weights.publish(3, {"x": bytes([3]) * (1 << 20)})
        third = program(LATE, "third", "goes", folder=folder)
        equal(weights.wait(3, reports=1)["holders"][-1]["error"], "")
        programs_end(third)
        w.shutdown()


def weights_example_runs():
    need_numpy()
    done = run(TENREC, "run", "-n", "4", "--", sys.executable, os.path.join(ROOT, "examples/python/weights.py"),
               env=environment(PYTHONPATH=os.environ["PYTHONPATH"]))
    equal(done.returncode, 0, f"exit status, {done.stderr}")
    for i in range(1, 4):
        contains(done.stdout, f"weights: worker{i} applied version 20")


if __name__ == "__main__":
    main(globals(), "weights_", "python_weights")
