# SPDX-License-Identifier: Apache-2.0
"""_time.py - limits in seconds, as Python gives them, for the library."""
from __future__ import annotations

NONE = (1 << 63) - 1  # no limit
DEFAULT = 0  # that of the operation


def to_ms(seconds: float | None, default: int = DEFAULT) -> int:
    """Converts seconds to milliseconds; None gives `default`, math.inf no limit."""
    if seconds is None:
        return default
    if not isinstance(seconds, (int, float)):
        raise TypeError(f"timeout is {seconds!r}, expected a number of seconds, math.inf or None")
    if not seconds > 0:
        raise ValueError(f"timeout is {seconds!r}, expected a number of seconds above 0, "
                         "math.inf for no limit, or None for the default")
    return NONE if seconds > 1e12 else max(1, round(seconds * 1000))
