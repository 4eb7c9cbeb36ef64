# SPDX-License-Identifier: Apache-2.0
"""proxy_test.py WHY - keyword arguments, function objects and proxies."""
import copy
import tempfile
import threading

from cases import contains, equal, main
from workers import program, programs_end, refused, started, tenrec


def show(*args, **keywords):
    return [list(args), keywords]


def add(x, y=1):
    return x + y


def proxy_of_a_worker_has_its_functions():
    with started() as (w0, w1):
        w1.register(add)
        w1.register(show)
        b = w0.proxy("w1")
        equal([b.add(1), b.add(40, y=2), b.show(timeout=3, function="f", to="x")], [2, 42, [[], {"timeout": 3, "function": "f", "to": "x"}]])
        contains(str(refused(tenrec.NotFoundError, b.nothing)), "nothing")
        contains(repr(b), "w1")
        refused(AttributeError, getattr, b, "__len__")
        equal(copy.copy(b).add(1), 2)


def proxy_has_a_limit_for_its_calls():
    gate = threading.Event()
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        refused(TimeoutError, w0.proxy("w1", timeout=0.05).wait)
        refused(ValueError, w0.proxy, "w1", timeout=-1)
        gate.set()


def proxy_keyword_arguments_travel_in_each_kind_of_call():
    with started() as (w0, w1):
        w1.register(add)

        @w1.register
        async def later(x, *, y):
            return x - y
        w1.register(show)
        equal([w0.call("w1", "add", 1, y=5), w0.call_async("w1", "add", x=1, y=6).wait(), w0.call("w1", "later", 1, y=7)], [6, 7, -6])
        r = w0.remote("w1", "add", 1, y=8)
        equal([r.to_here(), r.call("add", y=9), r.call_async("later", y=4).wait(), r.remote("add", y=1).to_here()], [9, 18, 5, 10])
        contains(str(refused(tenrec.RemoteError, w0.call, "w1", "add", 1, z=2)), "unexpected keyword argument 'z'")
        refused(TypeError, w0.call, "w1", "add", 1, y=object())
        del r


def proxy_keyword_arguments_are_never_those_of_a_dict():
    with started() as (w0, w1):
        w1.register(show)
        for last in [{}, {"a": 1}, {"**": 1}, {"**": {"a": 1}}, {"**": {}}]:
            equal(w0.call("w1", "show", last), [[last], {}])
            equal(w0.call("w1", "show", 1, last, a=last), [[1, last], {"a": last}])


def proxy_of_functions_are_their_names():
    with started() as (w0, w1):
        def other(x):
            return add(x, 10)

        class Account:
            def deposit(self, x):
                return 2 * x
        account = Account()
        w1.register(add)
        w1.register("named", other)
        w1.register(account.deposit)
        equal([w0.call("w1", add, 1, y=2), w0.call("w1", other, 1), w0.call_async("w1", account.deposit, 4).wait()], [3, 11, 8])
        r = w0.remote("w1", other, 5)
        equal(r.call(add, y=3), 18)
        del r
        contains(str(refused(TypeError, w0.call, "w1", 7)), "the function is 7")
        refused(TypeError, w0.call, "w1", None)


def proxy_of_the_worker_of_a_process():
    with tempfile.TemporaryDirectory() as folder:
        equal(programs_end(program("""
@tenrec.register("sum")
def add(x, y):
    return x + y
with tenrec.init_rpc(overrides=overrides) as me:
    print(tenrec.proxy(me.name).sum(40, y=2), tenrec.call(me.name, add, x=1, y=2), tenrec.call_async(me.name, "sum", 1, y=4).result(),
          tenrec.remote(me.name, add, 1, y=5).to_here())
""", folder=folder))[0], "42 3 5 6\n")


if __name__ == "__main__":
    main(globals(), "proxy_", "python_proxy")
