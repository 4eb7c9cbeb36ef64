# SPDX-License-Identifier: Apache-2.0
"""worker.py - a member of a group, which calls functions of the others and offers its own."""
from __future__ import annotations

import asyncio
import atexit
import inspect
import json
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from . import _core
from ._core import Tensor
from ._time import to_ms
from .callbacks import Callbacks
from .coroutine import coroutine_starter
from .errors import Error, make
from .future import Future, Transfer
from .later import answers_later, later_starter
from .link import Link
from .member import Member, View
from .proxy import Proxy, name_of, packed, remember_name
from .region import Read, Region, Write, own_memory, rights_of, to_entries
from .rref import RRef
from .weights import Weights

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")
W = TypeVar("W", bound="Worker")
Config = str | os.PathLike[str] | Mapping[str, Any]

_lock = threading.Lock()  # of each worker's _callbacks
_alive: weakref.WeakSet[Worker] = weakref.WeakSet()


def _texts(overrides: Mapping[str, Any]) -> dict[str, str]:
    # JSON is YAML; a text stands for itself, so that "5s" needs no second quotes.
    return {key: value if isinstance(value, str) else json.dumps(value)
            for key, value in overrides.items()}


def _names(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


class Worker(_core.Worker):
    """A worker that is not started yet. As a context manager, also of `async with`, it joins its group
    at the beginning, unless it has, and leaves it at the end: after an exception at once.

    name       None: that of the configuration ("worker0", by its rank)
    config     path of a YAML file, its text (of more than one line), or a dict of its contents;
               None: $TENREC_CONFIG, else the built-in one
    overrides  {"worker.rpc_timeout": "5s", ...}: stronger than file and environment
    as_tensor  called for each received Tensor, returns what functions and callers get in its place:
               numpy.asarray, torch.from_dlpack

    Raises InvalidError for a wrong configuration.
    """

    def __init__(self, name: str | None = None, *, config: Config | None = None,
                 overrides: Mapping[str, Any] | None = None,
                 as_tensor: Callable[[Tensor], Any] | None = None) -> None:
        path = text = None
        if isinstance(config, Mapping):
            text = json.dumps(config)
        elif config is not None:
            given = os.fspath(config)
            path, text = (None, given) if "\n" in given else (given, None)
        wanted = _texts(overrides or {})
        if name is not None:
            wanted["worker.name"] = name
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
        self._callbacks: Callbacks | None = None
        self._me: Member | None = None
        self._open(path, text, wanted, as_tensor)
        _alive.add(self)

    def __del__(self) -> None:
        self._stop()

    # ---- life

    @overload
    def register(self, function: F, /) -> F: ...

    @overload
    def register(self, name: str, /) -> Callable[[F], F]: ...

    @overload
    def register(self, name: str, function: F, /) -> F: ...

    def register(self, name: Any, function: Any = None, /) -> Any:
        """Registers a function for the others: register(f), register("name", f), or as a decorator,
        @register or @register("name"). Before init_rpc or later.

        It runs on a thread of Tenrec's pool, several calls at once, and may block. A coroutine
        function runs on the asyncio loop of the caller of register, else on one of its own.
        """
        if function is None and isinstance(name, str):
            return lambda f: self.register(name, f)
        if function is None:
            name, function = name.__name__, name
        if not callable(function):
            raise TypeError(f"'{name}' is {function!r}, expected a function")
        if answers_later(function):
            self._register(name, later_starter(function), True)
        elif inspect.iscoroutinefunction(function):
            self._register(name, coroutine_starter(function), True)
        else:
            self._register(name, function, False)
        remember_name(function, name)
        return function

    def init_rpc(self) -> None:
        """Joins the group and starts to serve; returns when all members of a static group are
        there, at most after `init_timeout` of the configuration."""
        self._init_rpc()
        self._me = self.member()

    def shutdown(self, graceful: bool = True, timeout: float | None = None) -> None:
        """Leaves the group: together with the others, when no call is under way, or at once. The
        worker is down afterwards, also after an error."""
        try:
            self._shutdown(graceful, to_ms(timeout))
        finally:
            self._forget_loops()

    def __enter__(self: W) -> W:
        if not self.running:
            self.init_rpc()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.running:
            self.shutdown(graceful=kind is None)

    async def __aenter__(self: W) -> W:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Lets `loop` run the callbacks of futures."""
        if loop not in self._loops:
            loop.add_reader(self._fd(), self._dispatch)
            self._loops.add(loop)

    def _watch_callbacks(self) -> None:
        """Lets a thread of the package run the callbacks of futures."""
        with _lock:
            if self._callbacks is None:
                self._callbacks = Callbacks(self, self._fd())

    def _forget_loops(self) -> None:
        with _lock:
            callbacks, self._callbacks = self._callbacks, None
        if callbacks:
            callbacks.stop()
        if not self._loops and not callbacks:
            return
        self._dispatch()  # the calls that the shutdown has canceled
        for loop in self._loops:
            try:
                loop.call_soon_threadsafe(loop.remove_reader, self._fd())
            except RuntimeError:  # closed
                pass
        self._loops.clear()

    # ---- calls

    @overload
    def call(self, to: str, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **keywords: P.kwargs) -> T: ...

    @overload
    def call(self, to: str, function: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T: ...

    @overload
    def call(self, to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None, **keywords: Any) -> Any: ...

    @overload
    def call(self, to: str, function: str, /, *args: Any, timeout: float | None = None, **keywords: Any) -> Any: ...

    def call(self, to: str, function: Any, /, *args: Any, timeout: Any = None, **keywords: Any) -> Any:
        """Returns the result of function(*args, **keywords) on the worker `to`, or raises its error.

        function  its name there, or the function, of which the name is used
        timeout   seconds; None: worker.rpc_timeout of the configuration; math.inf: no limit
        """
        return self._call(to, name_of(function), packed(args, keywords), to_ms(timeout))

    @overload
    def call_async(self, to: str, function: Callable[P, Any], /, *args: P.args, **keywords: P.kwargs) -> Future: ...

    @overload
    def call_async(self, to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None, **keywords: Any) -> Future: ...

    @overload
    def call_async(self, to: str, function: str, /, *args: Any, timeout: float | None = None, **keywords: Any) -> Future: ...

    def call_async(self, to: str, function: Any, /, *args: Any, timeout: Any = None, **keywords: Any) -> Future:
        """Starts the call and returns its Future."""
        return cast(Future, self._call_async(to, name_of(function), packed(args, keywords), to_ms(timeout)))

    def call_one_way(self, to: str, function: str | Callable[..., Any], /, *args: Any, **keywords: Any) -> None:
        """Calls the function without an answer: returns when the call is handed to the backend. Neither the function's errors
        nor a loss of the call are reported."""
        self._call_one_way(to, name_of(function), packed(args, keywords), to_ms(None))

    def call_into(self, into: Any, to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None = None, **keywords: Any) -> Any:
        """As call, and receives the first tensor of the result in the memory of `into`, of the same type and shape: a tensor
        of Tenrec, or any object with a buffer or DLPack, contiguous. After an error its elements are undefined."""
        return self._call(to, name_of(function), packed(args, keywords), to_ms(timeout), own_memory(into))

    def call_into_async(self, into: Any, to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None = None,
                        **keywords: Any) -> Future:
        """Starts it and returns its Future. The memory is used until then."""
        return cast(Future, self._call_async(to, name_of(function), packed(args, keywords), to_ms(timeout), own_memory(into)))

    @overload
    def remote(self, to: str, function: Callable[P, Any], /, *args: P.args, **keywords: P.kwargs) -> RRef: ...

    @overload
    def remote(self, to: str, function: str | Callable[..., Any], /, *args: Any, timeout: float | None, **keywords: Any) -> RRef: ...

    @overload
    def remote(self, to: str, function: str, /, *args: Any, timeout: float | None = None, **keywords: Any) -> RRef: ...

    def remote(self, to: str, function: Any, /, *args: Any, timeout: Any = None, **keywords: Any) -> RRef:
        """Calls the function on `to`, which keeps the result, and returns a reference to it at once. The result may be
        any object of Python."""
        return cast(RRef, self._remote(to, name_of(function), packed(args, keywords), to_ms(timeout)))

    def proxy(self, to: str, timeout: float | None = None) -> Any:
        """Returns an object whose methods are the functions of the worker `to`: proxy("b").add(40, y=2). For a type
        checker give it the type of a class, or a Protocol, with these methods: b: Adder = worker.proxy("b").

        timeout  of each call, in seconds, as of call
        """
        return Proxy(self, to, timeout)

    def rref(self, value: Any) -> RRef:
        """Returns a reference to a value that this worker owns; any object of Python."""
        return cast(RRef, self._rref(value))

    # ---- regions

    def region(self, memory: Any, rights: str, own: bool = False) -> Region:
        """Registers memory that other workers of the group read and write: a tensor of Tenrec, or
        any object with a buffer or DLPack, contiguous. It is shared until the region has ended.

        rights  "r", "w" or "rw"
        own     a region of its own, also of memory that is registered: its revoke ends no other
        """
        return cast(Region, self._region(own_memory(memory), rights_of(rights, own)))

    def read(self, ref: bytes, into: Any, offset: int = 0, timeout: float | None = None, *,
             then: str | None = None, args: Iterable[Any] = ()) -> Any:
        """Reads the bytes of a region from `offset` on into the memory of `into`, all of it.

        ref      Region.ref of its owner
        timeout  seconds; None: worker.rpc_timeout. It ends the wait: bytes may arrive later
        then     a function of the owner, which runs there once after the transfer: then(*args); its
                 result is returned. None: none
        """
        return self.transfer([Read(ref, into, offset)], timeout, then=then, args=args)

    def read_async(self, ref: bytes, into: Any, offset: int = 0, timeout: float | None = None, *,
                   then: str | None = None, args: Iterable[Any] = ()) -> Transfer:
        """Starts the read and returns its Future, of the result of `then`, or None."""
        return self.transfer_async([Read(ref, into, offset)], timeout, then=then, args=args)

    def write(self, ref: bytes, data: Any, offset: int = 0, timeout: float | None = None, *,
              then: str | None = None, args: Iterable[Any] = ()) -> Any:
        """Writes all bytes of `data` to a region, from `offset` on; as read. Returns when the owner
        has them, and `then`, which sees them, has returned."""
        return self.transfer([Write(ref, data, offset)], timeout, then=then, args=args)

    def write_async(self, ref: bytes, data: Any, offset: int = 0, timeout: float | None = None, *,
                    then: str | None = None, args: Iterable[Any] = ()) -> Transfer:
        """Starts the write and returns its Future, of the result of `then`, or None."""
        return self.transfer_async([Write(ref, data, offset)], timeout, then=then, args=args)

    def transfer(self, entries: Iterable[Read | Write], timeout: float | None = None, *,
                 then: str | None = None, args: Iterable[Any] = ()) -> Any:
        """Reads and writes regions in one batch, which has no order: the targets of its reads may
        not overlap, nor those of its writes. The error of the first entry that failed names it.
        `then` as of read: it runs if all entries, which have one owner, have ended well."""
        return self._transfer(to_entries(entries), to_ms(timeout), then, tuple(args))

    def transfer_async(self, entries: Iterable[Read | Write], timeout: float | None = None, *,
                       then: str | None = None, args: Iterable[Any] = ()) -> Transfer:
        """Starts the batch and returns its Future, of the result of `then`, or None."""
        return cast(Transfer, self._transfer_async(to_entries(entries), to_ms(timeout), then, tuple(args)))

    # ---- weights

    def weights(self, name: str, keeper: str) -> Weights:
        """Makes a handle on a set of weights.

        keeper   name of the worker that keeps the record, the same at all members
        """
        return cast(Weights, self._weights(name, keeper))

    # ---- links

    def bind(self, secret: bool = False) -> bytes:
        """Returns the record of this worker, at most 1 KiB, for Worker.connect of another process.
        This worker is the only member of its group.

        secret  the record carries the group secret: for a peer that is not configured with it.
                Any reader of the record can then call this worker, and both connect
        """
        return self._bind(secret)

    def connect(self, record: bytes) -> Link:
        """Lets this worker call the worker of a record by Link.name, and makes this
        one known to it. Does not wait for the peer. A further record of the same worker gives a link
        that shares its end with the first."""
        return cast(Link, self._connect(record))

    # ---- the group

    @property
    def name(self) -> str:
        """Name of this worker, also after its shutdown."""
        return (self._me or self.member()).name

    @property
    def id(self) -> int:
        """Id of this worker, its rank in a static group; also after its shutdown."""
        return (self._me or self.member()).id

    def member(self, name: str | None = None) -> Member:
        """Finds a member by name; None: this worker."""
        return Member(*self._info(name))

    def members(self) -> list[Member]:
        """All members, by id."""
        return [Member(*m) for m in self._infos()]

    def view(self) -> View:
        """The members and their version, which grows with each change of a dynamic group."""
        version, members = self._view()
        return View(version, [Member(*m) for m in members])

    def wait_version(self, version: int, timeout: float | None = None) -> None:
        """Waits until the view has this version or a later one."""
        self._wait_version(version, to_ms(timeout))

    def wait_members(self, n: int, timeout: float | None = None) -> None:
        """Waits until the group has at least `n` members."""
        self._wait_members(n, to_ms(timeout))

    def on_members(self, joined: Callable[[Member, int], object] | None = None,
                   left: Callable[[Member, Error | None, int], object] | None = None) -> None:
        """Sets functions for members that join, joined(member, version), and leave,
        left(member, why, version); why is None for a regular leave. Set them before init_rpc to
        see each change. They must not block: a joining member waits for them."""
        def tell_joined(number: int, name: str, version: int) -> None:
            if joined:
                joined(Member(number, name), version)

        def tell_left(number: int, name: str, status: str, text: str, version: int) -> None:
            if left:
                left(Member(number, name),
                     None if status == "OK" else make(status, text, name, False, 0), version)

        self._on_members(tell_joined if joined else None, tell_left if left else None)

    def on_peer_lost(self, lost: Callable[[Member, Error], object] | None) -> None:
        """Sets a function for broken connections: lost(member, why). It must not block."""
        def tell(number: int, name: str, status: str, text: str) -> None:
            if lost:
                lost(Member(number, name), make(status, text, name, False, 0))

        self._on_peer_lost(tell if lost else None)

    def barrier(self, names: Iterable[str] | None = None, timeout: float | None = None) -> None:
        """Waits until every worker of `names`, or of the group, is in the same barrier."""
        self._barrier(_names(names), to_ms(timeout))

    def all_gather(self, value: Any, names: Iterable[str] | None = None,
                   timeout: float | None = None) -> dict[str, Any]:
        """Returns the values that all workers, or those of `names`, have contributed, by name."""
        return cast("dict[str, Any]", self._all_gather(value, _names(names), to_ms(timeout)))


@atexit.register
def _end() -> None:
    # Functions cannot run once the interpreter finalizes.
    for worker in list(_alive):
        worker._stop()  # pylint: disable=protected-access
    _core.stop()
