# SPDX-License-Identifier: Apache-2.0
"""process.py - the worker of this process, for programs that have one."""
from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

from ._core import Tensor
from .future import Future
from .proxy import remember_name
from .rref import RRef
from .worker import Config, Worker

F = TypeVar("F", bound=Callable[..., Any])

P = ParamSpec("P")
T = TypeVar("T")

_here: _Here | None = None
_registered: list[tuple[str, Callable[..., Any]]] = []


class _Here(Worker):
    """The worker of init_rpc. After its shutdown the process can become a worker again."""

    def shutdown(self, graceful: bool = True, timeout: float | None = None) -> None:
        global _here  # pylint: disable=global-statement
        try:
            super().shutdown(graceful, timeout)  # serves calls until the others are done, too
        finally:
            if _here is self:
                _here = None


@overload
def register(function: F, /) -> F: ...


@overload
def register(name: str, /) -> Callable[[F], F]: ...


@overload
def register(name: str, function: F, /) -> F: ...


def register(name: Any, function: Any = None, /) -> Any:
    """As Worker.register, for each worker that init_rpc of this process starts."""
    if function is None and isinstance(name, str):
        return lambda f: register(name, f)
    if function is None:
        name, function = name.__name__, name
    if _here:
        _here.register(name, function)
    remember_name(function, name)
    _registered.append((name, function))
    return function


def _print_interrupt(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """One line for Ctrl-C, which ends all workers of a terminal at once."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    own = os.path.dirname(__file__)
    frames = [f for f in traceback.extract_tb(trace) if os.path.dirname(f.filename) != own]
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    print(f"interrupted{where}", file=sys.stderr)


def init_rpc(name: str | None = None, *, config: Config | None = None,
             overrides: Mapping[str, Any] | None = None,
             as_tensor: Callable[[Tensor], Any] | None = None) -> Worker:
    """Makes this process a worker, and returns it when all members have joined; the arguments are
    those of Worker."""
    global _here  # pylint: disable=global-statement
    if _here:
        raise RuntimeError("this process is a worker already: use the class Worker for another")
    made = _Here(name, config=config, overrides=overrides, as_tensor=as_tensor)
    for known, function in _registered:
        made.register(known, function)
    if "TENREC_RUN_ID" in os.environ and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_interrupt  # under `tenrec run`, which names the worker in front of its lines
    _here = made  # functions may run, and use call(), before init_rpc returns
    try:
        made.init_rpc()
    except BaseException:
        _here = None
        raise
    return made


def get_worker() -> Worker:
    """Returns the worker of this process."""
    if not _here:
        raise RuntimeError("this process is no worker yet: call tenrec.init_rpc() first")
    return _here


@overload
def call(to: str, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **keywords: P.kwargs) -> T: ...


@overload
def call(to: str, function: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T: ...


@overload
def call(to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None, **keywords: Any) -> Any: ...


@overload
def call(to: str, function: str, /, *args: Any, timeout: float | None = None, **keywords: Any) -> Any: ...


def call(to: str, function: Any, /, *args: Any, timeout: Any = None, **keywords: Any) -> Any:
    """As Worker.call."""
    return get_worker().call(to, function, *args, timeout=timeout, **keywords)


@overload
def call_async(to: str, function: Callable[P, Any], /, *args: P.args, **keywords: P.kwargs) -> Future: ...


@overload
def call_async(to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None, **keywords: Any) -> Future: ...


@overload
def call_async(to: str, function: str, /, *args: Any, timeout: float | None = None, **keywords: Any) -> Future: ...


def call_async(to: str, function: Any, /, *args: Any, timeout: Any = None, **keywords: Any) -> Future:
    """As Worker.call_async."""
    return get_worker().call_async(to, function, *args, timeout=timeout, **keywords)


@overload
def remote(to: str, function: Callable[P, Any], /, *args: P.args, **keywords: P.kwargs) -> RRef: ...


@overload
def remote(to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None, **keywords: Any) -> RRef: ...


@overload
def remote(to: str, function: str, /, *args: Any, timeout: float | None = None, **keywords: Any) -> RRef: ...


def remote(to: str, function: Any, /, *args: Any, timeout: Any = None, **keywords: Any) -> RRef:
    """As Worker.remote."""
    return get_worker().remote(to, function, *args, timeout=timeout, **keywords)


def proxy(to: str, timeout: float | None = None) -> Any:
    """As Worker.proxy."""
    return get_worker().proxy(to, timeout)


def rref(value: Any) -> RRef:
    """As Worker.rref."""
    return get_worker().rref(value)


def shutdown(graceful: bool = True, timeout: float | None = None) -> None:
    """As Worker.shutdown; afterwards this process can become a worker again."""
    get_worker().shutdown(graceful, timeout)
