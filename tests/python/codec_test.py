# SPDX-License-Identifier: Apache-2.0
"""codec_test.py WHY - objects of registered classes."""
import collections
import dataclasses
import datetime
import decimal
import enum

from cases import contains, equal, main, true
from workers import refused, started, tenrec


class Color(enum.Enum):
    RED = object()  # which does not travel: the name does


class Level(enum.IntEnum):
    HIGH = 3


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5
    size: int = dataclasses.field(init=False, default=2)


@dataclasses.dataclass
class Shape:
    points: list
    color: Color
    made: datetime.datetime


class Own:
    def __init__(self, text):
        self.text = text


Pair = collections.namedtuple("Pair", "a b")
UTC = datetime.timezone.utc


def echo(value, **keywords):
    return [value, keywords]


def register():
    for cls in (Color, Level, Right, Point, Shape, Pair, datetime.datetime, datetime.date, datetime.timedelta):
        equal(tenrec.register_type(cls), cls)
    tenrec.register_type(decimal.Decimal, to=str, from_=decimal.Decimal)


def codec_objects_of_registered_classes_arrive():
    register()
    values = [Color.RED, Level.HIGH, Right.READ | Right.WRITE, Point(1), Pair(1, [Point(2, 3.0)]), datetime.date(2030, 1, 2), datetime.timedelta(-1, 5),
              decimal.Decimal("1.50"), Shape([Point(1), Point(2)], Color.RED, datetime.datetime(2030, 1, 2, 3, 4, 5, 6, UTC))]
    with started() as (w0, w1):
        w1.register(echo)
        for value in values:
            got, keywords = w0.call("w1", "echo", value, deep={"of": [value]})
            equal((got, type(got), keywords), (value, type(value), {"deep": {"of": [value]}}))
        equal(w0.call_async("w1", "echo", values).wait()[0], values)
        true(w0.remote("w1", "echo", Point(1)).to_here()[0] == Point(1), "a reference fetches it")


def codec_travels_as_a_plain_map():
    seen = []
    register()
    with started() as (w0, w1):
        w1.register("see", lambda value: seen.append(value))
        w0.call("w1", "see", {"tenrec.type": "Unknown", "value": 1})
        w0.call("w1", "see", {"tenrec.type": "Point", "other": 1})
        w0.call("w1", "see", {"tenrec.type": 7, "value": 1})
        w0.call("w1", "see", {"tenrec.type": "Point", "value": {"x": 7}})
        equal(seen, [{"tenrec.type": "Unknown", "value": 1}, {"tenrec.type": "Point", "other": 1}, {"tenrec.type": 7, "value": 1}, Point(7)])


def codec_refuses_what_a_class_refuses():
    register()
    with started() as (w0, w1):
        w1.register(echo)
        for value in ({"z": 1}, 5, None):
            refused(TypeError, w0.call, "w1", "echo", {"tenrec.type": "Point", "value": value})
        refused(KeyError, w0.call, "w1", "echo", {"tenrec.type": "Color", "value": "__class__"})
        refused(ValueError, w0.call, "w1", "echo", {"tenrec.type": "datetime", "value": "never"})
        w1.register("bad", lambda: {"tenrec.type": "Level", "value": "LOW"})
        refused(KeyError, w0.call, "w1", "bad")
        refused(TypeError, w0.call, "w1", "echo", Own("x"))


def codec_class_that_makes_itself_is_no_endless_loop():
    with started() as (w0, w1):
        w1.register(echo)
        tenrec.register_type(Own, to=lambda o: o, from_=Own)
        contains(str(refused(ValueError, w0.call, "w1", "echo", Own("x"))), "nested deeper")

        def fail(o):
            raise ZeroDivisionError("to")
        tenrec.register_type(Own, to=fail, from_=Own)
        refused(ZeroDivisionError, w0.call, "w1", "echo", Own("x"))


def codec_registration_is_checked():
    refused(TypeError, tenrec.register_type, Own("x"))
    contains(str(refused(TypeError, tenrec.register_type, type("Other", (), {}))), "no dataclass, enum or named tuple")
    refused(TypeError, lambda: tenrec.register_type(Own, to=str))
    register()
    contains(str(refused(ValueError, tenrec.register_type, type("Point", (tuple,), {"_fields": ()}))), "another class")


if __name__ == "__main__":
    main(globals(), "codec_", "python_codec")
