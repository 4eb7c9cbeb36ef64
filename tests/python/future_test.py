# SPDX-License-Identifier: Apache-2.0
"""future_test.py WHY - futures, waited for and awaited."""
import asyncio
import copy
import os
import signal
import sys
import threading

from cases import contains, equal, main, until
from workers import LIMIT_S, at_once, refused, started, tenrec


async def one_turn():
    """Lets the loop run what is ready."""
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned


def double(x):
    return 2 * x


def future_gives_its_result_to_each_wait():
    with started() as (w0, w1):
        w1.register(double)
        f = w0.call_async("w1", "double", 3)
        equal([f.wait(), f.wait(LIMIT_S), f.done()], [6, 6, True])


def future_is_awaited_among_others():
    async def run(w0):
        equal(await asyncio.gather(*(w0.call_async("w1", "double", i) for i in range(100))), [2 * i for i in range(100)])
        f = w0.call_async("w1", "double", 4)
        f.wait()
        equal(await f, 8) # done already
    with started() as (w0, w1):
        w1.register(double)
        asyncio.run(run(w0))
        asyncio.run(run(w0)) # another loop


def future_does_not_block_the_loop_that_awaits_it():
    gate = threading.Event()

    async def run(w0):
        f = asyncio.ensure_future(wrapped(w0.call_async("w1", "wait")))
        await one_turn()
        gate.set()
        equal(await f, True)

    async def wrapped(f):
        return await f
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        asyncio.run(run(w0))


def future_that_fails_raises_where_it_is_awaited():
    async def run(w0):
        f = w0.call_async("w1", "nothing")
        try:
            await f
        except tenrec.NotFoundError as e:
            return e.status
    with started() as (w0, _):
        equal(asyncio.run(run(w0)), "ENOFUNCTION")


def future_is_awaited_by_loops_of_several_threads():
    async def run(w0):
        for i in range(50):
            equal(await w0.call_async("w1", "double", i), 2 * i)
    with started() as (w0, w1):
        w1.register(double)
        at_once(*(lambda: asyncio.run(run(w0)) for _ in range(4)))


def future_of_a_canceled_task_is_canceled():
    gate = threading.Event()

    async def run(w0):
        f = w0.call_async("w1", "wait")
        task = asyncio.ensure_future(asyncio.wait_for(awaiting(f), 0.01))
        try:
            await task
        except asyncio.TimeoutError:
            pass
        return f

    async def awaiting(f):
        return await f
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        f = asyncio.run(run(w0))
        equal(refused(tenrec.CanceledError, f.wait).status, "ECANCELED")
        gate.set()


def future_is_canceled_by_an_immediate_shutdown_while_it_is_awaited():
    gate = threading.Event()

    async def run(w0):
        f = asyncio.ensure_future(awaiting(w0.call_async("w1", "wait")))
        await one_turn()
        await asyncio.to_thread(w0.shutdown, False)
        try:
            await asyncio.wait_for(f, LIMIT_S)
        except tenrec.CanceledError as e:
            return e.status

    async def awaiting(f):
        return await f
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        equal(asyncio.run(run(w0)), "ECANCELED")
        gate.set()
        w1.shutdown(graceful=False)


def future_of_a_closed_loop_does_no_harm():
    gate = threading.Event()

    async def run(w0):
        f = w0.call_async("w1", "wait")
        asyncio.ensure_future(awaiting(f))
        await one_turn()
        return f

    async def awaiting(f):
        try:
            await f
        except asyncio.CancelledError:
            pass
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        w1.register(double)
        f = asyncio.run(run(w0))
        until(f.done, "the future is canceled")
        gate.set()
        equal(w0.call("w1", "double", 1), 2)


def future_wait_ends_with_a_signal():
    gate = threading.Event()

    def interrupt(wait):
        former = signal.signal(signal.SIGUSR1, lambda *_: sys.exit("interrupted"))
        begun = threading.Event()
        helper = threading.Thread(target=lambda: (begun.wait(), os.kill(os.getpid(), signal.SIGUSR1)))
        helper.start()
        try:
            return refused(SystemExit, lambda: (begun.set(), wait()))
        finally:
            helper.join()
            signal.signal(signal.SIGUSR1, former)
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        f = w0.call_async("w1", "wait")
        equal(str(interrupt(f.wait)), "interrupted")
        equal(str(interrupt(lambda: w0.call("w1", "wait"))), "interrupted")
        gate.set()
        equal(f.wait(), True)


def future_that_tenrec_did_not_make_is_refused():
    with started() as (w0, w1):
        w1.register(double)
        f = w0.call_async("w1", "double", 1)
        f.wait()
        refused(TypeError, copy.copy, f)
        wrong = object.__new__(tenrec.Future)
        for method in [wrong.done, wrong.wait, wrong.cancel]:
            contains(str(refused(ValueError, method)), "not made by Tenrec")
    r = tenrec.RRef()
    contains(str(refused(ValueError, r.to_here)), "not made by Tenrec")
    contains(str(refused(ValueError, repr, r)), "not made by Tenrec")
    w = tenrec.Worker.__new__(tenrec.Worker)
    contains(str(refused(ValueError, w.init_rpc)), "not open")
    contains(str(refused(ValueError, w.call, "a", "b")), "not open")
    contains(str(refused(ValueError, w.register, double)), "not open")


if __name__ == "__main__":
    main(globals(), "future_", "python_future")
