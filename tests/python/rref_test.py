# SPDX-License-Identifier: Apache-2.0
"""rref_test.py WHY - references to values of other workers, objects of Python among them."""
import array
import gc
import threading
import weakref

from cases import contains, equal, main, true, until
from workers import refused, started, tenrec


class Counter: # pylint: disable=too-few-public-methods
    def __init__(self, n):
        self.n = n
        made.add(self)


made = weakref.WeakSet()


def add(counter, n):
    counter.n += n
    return counter.n


def offer(w):
    w.register("counter", Counter)
    w.register(add)
    w.register("value", lambda x: x)
    w.register("of", lambda r: r.to_here())
    w.register("same", lambda r: r)


def rref_keeps_an_object_at_its_owner():
    with started() as (w0, w1):
        offer(w1)
        r = w0.remote("w1", "counter", 5)
        equal((r.owner, r.is_owner), (tenrec.Member(1, "w1"), False))
        equal([r.call("add", 2), r.call_async("add", 3).wait()], [7, 10])
        refused(tenrec.UnsupportedError, r.to_here)
        refused(tenrec.InvalidError, r.local_value)
        until(lambda: r.confirmed, "the owner confirms")
        contains(repr(r), "of 'w1'")
        equal(len(made), 1)
        del r
        until(lambda: gc.collect() and False or not made, "the object is released with the last reference")


def rref_of_a_value_is_fetched():
    with started() as (w0, w1):
        offer(w1)
        r = w0.remote("w1", "value", {"a": [1, 2]})
        equal([r.to_here(), r.to_here_async().wait()], [{"a": [1, 2]}] * 2)
        t = w0.remote("w1", "value", array.array("d", [1, 2])).to_here()
        equal(memoryview(t).tolist(), [1.0, 2.0])
        sum_ = r.remote("value")
        equal(sum_.to_here(), {"a": [1, 2]})


def rref_travels_as_an_argument_and_in_a_result():
    with started(3) as (w0, w1, w2):
        offer(w1)
        offer(w2)
        r = w0.remote("w1", "value", 7)
        equal(w0.call("w2", "of", r), 7)
        back = w0.call("w2", "same", r)
        equal((back.owner.name, back.to_here()), ("w1", 7))


def rref_of_an_own_object_is_the_object():
    with started() as (w0, w1):
        offer(w0)
        w1.register("via", lambda r: r.call("add", 1))
        counter = Counter(1)
        r = w0.rref(counter)
        true(r.is_owner and r.local_value() is counter, "it is the object itself")
        equal(w0.call("w1", "via", r), 2)
        equal(counter.n, 2)


def rref_whose_function_fails_raises_its_error():
    def fails():
        raise tenrec.NotFoundError("no such table")
    with started() as (w0, w1):
        w1.register(fails)
        r = w0.remote("w1", "fails")
        equal(refused(tenrec.NotFoundError, r.to_here).text, "no such table")
        refused(tenrec.NotFoundError, r.call, "fails")


def rref_to_a_value_that_is_being_made_waits():
    gate = threading.Event()
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        w1.register("value", lambda x: x)
        r = w0.remote("w1", "wait")
        f = r.to_here_async()
        true(not f.done(), "the value is not there yet")
        gate.set()
        equal(f.wait(), True)


def rref_of_another_worker_of_the_process_is_usable():
    with started() as (w0, w1):
        offer(w0)
        offer(w1)
        equal(w0.call("w1", "value", w0.rref(3)).to_here(), 3)


if __name__ == "__main__":
    main(globals(), "rref_", "python_rref")
