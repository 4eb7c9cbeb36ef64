# SPDX-License-Identifier: Apache-2.0
"""Coroutine functions that other workers call."""
from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import selectors
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from . import _core

Function = Callable[..., Coroutine[Any, Any, Any]]

_lock = threading.Lock()
_own: _Loop | None = None
_tasks: set[asyncio.Task[None]] = set()  # a loop holds its tasks weakly


async def _answer(function: Function, answer: _core.Answer, args: tuple[Any, ...],
                  keywords: dict[str, Any] | None) -> None:
    try:
        result = await function(*args, **(keywords or {}))
    except BaseException as e:  # pylint: disable=broad-except
        answer.fail(e)
        if not isinstance(e, (Exception, SystemExit)):
            raise
    else:
        answer.give(result)


def _keep(task: asyncio.Task[None]) -> None:
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


class _Selector(selectors.EpollSelector):
    """Gives the turn to other threads while the loop sleeps."""

    def __init__(self, turn: threading.Lock) -> None:
        super().__init__()
        self._turn = turn

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turn.release()
        try:
            return super().select(timeout)
        finally:
            self._turn.acquire()  # pylint: disable=consider-using-with


class _Loop(asyncio.SelectorEventLoop):
    """The loop for functions that no running loop has registered, on a thread of its own.

    Most functions end, or come to their first await, sooner than that thread wakes. So while it sleeps, the thread that
    has received the call takes its turn and runs the first step. One thread at a time has the turn, so that coroutines
    meet each other as on any loop.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._turn.acquire()  # pylint: disable=consider-using-with
        self._begins = False  # what call_soon is given next is the first step of a task
        self._step: Callable[[], object] = int
        self._asked = False  # for something that the loop's own thread does
        self._hooks = sys.get_asyncgen_hooks()
        super().__init__(_Selector(self._turn))
        self._handle = asyncio.Handle(int, (), self)  # of a first step: no task uses it

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        if self._begins and context is not None:
            self._begins, self._step = False, functools.partial(context.run, callback, *args)
            return self._handle
        self._asked = True
        return super().call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any,
                context: contextvars.Context | None = None) -> asyncio.TimerHandle:
        self._asked = True
        return super().call_at(when, callback, *args, context=context)

    def run(self) -> None:
        """On the loop's own thread."""
        self.call_soon(self._note_hooks)
        self.run_forever()

    def _note_hooks(self) -> None:
        self._hooks = sys.get_asyncgen_hooks()

    def begin(self, function: Function, answer: _core.Answer, args: tuple[Any, ...],
              keywords: dict[str, Any] | None) -> None:
        """Begins a call, on the thread that got it."""
        # In debug mode a loop refuses other threads.
        if self.get_debug() or not self._turn.acquire(blocking=False):  # pylint: disable=consider-using-with
            self.call_soon_threadsafe(_begin, self, function, answer, args, keywords)
            return
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(*self._hooks)
        asyncio._set_running_loop(self)  # pylint: disable=protected-access
        self._begins, self._asked, self._step = True, False, int
        try:
            task = asyncio.Task(_answer(function, answer, args, keywords), loop=self)
            self._step()
            if not task.done():
                _keep(task)
                self._asked = True
            if self._asked:
                self.call_soon_threadsafe(int)  # wakes its thread, which has to begin another round
        finally:
            asyncio._set_running_loop(None)  # pylint: disable=protected-access
            sys.set_asyncgen_hooks(*hooks)
            self._begins = False
            self._turn.release()


def _begin(loop: asyncio.AbstractEventLoop, function: Function, answer: _core.Answer, args: tuple[Any, ...],
           keywords: dict[str, Any] | None) -> None:
    _keep(loop.create_task(_answer(function, answer, args, keywords)))


def _own_loop() -> _Loop:
    global _own  # pylint: disable=global-statement
    with _lock:
        if _own is None:
            _own = _Loop()
            threading.Thread(target=_own.run, name="tenrec-asyncio", daemon=True).start()
        return _own


def _forget_loop() -> None:
    """A forked child has no thread that runs it."""
    global _lock, _own  # pylint: disable=global-statement
    _lock, _own = threading.Lock(), None


os.register_at_fork(after_in_child=_forget_loop)


def coroutine_starter(function: Function) -> Callable[..., object]:
    """Returns what begins a call of the function: start(answer, args, keywords)."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = _own_loop()

    if isinstance(loop, _Loop):
        return functools.partial(loop.begin, function)

    def start(answer: _core.Answer, args: tuple[Any, ...], keywords: dict[str, Any] | None) -> None:
        loop.call_soon_threadsafe(_begin, loop, function, answer, args, keywords)
    return start
