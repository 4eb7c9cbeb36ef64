# SPDX-License-Identifier: Apache-2.0
"""codecs.py - objects of classes that a program registers travel as plain values.

What travels is a map of two entries, {"tenrec.type": NAME, "value": plain}. Nothing is pickled: a receiver makes objects
of the classes that it has registered itself, and any other one gets the map.
"""
from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Callable
from typing import Any, TypeVar, overload

from . import _core

C = TypeVar("C", bound=type)

_TYPE, _VALUE = "tenrec.type", "value"

_encoders: dict[type, Callable[[Any], Any]] = {}  # by class
_decoders: dict[str, tuple[type, Callable[[Any], Any]]] = {}  # by name

_KNOWN: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: (datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: (lambda d: [d.days, d.seconds, d.microseconds], lambda v: datetime.timedelta(*v)),
}


def _of_class(cls: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The functions for a class of which the way is known."""
    if cls in _KNOWN:
        return _KNOWN[cls]
    if issubclass(cls, enum.Flag):
        return lambda o: o.value, cls
    if issubclass(cls, enum.Enum):
        return lambda o: o.name, lambda name: cls[name]
    make: Any = cls
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
        return lambda o: {name: getattr(o, name) for name in names}, lambda v: make(**v)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return list, lambda v: cls(*v)
    raise TypeError(f"'{cls.__qualname__}' is no dataclass, enum or named tuple: pass to= and from_=")


@overload
def register_type(cls: C, name: str | None = None, *, to: Callable[[Any], Any], from_: Callable[[Any], Any]) -> C: ...


@overload
def register_type(cls: C, name: str | None = None) -> C: ...


def register_type(cls: Any, name: str | None = None, *, to: Callable[[Any], Any] | None = None, from_: Callable[[Any], Any] | None = None) -> Any:
    """Lets objects of a class travel, as arguments and in results; also a decorator. Each process registers the class that
    sends or receives its objects. For a dataclass, enum, named tuple, and those of datetime no function is needed.

    name   on the way; None: that of the class
    to     returns a plain value for an object, which may have objects of registered classes in it
    from_  returns an object for what a peer has sent: check the values
    """
    if not isinstance(cls, type):
        raise TypeError(f"{cls!r} is no class")
    if (to is None) != (from_ is None):
        raise TypeError("to= and from_= belong together")
    encode, decode = _of_class(cls) if to is None or from_ is None else (to, from_)
    name = cls.__name__ if name is None else name
    if _decoders.get(name, (cls,))[0] is not cls:
        raise ValueError(f"'{name}' is the name of another class that was registered: pass name=")
    _encoders[cls] = lambda o: {_TYPE: name, _VALUE: encode(o)}
    _decoders[name] = cls, decode
    return cls


def _decode(received: dict[str, Any]) -> Any:
    """Makes an object of a map of two entries, or returns the map."""
    name = received.get(_TYPE)
    if not isinstance(name, str) or _VALUE not in received or name not in _decoders:
        return received
    return _decoders[name][1](received[_VALUE])


_core.use_codecs(_encoders, _decode)
