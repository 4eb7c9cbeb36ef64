# SPDX-License-Identifier: Apache-2.0
"""callback_test.py WHY - futures as those of concurrent.futures and asyncio: callbacks, sets of futures, tasks."""
import asyncio
import concurrent.futures
import contextlib
import gc
import os
import threading
import weakref

from cases import LIMIT_S, contains, equal, main, true, until
from workers import refused, started, tenrec


@contextlib.contextmanager
def gated(n=1):
    """A worker that calls itself, and functions `wait` that end when the gate opens."""
    gate = threading.Event()
    with started(1) as (w,):
        w.register("wait", lambda x: gate.wait() and x)
        w.register("fail", lambda: [][0])
        try:
            yield w, gate, [w.call_async("w0", "wait", i) for i in range(n)]
        finally:
            gate.set()


def callback_runs_when_a_call_ends():
    with gated() as (_, gate, (f,)):
        seen, done = [], threading.Event()
        f.add_done_callback(lambda g: (seen.append((g is f, g.result())), done.set()))
        equal((f.running(), f.done(), f.cancelled(), seen), (True, False, False, []))
        gate.set()
        true(done.wait(LIMIT_S), "the callback ran")
        equal(seen, [(True, 0)])
        f.add_done_callback(lambda g: seen.append("at once"))
        equal(seen[1:], ["at once"])


def callback_that_raises_or_calls_leaves_the_others_alone():
    with gated() as (w, gate, (f,)):
        seen, done = [], threading.Event()
        f.add_done_callback(lambda g: 1 / 0)
        f.add_done_callback(lambda g: seen.append(w.call("w0", "wait", 7)))
        f.add_done_callback(lambda g: w.call_async("w0", "wait", 8).add_done_callback(lambda h: (seen.append(h.result()), done.set())))
        gate.set()
        true(done.wait(LIMIT_S), "the callbacks ran")
        equal(seen, [7, 8])


def callback_runs_when_a_shutdown_cancels_a_call():
    with gated() as (w, gate, (f,)):
        seen, done = [], threading.Event()
        f.add_done_callback(lambda g: (seen.append(g.cancelled()), done.set()))
        opener = threading.Timer(0, lambda: (done.wait(LIMIT_S), gate.set()))
        opener.start()
        w.shutdown(graceful=False)
        true(done.wait(LIMIT_S), "the callback ran")
        equal(seen, [True])
        opener.join()


def callback_that_is_removed_does_not_run():
    with gated() as (_, gate, (f,)):
        seen, done = [], threading.Event()
        f.add_done_callback(seen.append)
        equal((f.remove_done_callback(seen.append), f.remove_done_callback(seen.append)), (1, 0))
        f.add_done_callback(lambda g: done.set())
        gate.set()
        true(done.wait(LIMIT_S), "the callback ran")
        equal(seen, [])


def callback_future_has_results_and_errors():
    with gated(2) as (w, gate, (f, g)):
        refused(concurrent.futures.TimeoutError, f.result, 0.01)
        refused(TimeoutError, f.result, 0)
        refused(TimeoutError, f.exception, 0)
        equal((f.cancel(), f.cancelled(), f.done()), (True, True, True))
        refused(concurrent.futures.CancelledError, f.result)
        refused(concurrent.futures.CancelledError, f.exception)
        gate.set()
        equal((g.result(LIMIT_S), g.exception(), g.cancel(), g.result(0)), (1, None, False, 1))
        error = w.call_async("w0", "fail").exception(LIMIT_S)
        true(isinstance(error, tenrec.RemoteError), f"error {error!r}")
        contains(repr(g), "done")


def callback_sets_of_futures_are_waited_for():
    with gated(3) as (w, gate, (a, b, c)):
        ended = w.call_async("w0", "fail")
        equal(concurrent.futures.wait([a, b], 0.01).done, set())
        first = concurrent.futures.wait([a, ended], LIMIT_S, concurrent.futures.FIRST_COMPLETED)
        equal((first.done, first.not_done), ({ended}, {a}))
        gate.set()
        equal(concurrent.futures.wait([a, b, c], LIMIT_S).not_done, set())
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            mixed = [a, w.call_async("w0", "wait", 5), pool.submit(lambda: 6)]
            equal(sorted(f.result() for f in concurrent.futures.as_completed(mixed, LIMIT_S)), [0, 5, 6])


def callback_futures_work_in_asyncio():
    async def run(w, gate, futures):
        a, b, c = futures
        loop, here = asyncio.get_running_loop(), []
        done, pending = await asyncio.wait([a, b], timeout=0.01)
        equal((done, pending), (set(), {a, b}))
        a.add_done_callback(lambda f: here.append(asyncio.get_running_loop() is loop))
        gate.set()
        done, pending = await asyncio.wait([a, b, c], timeout=LIMIT_S)
        equal((done, pending), ({a, b, c}, set()))
        equal(await asyncio.wrap_future(w.call_async("w0", "wait", 9)), 9)
        equal(sorted([await f for f in asyncio.as_completed([w.call_async("w0", "wait", i) for i in range(3)])]), [0, 1, 2])
        equal(here, [True])
    with gated(3) as (w, gate, futures):
        asyncio.run(run(w, gate, futures))


def callback_task_that_is_canceled_cancels_its_call():
    async def run(f):
        task = asyncio.wrap_future(f)
        task.cancel()
        await asyncio.wait([task])
    with gated() as (_, _, (f,)):
        asyncio.run(run(f))
        until(f.cancelled, "the call is canceled")


def callback_thread_does_not_keep_its_worker():
    with started(1) as (w,):
        gone = weakref.ref(w)
        w.register("name", lambda: "x")
        f = w.call_async("w0", "name")
        concurrent.futures.wait([f], LIMIT_S)
    del w, f

    def collected():
        gc.collect()
        return gone() is None
    until(collected, "the worker is collected")
    until(lambda: all(t.name != "tenrec-callbacks" for t in threading.enumerate()), "the thread has ended")


def callback_survives_the_end_of_a_forked_child():
    with gated(2) as (_, gate, (f, g)):
        done = threading.Event()
        f.add_done_callback(lambda f: None)
        child = os.fork()
        if child == 0:
            try:
                f._worker._callbacks.stop()  # pylint: disable=protected-access
            finally:
                os._exit(0)
        equal(os.waitpid(child, 0)[1], 0)
        g.add_done_callback(lambda f: done.set())
        gate.set()
        true(done.wait(LIMIT_S), "the callback ran")


if __name__ == "__main__":
    main(globals(), "callback_", "python_callback")
