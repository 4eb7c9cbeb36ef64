# SPDX-License-Identifier: Apache-2.0
"""link.py - a worker of another process that is called without a group or a store."""
from __future__ import annotations

from types import TracebackType

from . import _core


class Link(_core.Link):
    """What Worker.connect returns: `name` is what calls name the peer by. The link ends with its
    last drop, or the end of its last context manager: calls of the peer then fail."""

    def __enter__(self) -> Link:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.drop()
