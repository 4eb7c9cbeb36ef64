# SPDX-License-Identifier: Apache-2.0
"""future.py - the result of a call that may still be under way."""
from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, cast

from . import _core
from ._time import NONE, to_ms
from .errors import CanceledError, TimeoutError  # pylint: disable=redefined-builtin


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    def set_result() -> None:
        if not waiter.done():
            waiter.set_result(None)

    # pylint: disable-next=protected-access
    if asyncio._get_running_loop() is loop:
        set_result()
        return
    try:
        loop.call_soon_threadsafe(set_result)
    except RuntimeError:  # the loop was closed meanwhile
        pass


def _run_on(loop: asyncio.AbstractEventLoop, function: Callable[[Any], object], future: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, future)
    except RuntimeError:  # the loop was closed meanwhile
        pass


def _calls(callback: Any, function: Callable[[Any], object]) -> bool:
    return bool(callback == function or isinstance(callback, functools.partial) and callback.func is _run_on and callback.args[1] == function)


_lock = threading.Lock()


def _was_canceled(error: BaseException) -> bool:
    """Not by the function, which may raise a CanceledError of its own."""
    return isinstance(error, CanceledError) and not error.from_callee


class Future(_core.Future, concurrent.futures.Future[Any]):
    """The result of a call: wait for it, or await it in a coroutine. It is a concurrent.futures.Future.

    Each wait makes a new result; tensors in it share the memory of the message.
    """

    _condition: threading.Condition
    _done_callbacks: list[Any]

    def wait(self, timeout: float | None = None) -> Any:
        """Returns the result, or raises the error of the call.

        Waits at most `timeout` seconds, after which the call goes on; None: until the call ends,
        which its own timeout limits.
        """
        return self._wait(to_ms(timeout, NONE))

    def result(self, timeout: float | None = None) -> Any:
        """As wait; 0 does not wait."""
        if timeout is not None and timeout <= 0 and not self.done():
            raise TimeoutError("the future is not done")
        return self.wait(None if timeout is not None and timeout <= 0 else timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Returns the error of the call, or None; waits as result, and raises CanceledError after a cancel."""
        try:
            self.result(timeout)
        except BaseException as e:  # pylint: disable=broad-except
            if not self.done() or _was_canceled(e):
                raise
            return e
        return None

    def done(self) -> bool:
        """Returns True once the call has a result or an error; never blocks."""
        return _core.Future.done(self)

    def running(self) -> bool:
        """Returns True while the call is under way."""
        return not self.done()

    def cancel(self) -> bool:
        """Fails the future with ECANCELED; the callee is notified, and may stop early. Does nothing to a future that
        is done. Returns True if the future is canceled."""
        _core.Future.cancel(self)
        return self.cancelled()

    def cancelled(self) -> bool:
        """Returns True if the future was canceled; never blocks."""
        if not self.done():
            return False
        try:
            self.wait()
        except CanceledError as e:
            return _was_canceled(e)
        except BaseException:  # pylint: disable=broad-except
            pass
        return False

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Lets fn(future) run once the future is done: on the asyncio loop that runs where it is added, else on
        a thread of the package, or at once. There it must not block: other callbacks wait for it."""
        loop = asyncio._get_running_loop()  # pylint: disable=protected-access
        super().add_done_callback(fn if loop is None else functools.partial(_run_on, loop, fn))

    def remove_done_callback(self, function: Callable[[Any], object]) -> int:
        """Removes the callbacks that are this function, and returns their number."""
        with self._condition:
            kept = [c for c in self._done_callbacks if not _calls(c, function)]
            removed = len(self._done_callbacks) - len(kept)
            self._done_callbacks[:] = kept
        return removed

    def __repr__(self) -> str:
        return f"<tenrec_rpc.{type(self).__name__}, {'done' if self.done() else 'pending'}>"

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            # Few futures have callbacks, or are waited for among others: the rest needs no condition.
            if name not in ("_condition", "_state", "_result", "_exception", "_waiters", "_done_callbacks"):
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
            self._make_state()
            return self.__dict__[name]

    def _make_state(self) -> None:
        """Makes what concurrent.futures.wait and as_completed read, which changes when the call ends."""
        with _lock:
            if "_done_callbacks" in self.__dict__:
                return
            concurrent.futures.Future.__init__(self)
        if self.done():
            self.set_result(None)
        else:
            self._worker._watch_callbacks()  # pylint: disable=protected-access
            self._on_done(lambda: self.set_result(None))

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.done():
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            self._worker._watch(loop)  # pylint: disable=protected-access
            self._on_done(lambda: _wake(loop, waiter))
            try:
                yield from waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.wait()


class Free:
    """The end of the use of local memory by a transfer: from then on no byte of it is read or written. It comes
    always, also after an error, a timeout or a cancel of the transfer. Wait for it, or await it."""

    def __init__(self, future: _core.Future) -> None:
        self._future = future

    def done(self) -> bool:
        """Returns True once the memory is free; never blocks."""
        return self._future.done()

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the memory is free, or raises TimeoutError after `timeout` seconds."""
        self._future._wait(to_ms(timeout, NONE))  # pylint: disable=protected-access

    def __await__(self) -> Generator[Any, None, None]:
        if self.done():
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        fd = self._future._signal()  # pylint: disable=protected-access
        loop.add_reader(fd, _wake, loop, waiter)
        try:
            yield from waiter
        finally:
            loop.remove_reader(fd)
            os.close(fd)


class Transfer(Future):
    """The end of a batch of reads and writes; its result is that of the function `then`, or None. Two earlier ends
    have a name."""

    @property
    def visible(self) -> Future:
        """All entries have ended: the bytes read are in the local memory, those written in the regions. The function
        `then` has not run."""
        return cast(Future, self._visible)

    @property
    def free(self) -> Free:
        """The local memory may be changed, or given away."""
        return Free(self._free)
