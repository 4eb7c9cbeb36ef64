# SPDX-License-Identifier: Apache-2.0
"""later.py - functions that answer after they have returned."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ._core import Answer

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__tenrec_later__"


def later(function: F) -> F:
    """Marks a function before it is registered: it gets an Answer as its first argument, before those of the caller, and
    its own result is ignored. The caller waits until answer.give(result) or answer.fail(exception), from any thread.

        @tenrec.register
        @tenrec.later
        def take(answer, n): waiting.append((answer, n))
    """
    setattr(function, _MARK, True)
    return function


def answers_later(function: Callable[..., Any]) -> bool:
    """Returns True for a function that was marked."""
    return getattr(function, _MARK, False) is True


def later_starter(function: Callable[..., Any]) -> Callable[..., object]:
    """Returns what begins a call of the function: start(answer, args, keywords)."""
    def start(answer: Answer, args: tuple[Any, ...], keywords: dict[str, Any] | None) -> None:
        function(answer, *args, **(keywords or {}))
    return start
