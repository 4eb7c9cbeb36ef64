# SPDX-License-Identifier: Apache-2.0
"""coroutine_test.py WHY - coroutine functions that other workers call."""
import asyncio
import select
import sys
import tempfile
import threading

from cases import contains, equal, main, true
from workers import program, programs_end, refused, started, tenrec


def coroutine_functions_answer_calls():
    with started() as (me, peer):
        @peer.register
        async def add(a, b):
            loop = asyncio.get_running_loop()
            soon = loop.create_future()
            loop.call_soon(soon.set_result, a + b)
            return await soon
        equal(me.call("w1", "add", 40, 2), 42)
        equal([f.wait() for f in [me.call_async("w1", "add", i, i) for i in range(100)]], [2 * i for i in range(100)])
        r = me.remote("w1", "add", 1, 2)
        equal(r.to_here(), 3)
        del r


def coroutine_functions_wait_for_each_other():
    """More at once than a pool has threads, of which one at a time runs a step."""
    with started() as (me, peer):
        together, inside, most, met = [], [], [], asyncio.Event()

        def step(n):
            inside.append(n)
            select.select([], [], [], 0)  # lets another thread run, if it may
            most.append(len(inside))
            inside.remove(n)

        @peer.register
        async def meet(n):
            step(n)
            together.append(n)
            if len(together) == 200:
                met.set()
            await met.wait()
            step(n)
            return n
        equal(sorted(f.wait() for f in [me.call_async("w1", "meet", i) for i in range(200)]), list(range(200)))
        equal((len(most), max(most)), (400, 1))


async def another_step():
    soon = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(soon.set_result, None)
    await soon


def coroutine_functions_that_do_not_wait_run_on_the_thread_of_their_call():
    """Else each call wakes the loop's thread."""
    with started() as (me, peer):
        @peer.register
        async def where(waits):
            if waits:
                await another_step()
            return threading.current_thread().name, asyncio.current_task() is not None
        me.call("w1", "where", True)  # the loop's thread has begun, and is about to sleep
        seen = [me.call("w1", "where", False) for _ in range(100)]
        true(sum(name != "tenrec-asyncio" for name, _ in seen) > 50, f"functions on the loop's thread: {seen}")
        equal([me.call("w1", "where", True) for _ in range(100)], [["tenrec-asyncio", True]] * 100)
        true(all(task for _, task in seen), "a function without a task")


def coroutine_functions_end_their_calls_when_they_exit():
    with started() as (me, peer):
        @peer.register
        async def leave(waits):
            if waits:
                await another_step()
            sys.exit(3)
        for waits in (False, True, False, True):
            contains(str(refused(tenrec.Error, me.call, "w1", "leave", waits)), "SystemExit")


def coroutine_functions_fail_as_others():
    with started() as (me, peer):
        @peer.register
        async def find(key):
            raise tenrec.NotFoundError(f"no key '{key}'")

        @peer.register
        async def make():
            return object()

        @peer.register
        async def stop():
            raise asyncio.CancelledError
        contains(str(refused(tenrec.NotFoundError, me.call, "w1", "find", "x")), "no key 'x'")
        contains(str(refused(tenrec.Error, me.call, "w1", "find")), "argument")
        contains(str(refused(tenrec.Error, me.call, "w1", "make")), "object")
        contains(str(refused(tenrec.Error, me.call, "w1", "stop")), "CancelledError")


def coroutine_functions_run_on_the_loop_that_registers_them():
    async def serve(me, peer):
        loop = asyncio.get_running_loop()

        @peer.register
        async def is_here():
            return asyncio.get_running_loop() is loop
        true(await me.call_async("w1", "is_here"), "the function runs on another loop")
    with started() as (me, peer):
        asyncio.run(serve(me, peer))
        # That loop has ended.
        contains(str(refused(tenrec.Error, me.call, "w1", "is_here")), "closed")


def coroutine_that_never_ends_lets_its_program_end():
    with tempfile.TemporaryDirectory() as folder:
        equal(programs_end(program("""
import asyncio
me = tenrec.init_rpc(overrides=overrides)
begun = threading.Event()

@me.register
async def wait():
    begun.set()
    await asyncio.Event().wait()

f = me.call_async("worker0", "wait")
begun.wait()
print("here")
""", folder=folder), status=0)[0], "here\n")


if __name__ == "__main__":
    main(globals(), "coroutine_", "python_coroutine")
