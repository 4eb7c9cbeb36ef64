# SPDX-License-Identifier: Apache-2.0
"""proxy.py - calls that look like calls: names and arguments for the library, and workers as objects."""
from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ._time import to_ms

if TYPE_CHECKING:
    from .worker import Worker

_NAME = "__tenrec_name__"


def remember_name(function: Any, name: str) -> None:
    """Notes under which name a function was registered first. Methods, classes and functions in C have their own."""
    if isinstance(function, FunctionType) and not hasattr(function, _NAME):
        setattr(function, _NAME, name)


def name_of(function: str | Callable[..., Any]) -> str:
    """Returns the name under which a function was registered: that it has in this process, else its own."""
    if isinstance(function, str):
        return function
    name = getattr(function, "__name__", None)
    if isinstance(function, FunctionType):
        name = getattr(function, _NAME, name)
    if not isinstance(name, str) or not callable(function):
        raise TypeError(f"the function is {function!r}, expected its name or a function that was registered")
    return name


def packed(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments as they travel: keyword arguments are a last map {"**": {...}}. None are an empty one where the last
    argument could be taken for them."""
    if keywords or (args and isinstance(args[-1], dict) and args[-1].keys() == {"**"}):
        return (*args, {"**": keywords})
    return args


class Proxy:
    """The functions of a worker as methods: proxy(to).add(40, y=2). Each waits for its result."""

    def __init__(self, worker: Worker, to: str, timeout: float | None) -> None:
        self._worker, self._to, self._ms = worker, to, to_ms(timeout)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):  # Python's own protocols, such as copy, ask for these
            raise AttributeError(name)

        def call(*args: Any, **keywords: Any) -> Any:
            return self._worker._call(self._to, name, packed(args, keywords), self._ms)  # pylint: disable=protected-access
        return call

    def __repr__(self) -> str:
        return f"<tenrec_rpc.Proxy of '{self._to}'>"
