# SPDX-License-Identifier: Apache-2.0
"""tensor.py - tensors of Tenrec's own; any object with a buffer or DLPack can be sent as well."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from . import _core
from ._core import Tensor


class DType(Protocol):
    """An element type of numpy or torch."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        ...  # pylint: disable=unnecessary-ellipsis


def _name(dtype: str | type[Any] | DType) -> str:
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, type):  # numpy.float32, numpy.bool_
        return dtype.__name__.rstrip("_")
    return str(dtype).removeprefix("torch.")


def empty(shape: int | Sequence[int], dtype: str | type[Any] | DType = "float32", *, shared: bool = False) -> Tensor:
    """Makes a contiguous tensor; its contents are undefined.

    dtype   a name, or that of numpy or torch: "float32", numpy.float32, torch.float32
    shared  a worker on the same host maps the memory instead of receiving a copy; what it
            receives is read-only (docs/shared-memory.md)
    """
    return _core.new_tensor((shape,) if isinstance(shape, int) else tuple(shape), _name(dtype), shared)
