# SPDX-License-Identifier: Apache-2.0
"""rref.py - remote references."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from . import _core
from ._time import to_ms
from .future import Future
from .member import Member
from .proxy import name_of, packed


class RRef(_core.RRef):
    """A reference to a value that stays with its owner, one of the workers.

    The value lives until the last reference to it in the group is gone. References travel as
    arguments and in results.
    """

    @property
    def owner(self) -> Member:
        """The worker that has the value."""
        return Member(*self._owner())

    def to_here(self, timeout: float | None = None) -> Any:
        """Returns a copy of the value, fetched from the owner."""
        return self._to_here(to_ms(timeout))

    def to_here_async(self, timeout: float | None = None) -> Future:
        """The same without waiting."""
        return cast(Future, self._to_here_async(to_ms(timeout)))

    def local_value(self, timeout: float | None = None) -> Any:
        """Returns the value at its owner; an object is itself, not a copy. Waits while it is made."""
        return self._local_value(to_ms(timeout))

    def call(self, function: str | Callable[..., Any], /, *args: Any, timeout: float | None = None, **keywords: Any) -> Any:
        """Calls function(value, *args, **keywords) on the owner."""
        return self._call(name_of(function), packed(args, keywords), to_ms(timeout))

    def call_async(self, function: str | Callable[..., Any], /, *args: Any, timeout: float | None = None, **keywords: Any) -> Future:
        """The same without waiting."""
        return cast(Future, self._call_async(name_of(function), packed(args, keywords), to_ms(timeout)))

    def remote(self, function: str | Callable[..., Any], /, *args: Any, timeout: float | None = None, **keywords: Any) -> RRef:
        """The same, but the result stays with the owner."""
        return cast(RRef, self._remote(name_of(function), packed(args, keywords), to_ms(timeout)))
