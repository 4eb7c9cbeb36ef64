# SPDX-License-Identifier: Apache-2.0
"""context_test.py WHY - workers as context managers, and a pair of them."""
import asyncio
import tempfile

from cases import LIMIT_S, equal, main, true
from workers import program, programs_end, refused, tenrec


def alone():
    return tenrec.Worker("w0", overrides={"init_method": "memory://context", "worker.rank": 0, "worker.world_size": 1,
                                          "worker.rpc_timeout": f"{LIMIT_S}s"})


def context_of_a_worker_is_its_life():
    with alone() as w:
        true(w.running, "the worker runs")
        w.register("double", lambda x: 2 * x)
        equal(w.call("w0", "double", 4), 8)
    true(not w.running, "the worker is down")


def context_of_a_worker_ends_at_a_shutdown_inside():
    with alone() as w:
        w.shutdown()
    true(not w.running, "the worker is down")


def context_of_a_worker_passes_its_exception_on():
    def fail():
        with alone() as w:
            made.append(w)
            raise KeyError("mine")
    made = []
    refused(KeyError, fail)
    true(not made[0].running, "the worker is down")


def context_of_a_worker_does_not_block_a_loop():
    async def run():
        async with alone() as w:
            w.register("double", lambda x: 2 * x)
            equal(await w.call_async("w0", "double", 4), 8)
        true(not w.running, "the worker is down")
    asyncio.run(run())


def context_of_the_worker_of_a_process_lets_another_follow():
    with tempfile.TemporaryDirectory() as folder:
        equal(programs_end(program("""
overrides["init_method"] = "memory://mine"
for i in range(2):
    with tenrec.init_rpc("me", overrides=overrides) as me:
        print(me is tenrec.get_worker())
try:
    tenrec.get_worker()
except RuntimeError:
    print("down")
""", folder=folder))[0], "True\nTrue\ndown\n")


def context_of_a_pair_calls_both_ways():
    with tenrec.pair() as (a, b), tenrec.pair("a", "c") as (_, c):
        b.register("add", lambda x, y: x + y)
        a.register("name", lambda: "a")
        c.register("name", lambda: "c")
        equal([a.call("b", "add", 40, 2), b.call("a", "name"), c.call("c", "name")], [42, "a", "c"])
    true(not (a.running or b.running or c.running), "all are down")


def context_of_a_pair_ends_at_once_after_an_exception():
    def fail():
        with tenrec.pair() as both:
            made.extend(both)
            raise KeyError("mine")
    made = []
    refused(KeyError, fail)
    true(not any(w.running for w in made), "both are down")


def context_of_a_pair_of_one_name_is_refused():
    refused(tenrec.Error, tenrec.pair, "a", "a")


def context_of_a_pair_that_is_left_running_lets_its_program_end():
    with tempfile.TemporaryDirectory() as folder:
        equal(programs_end(program("""
a, b = tenrec.pair(); b.register("add", lambda x, y: x + y)
print(a.call("b", "add", 40, 2))
""", folder=folder))[0], "42\n")


if __name__ == "__main__":
    main(globals(), "context_", "python_context")
