# SPDX-License-Identifier: Apache-2.0
"""region.py - memory of a worker that the others read and write without a function of its own."""
from __future__ import annotations

import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple, cast

from . import _core
from ._time import to_ms

_RIGHTS = {"r": 1, "w": 2, "rw": 3}
_OWN = 4  # TENREC_REGION_OWN of tenrec/region.h
_REF = struct.Struct("=IIQQQQ16s128s")  # struct tenrec_region_ref of tenrec/region.h


class RegionRef(bytes):
    """The bytes that name a region to other workers of its group. In a call they arrive as a
    RegionRef, in C as a region value. By other means they travel as bytes, of which
    `RegionRef(received)` makes one again."""

    def __new__(cls, data: bytes) -> RegionRef:
        made = super().__new__(cls, data)
        if len(made) != _REF.size or _REF.unpack(made)[0] != _REF.size:
            raise ValueError(f"{len(made)} bytes are no reference to a region, expected the {_REF.size} of Region.ref")
        return made

    @property
    def owner(self) -> str:
        """Name of the worker that has the memory."""
        return str(_REF.unpack(self)[7].split(b"\0")[0], "utf-8", "replace")

    @property
    def rights(self) -> str:
        """"r", "w" or "rw"."""
        return "".join(name for name, bit in (("r", 1), ("w", 2)) if _REF.unpack(self)[1] & bit)

    @property
    def length(self) -> int:
        """Its bytes."""
        return int(_REF.unpack(self)[5])


class Region(_core.Region):
    """Memory that Worker.region has registered. At its end as a context manager it is revoked, and
    dropped.

    The memory is shared, without a copy, with memoryview(region), numpy.asarray(region) and
    X.from_dlpack(region).
    """

    @property
    def ref(self) -> RegionRef:
        """What names the region to others; the same bytes each time."""
        return cast(RegionRef, self._describe())

    def revoke(self, timeout: float | None = None) -> None:
        """Refuses transfers from now on, with ESTALE, and waits until those that use the memory have
        ended: then no byte of it changes or is read any more. TimeoutError names the workers whose
        transfers have not ended; the region stays revoked, and a further call waits for them.

        timeout  seconds; None: 60
        """
        self._revoke(to_ms(timeout))

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        return self.tensor.__array__(*args, **keywords)

    def __enter__(self) -> Region:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.revoke()
        finally:
            self.drop()


class Read(NamedTuple):
    """Reads bytes of a region from `offset` on, as many as `into` has."""

    ref: bytes
    into: Any
    offset: int = 0


class Write(NamedTuple):
    """Writes all bytes of `data` to a region, from `offset` on."""

    ref: bytes
    data: Any
    offset: int = 0


def rights_of(text: str, own: bool) -> int:
    """The number of these rights, for a region of its own or a shared one."""
    if text not in _RIGHTS:
        raise ValueError(f"rights are {text!r}, expected 'r', 'w' or 'rw'")
    return _RIGHTS[text] | (_OWN if own else 0)


def own_memory(o: Any) -> Any:
    """Returns `o`, unless it is a tensor of torch that is conjugated or negated when it is used: what is sent is a copy."""
    for lazy in ("is_conj", "is_neg"):
        if getattr(o, lazy, bool)():
            raise TypeError(f"a tensor with {lazy}() has no memory of its own: use its resolve_{lazy[3:]}()")
    return o


def to_entries(entries: Iterable[Read | Write]) -> tuple[tuple[bool, bytes, int, Any], ...]:
    """The entries of a batch, as the library reads them."""
    made = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, (Read, Write)):
            raise TypeError(f"entry {number} is {entry!r}, expected a tenrec.Read or tenrec.Write")
        if entry.offset < 0:
            raise ValueError(f"entry {number}: an offset of {entry.offset}, expected 0 or more")
        made.append((False, entry.ref, entry.offset, own_memory(entry.into)) if isinstance(entry, Read)
                    else (True, entry.ref, entry.offset, entry.data))
    return tuple(made)
