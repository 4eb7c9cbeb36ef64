# SPDX-License-Identifier: Apache-2.0
"""error_test.py WHY - errors as exceptions, and exceptions as errors."""
import builtins
import os
import pickle
import re
import threading
import traceback

from cases import contains, equal, main, true
from workers import refused, started, tenrec

HEADER = os.path.join(os.path.dirname(__file__), "../../include/tenrec/error.h")


def statuses():
    with open(HEADER, encoding="utf-8") as f:
        return re.findall(r"X\((E\w+),\s*-", f.read())


def refuse():
    raise ValueError("no luck")


def error_of_a_call_has_its_class_and_status():
    with started() as (w0, w1):
        for error, built_in, status, args in [(tenrec.NotFoundError, LookupError, "ENOFUNCTION", ("w1", "nothing")),
                                              (tenrec.NotFoundError, LookupError, "EPEER_UNKNOWN", ("w7", "nothing"))]:
            e = refused(error, w0.call, *args)
            true(isinstance(e, built_in) and isinstance(e, tenrec.Error), f"class of {e!r}")
            equal((e.status, e.from_callee), (status, False))
            contains(str(e), f"{status}: ")


def error_of_a_deadline_is_a_timeout():
    gate = threading.Event()
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        e = refused(builtins.TimeoutError, w0.call, "w1", "wait", timeout=0.05)
        equal((type(e), e.status), (tenrec.TimeoutError, "ETIMEDOUT"))
        gate.set()


def error_of_a_future_that_is_not_done_leaves_it_alone():
    gate = threading.Event()
    with started() as (w0, w1):
        w1.register("wait", gate.wait)
        f = w0.call_async("w1", "wait")
        contains(str(refused(builtins.TimeoutError, f.wait, 0.01)), "not done after 10 ms")
        gate.set()
        equal(f.wait(), True)


def error_of_any_exception_of_a_function_is_remote():
    with started() as (w0, w1):
        w1.register(refuse)
        e = refused(RuntimeError, w0.call, "w1", "refuse")
        equal((e.status, e.worker, e.from_callee), ("EREMOTE", "w1", True))
        contains(e.text, "ValueError: no luck (error_test.py:")
        contains(e.text, "in refuse)")


def error_of_a_built_in_class_is_of_it():
    def raises(name):
        raise {"own": type("Own", (ValueError,), {})}.get(name) or getattr(builtins, name)("why")
    with started() as (w0, w1):
        w1.register(raises)
        for name in ["ValueError", "KeyError", "FileNotFoundError", "TimeoutError", "ZeroDivisionError", "SyntaxError", "NotImplementedError", "MemoryError"]:
            e = refused(getattr(builtins, name), w0.call, "w1", "raises", name)
            true(isinstance(e, tenrec.RemoteError) and "why" in str(e) and e.from_callee, f"class and text of {e!r}")
            again = pickle.loads(pickle.dumps(e))
            equal((type(again), str(again), again.worker), (type(e), str(e), "w1"))
        for name in ["own", "Exception", "RuntimeError", "StopIteration", "KeyboardInterrupt", "SystemExit", "GeneratorExit"]:
            equal(type(refused(tenrec.RemoteError, w0.call, "w1", "raises", name)), tenrec.RemoteError)


def error_shows_where_the_function_failed_as_a_note():
    def outer():
        refuse()
    with started() as (w0, w1):
        w1.register(outer)
        e = refused(ValueError, w0.call, "w1", "outer")
        line = refuse.__code__.co_firstlineno + 1
        equal(e.places, (f"error_test.py:{line} in refuse", f"error_test.py:{outer.__code__.co_firstlineno + 1} in outer"))
        equal(e.text, f"ValueError: no luck (error_test.py:{line} in refuse)")
        printed = "".join(traceback.format_exception(e))
        contains(printed, f"""no luck (error_test.py:{line} in refuse)
Traceback of worker 'w1' (most recent call last):
  File "error_test.py", line {outer.__code__.co_firstlineno + 1}, in outer
  File "error_test.py", line {line}, in refuse
""")
        again = pickle.loads(pickle.dumps(e))
        equal((again.__notes__, again.places), (e.__notes__, e.places))


def error_of_a_coroutine_shows_its_own_places_only():
    async def later():
        refuse()
    with started() as (w0, w1):
        w1.register(later)
        e = refused(ValueError, w0.call, "w1", "later")
        equal([place.split(" in ")[1] for place in e.places], ["refuse", "later"])


def error_that_passes_a_worker_has_the_places_of_both():
    with started(3) as (w0, w1, w2):
        w2.register(refuse)
        w1.register("pass_on", lambda: w1.call("w2", "refuse"))
        e = refused(ValueError, w0.call, "w1", "pass_on")
        equal([place.split(" in ")[1] for place in e.places], ["refuse", "<lambda>"])
        equal(e.text.count("error_test.py"), 1)


