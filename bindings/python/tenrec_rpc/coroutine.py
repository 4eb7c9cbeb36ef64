# SPDX-License-Identifier: Apache-2.0
"""Coroutine functions that other workers call."""
from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from . import _core

_lock = threading.Lock()
_own: asyncio.AbstractEventLoop | None = None
_tasks: set[asyncio.Task[None]] = set()  # a loop holds its tasks weakly


def _own_loop() -> asyncio.AbstractEventLoop:
    """The loop for functions that no running loop has registered, on a thread of its own."""
    global _own  # pylint: disable=global-statement
    with _lock:
        if _own is None:
            _own = asyncio.new_event_loop()
            threading.Thread(target=_own.run_forever, name="tenrec-asyncio", daemon=True).start()
        return _own


def _forget_loop() -> None:
    """A forked child has no thread that runs it."""
    global _lock, _own  # pylint: disable=global-statement
    _lock, _own = threading.Lock(), None


os.register_at_fork(after_in_child=_forget_loop)


async def _answer(function: Callable[..., Coroutine[Any, Any, Any]], args: tuple[Any, ...], answer: _core.Answer) -> None:
    try:
        result = await function(*args)
    except BaseException as e:  # pylint: disable=broad-except
        answer.fail(e)
        if not isinstance(e, Exception):
            raise
    else:
        answer.give(result)


def coroutine_starter(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[[_core.Answer, tuple[Any, ...]], None]:
    """Returns what begins a call of the function."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = _own_loop()

    def begin(answer: _core.Answer, args: tuple[Any, ...]) -> None:
        task = loop.create_task(_answer(function, args, answer))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    def start(answer: _core.Answer, args: tuple[Any, ...]) -> None:
        loop.call_soon_threadsafe(begin, answer, args)
    return start
