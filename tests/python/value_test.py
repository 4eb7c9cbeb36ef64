# SPDX-License-Identifier: Apache-2.0
"""value_test.py WHY - arguments and results that are no tensors."""
from cases import contains, equal, main, true
from workers import LIMIT_S, refused, started, tenrec

VALUES = [None, True, False, 0, -(1 << 63), (1 << 63) - 1, 2.5, float("inf"), "", "ä\0b", b"", b"\0\xff", [], [1, [2, None]], {},
          {"a": {"b": [1.0, "ü"]}, "": 1}]


def echo(x):
    return x


def value_comes_back_as_it_went():
    with started() as (w0, w1):
        w1.register(echo)
        for x in VALUES + [VALUES]:
            y = w0.call("w1", "echo", x)
            equal(y, x)
            equal(type(y), type(x), f"type of {x!r}")


def value_of_a_tuple_is_a_list_and_of_a_bytearray_bytes():
    with started() as (w0, w1):
        w1.register(echo)
        equal(w0.call("w1", "echo", (1, (2,))), [1, [2]])
        equal(w0.call("w1", "echo", bytearray(b"ab")), b"ab")


def value_that_cannot_be_sent_is_named():
    with started() as (w0, w1):
        w1.register(echo)
        w1.register("odd", lambda: {1: 2})
        endless = []
        endless.append(endless)
        deep = 1
        for _ in range(65):
            deep = {"in": deep}
        for x, error, text in [({1}, TypeError, "{1} cannot be sent"), ([1j], TypeError, "1j cannot be sent"),
                               ({1: 2}, TypeError, "a key of a dict is 1, expected a str"), ({"a\0": 1}, ValueError, "zero character"),
                               (1 << 63, OverflowError, "too big"), ("\ud800", UnicodeEncodeError, "surrogates"),
                               (endless, ValueError, "nested deeper than 64"), (deep, ValueError, "nested deeper than 64")]:
            contains(str(refused(error, w0.call, "w1", "echo", x)), text)
        contains(str(refused(tenrec.RemoteError, w0.call, "w1", "odd")), "a key of a dict is 1")
        equal(w0.call("w1", "echo", 1), 1)


def value_that_a_function_returns_and_that_does_not_travel_is_refused():
    with started() as (w0, w1):
        w1.register("new", set)
        error = refused(tenrec.UnsupportedError, w0.call, "w1", "new")
        true(isinstance(error, NotImplementedError), "the built-in class fits")
        contains(error.text, "Python object")


def value_changes_in_a_list_while_it_is_sent_do_no_harm():
    class Shrinks:
        """Has a tensor, and empties the list that it is in when it is asked for it."""

        def __dlpack__(self):
            del items[:]
            return memoryview(b"x") # no capsule

    items = [Shrinks(), "a" * 100, "b" * 100]
    with started() as (w0, w1):
        w1.register(echo)
        refused(ValueError, w0.call, "w1", "echo", items)
        equal(w0.call("w1", "echo", items), [])


def value_of_many_calls_is_that_of_its_call():
    with started() as (w0, w1):
        w1.register(echo)
        futures = [w0.call_async("w1", "echo", {"i": i}) for i in range(300)]
        equal([f.wait(LIMIT_S)["i"] for f in futures], list(range(300)))


if __name__ == "__main__":
    main(globals(), "value_", "python_value")