def error_note_is_bounded_and_has_the_innermost_places():
    def deep(n):
        return deep(n - 1) if n else refuse()

    def long():
        raise ValueError("\u00e9" * 5000)
    with started() as (w0, w1):
        w1.register(deep)
        w1.register(long)
        e = refused(ValueError, w0.call, "w1", "deep", 300)
        true(2 < len(e.places) < 20, f"number of places in {e.places}")
        contains(e.places[0], " in refuse")
        contains(e.__notes__[0], "(most recent call last):\n  ...\n  File")
        e = refused(ValueError, w0.call, "w1", "long")
        contains(e.text, "\u00e9... (error_test.py:")
        equal(len(e.places), 1)


def error_without_a_place_has_no_note():
    with started() as (w0, w1):
        w1.register("number", int)  # in C
        e = refused(ValueError, w0.call, "w1", "number", "x")
        equal((e.places, hasattr(e, "__notes__")), ((), False))
        equal(refused(tenrec.NotFoundError, w0.call, "w1", "nothing").places, ())


def error_that_a_function_raises_is_that_of_the_caller():
    def raises(name):
        if name == "status":
            raise tenrec.Error("full", status="ETOOBIG")
        if name == "unknown":
            raise tenrec.Error("odd", status="ENOSUCH")
        raise getattr(tenrec, name)("a text")
    with started() as (w0, w1):
        w1.register(raises)
        for name in ["TimeoutError", "ConnectionError", "PermissionError", "InvalidError", "NotFoundError", "UnsupportedError", "CanceledError",
                     "RemoteError", "NoMemoryError", "SystemError"]:
            e = refused(tenrec.Error, w0.call, "w1", "raises", name)
            equal((type(e), e.text, e.from_callee), (getattr(tenrec, name), "a text", True))
        equal(refused(tenrec.Error, w0.call, "w1", "raises", "status").status, "ETOOBIG")
        equal(refused(tenrec.Error, w0.call, "w1", "raises", "unknown").status, "EREMOTE")


def error_of_an_exception_without_a_text_is_told():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("mute")

    def raises():
        raise Mute
    with started() as (w0, w1):
        w1.register(raises)
        w1.register("exits", lambda: exit(3))
        contains(refused(tenrec.RemoteError, w0.call, "w1", "raises").text, "Mute")
        contains(refused(tenrec.RemoteError, w0.call, "w1", "exits").text, "SystemExit: 3")


def error_of_a_text_that_is_no_utf8_arrives_escaped():
    """File names that os.fsdecode has made have halves of surrogate pairs."""
    def raises(own, text):
        raise (tenrec.InvalidError if own else ValueError)(text.encode().decode("unicode_escape"))
    with started() as (w0, w1):
        w1.register(raises)
        for text in (r"a\udc80b", r"a\0b", r"\ud800"):
            shown = text.replace(r"\0", r"\x00")
            contains(refused(tenrec.RemoteError, w0.call, "w1", "raises", False, text).text, f"ValueError: {shown} (error_test.py:")
            equal(refused(tenrec.InvalidError, w0.call, "w1", "raises", True, text).text, shown)


def error_of_each_status_can_be_raised():
    with started(1) as (w0,):
        def raises(status):
            raise tenrec.Error("x", status=status)
        w0.register(raises)
        true(len(statuses()) > 20, "the header lists the statuses")
        for status in statuses():
            equal(refused(tenrec.Error, w0.call, "w0", "raises", status).status, status)


def error_of_wrong_arguments_is_pythons():
    with started(1) as (w0,):
        for timeout in [0, -1, float("nan")]:
            contains(str(refused(ValueError, w0.call, "w0", "f", timeout=timeout)), "timeout is")
        contains(str(refused(TypeError, w0.call, "w0", "f", timeout="5")), "timeout is '5', expected a number of seconds")
        refused(TypeError, w0.call, "w0", 7)
        refused(TypeError, w0.register, "f", 7)
        contains(str(refused(ValueError, w0.call, "w0\0", "f")), "null")
        contains(str(refused(tenrec.Error, w0.register, "tenrec.mine", refuse)), "tenrec.")
        w0.register(refuse)
        equal(refused(tenrec.Error, w0.register, refuse).status, "EEXIST")


def error_of_a_configuration_names_the_place():
    wrong = "backend: a\nbackends:\n  a: { plugins: tensorpipe }\n"
    e = refused(ValueError, tenrec.Worker, config=wrong)
    equal((type(e), e.status), (tenrec.InvalidError, "ECONFIG"))
    contains(e.text, "config:3:")
    contains(refused(tenrec.Error, tenrec.Worker, config="/no/such.yaml").text, "/no/such.yaml")
    contains(refused(tenrec.InvalidError, tenrec.Worker, overrides={"worker.nam": "x"}).text, "nam")
    contains(refused(tenrec.InvalidError, tenrec.Worker, config={"backend": "nosuch"}).text, "nosuch")


if __name__ == "__main__":
    main(globals(), "error_", "python_error")
