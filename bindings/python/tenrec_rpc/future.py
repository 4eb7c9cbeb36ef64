# SPDX-License-Identifier: Apache-2.0
"""future.py - the result of a call that may still be under way."""
from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

from . import _core
from ._time import NONE, to_ms

if TYPE_CHECKING:
    from .worker import Worker


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


class Future(_core.Future):
    """The result of a call: wait for it, or await it in a coroutine.

    Each wait makes a new result; tensors in it share the memory of the message.
    """

    _worker: Worker

    def wait(self, timeout: float | None = None) -> Any:
        """Returns the result, or raises the error of the call.

        Waits at most `timeout` seconds, after which the call goes on; None: until the call ends,
        which its own timeout limits.
        """
        return self._wait(to_ms(timeout, NONE))

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
