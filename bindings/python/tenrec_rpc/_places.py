# SPDX-License-Identifier: Apache-2.0
"""_places.py - the places in code where an exception of a function was raised, as they travel at the end of its text:
"ValueError: no luck (lib.py:33 in refuse, from app.py:20 in handler)"."""
from __future__ import annotations

import collections
import os
import re
import traceback

_TEXT_MAX = 367  # bytes of an error's text: tenrec/error.h
_MESSAGE_MAX = 240  # of what the exception itself says, where both are too long
_PLACES_MAX = 16
_BETWEEN = ", from "
_MORE = "..."
_OWN = os.path.dirname(__file__)
_AT_END = re.compile(r"(.*) \(([^()\n]*:\d+ in [^()\n]*)\)", re.DOTALL)
_PLACE = re.compile(r"(.*):(\d+) in (.*)")


def places_of(error: BaseException) -> list[str]:
    """The calls that led to an exception, the innermost first; none of this package."""
    last: collections.deque[str] = collections.deque(maxlen=_PLACES_MAX)
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if os.path.dirname(code.co_filename) != _OWN:
            last.appendleft(re.sub(r"[()\n]", "?", f"{os.path.basename(code.co_filename)}:{line} in {code.co_name}"))
    return list(last)


def _length(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def with_places(message: str, places: list[str]) -> str:
    """The text that travels: as many places as fit, the innermost first."""
    if not places:
        return message
    if _length(message) + _length(places[0]) + len(" ()") > _TEXT_MAX:
        message = message.encode("utf-8", "replace")[:_MESSAGE_MAX].decode("utf-8", "ignore") + _MORE
    told = places[0]
    for place in places[1:]:
        if _length(message) + _length(told) + _length(place) + len(" ()") + 2 * len(_BETWEEN) + len(_MORE) > _TEXT_MAX:
            told += _BETWEEN + _MORE
            break
        told += _BETWEEN + place
    return f"{message} ({told})"


def split_places(text: str) -> tuple[str, list[str]]:
    """Returns what with_places was given, as far as it travelled."""
    found = _AT_END.fullmatch(text)
    return (found[1], found[2].split(_BETWEEN)) if found else (text, [])


def to_note(worker: str, places: list[str]) -> str:
    """The places as Python prints a traceback."""
    lines = [f"Traceback of worker '{worker}' (most recent call last):"]
    for place in reversed(places):
        found = _PLACE.fullmatch(place)
        lines.append(f'  File "{found[1]}", line {found[2]}, in {found[3]}' if found else f"  {place}")
    return "\n".join(lines)
