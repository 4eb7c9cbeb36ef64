# SPDX-License-Identifier: Apache-2.0
"""call_test.py WHY - one-way calls, results in memory of the caller, and answers that come later."""
import array
import gc
import threading

from cases import LIMIT_S, contains, equal, main, true, until
from workers import refused, started, tenrec


def call_one_way_runs_the_function_and_returns_nothing():
    seen, ran = [], threading.Event()

    def note(*args, **keywords):
        seen.append((args, keywords))
        ran.set()
        raise ValueError("nobody hears it")
    with started() as (w0, w1):
        w1.register(note)
        equal(w0.call_one_way("w1", note, 1, by="name"), None)
        true(ran.wait(LIMIT_S), "it ran")
        equal(seen, [((1,), {"by": "name"})])
        equal(w0.call_one_way("w1", "nothing"), None)
        refused(tenrec.NotFoundError, w0.call_one_way, "w7", "note")
        refused(TypeError, w0.call_one_way, "w1", "note", object())


def call_into_receives_the_tensor_in_the_given_memory():
    with started() as (w0, w1):
        w1.register("numbers", lambda n, add=0: array.array("d", [i + add for i in range(n)]))
        into = array.array("d", [0] * 4)
        got = w0.call_into(into, "w1", "numbers", 4, add=1)
        equal((into.tolist(), got.tolist()), ([1, 2, 3, 4], [1, 2, 3, 4]))
        into[0] = 9
        equal(got.tolist()[0], 9)
        t = tenrec.empty(4, "float64")
        equal(w0.call_into_async(t, "w1", "numbers", 4).wait().tolist(), t.tolist())


def call_into_refuses_memory_that_does_not_fit():
    with started() as (w0, w1):
        w1.register("numbers", lambda n: array.array("d", range(n)))
        w1.register("text", lambda: "none")
        refused(BufferError, w0.call_into, b"12345678", "w1", "numbers", 1)
        refused(TypeError, w0.call_into, "text", "w1", "numbers", 1)
        refused(tenrec.Error, w0.call_into, array.array("d", [0] * 3), "w1", "numbers", 4)
        refused(tenrec.Error, w0.call_into, array.array("f", [0] * 4), "w1", "numbers", 4)
        into = array.array("d", [5])
        equal((w0.call_into(into, "w1", "text"), into[0]), ("none", 5))


def call_is_answered_later_by_any_thread():
    waiting = []

    @tenrec.later
    def take(answer, *args, **keywords):
        waiting.append((answer, args, keywords))
        return "ignored"
    with started() as (w0, w1):
        w1.register(take)
        first, second = w0.call_async("w1", "take", 1, by="name"), w0.call_async("w1", "take", 2)
        until(lambda: len(waiting) == 2, "both calls have arrived")
        by_args = {args: answer for answer, args, _ in waiting}
        by_args[(2,)].give({"two": [2]})
        equal(second.wait(LIMIT_S), {"two": [2]})
        equal(first.done(), False)
        by_args[(1,)].fail(tenrec.NotFoundError("no more"))
        equal(refused(tenrec.NotFoundError, first.wait, LIMIT_S).text, "no more")
        contains(str(refused(RuntimeError, by_args[(1,)].give, 3)), "has an answer already")


def call_that_is_never_answered_ends_with_its_answer():
    @tenrec.later
    def forget(answer):
        pass

    @tenrec.later
    def fails(answer):
        raise ValueError("at once")
    with started() as (w0, w1):
        w1.register(forget)
        w1.register(fails)
        f = w0.call_async("w1", "forget")
        gc.collect()
        contains(str(refused(tenrec.CanceledError, f.wait, LIMIT_S)), "ended without an answer")
        contains(str(refused(ValueError, w0.call, "w1", "fails")), "at once")


if __name__ == "__main__":
    main(globals(), "call_", "python_call")
