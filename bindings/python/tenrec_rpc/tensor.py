# SPDX-License-Identifier: Apache-2.0
"""tensor.py - tensors of Tenrec's own; any object with a buffer or DLPack can be sent as well."""
from __future__ import annotations

from collections.abc import Sequence

from . import _core
from ._core import Tensor


def empty(shape: Sequence[int], dtype: str = "float32", *, shared: bool = False) -> Tensor:
    """Makes a contiguous tensor; its contents are undefined.

    shared  a worker on the same host maps the memory instead of receiving a copy; what it
            receives is read-only (docs/shared-memory.md)
    """
    return _core.new_tensor(tuple(shape), dtype, shared)
