# SPDX-License-Identifier: Apache-2.0
"""weights.py - versions of weights, from trainers to many generators (docs/weights.md)."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypedDict, cast

from . import _core
from ._time import to_ms
from .errors import NotFoundError, describe
from .future import Future
from .region import own_memory

_LATEST = 0

Tensors = Mapping[str, Any] | Iterable[tuple[str, Any]]


class Shard(NamedTuple):
    """A part of a tensor: its elements, the shape of the whole, and where in it the first element is."""

    tensor: Any
    shape: Sequence[int]
    at: Sequence[int]


class Published(TypedDict):
    """A tensor of a version."""

    name: str
    dtype: str
    shape: list[int]


class Holder(TypedDict):
    """A worker that has a version. state: "publishes", "pulls", "has", "applied" or "failed"."""

    worker: str
    version: int
    state: str
    error: str


class Record(TypedDict):
    """What the keeper of a set has recorded: a version, its tensors, and the holders of all versions."""

    version: int
    tensors: list[Published]
    holders: list[Holder]


class Held:
    """A version that this handle has published or pulled, until the end of the context: then it is withdrawn, and
    the memory is the program's own. Also `async with`."""

    def __init__(self, weights: Weights, version: int, timeout: float | None) -> None:
        self._weights = weights
        self._version = version
        self._timeout = timeout

    def __enter__(self) -> int:
        return self._version

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._weights.withdraw(self._version, self._timeout)
        except NotFoundError:  # it was withdrawn before, or another pull took its place
            pass

    async def __aenter__(self) -> int:
        return self._version

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self._weights.withdraw_async(self._version, self._timeout)
        except NotFoundError:
            pass


class Weights(_core.Weights):
    """A handle on a set of weights, which Worker.weights has made. At its end as a context manager it is closed.

    `tensors` is a dict, or pairs, of names and memory: a tensor of Tenrec, an object with a buffer or DLPack, or
    a Shard of one. Limits are in seconds; None: worker.rpc_timeout. What ends in _async returns a Future; canceling
    it ends the wait, while the operation goes on until its limit.
    """

    def publish(self, version: int, tensors: Tensors, *, publishers: int = 1, in_place: bool = False,
                timeout: float | None = None) -> None:
        """Publishes a version, or one of `publishers` parts of it, and returns when all parts are published.

        in_place  readers read the memory itself, which may change only after withdraw; else a copy of it
        Raises ExistsError if a version as new is visible.
        """
        self.publish_async(version, tensors, publishers=publishers, in_place=in_place, timeout=timeout).wait()

    def publish_async(self, version: int, tensors: Tensors, *, publishers: int = 1, in_place: bool = False,
                      timeout: float | None = None) -> Future:
        """Starts it. The memory may change when the Future is done."""
        if publishers < 1:
            raise ValueError(f"publishers is {publishers}, expected 1 or more")
        return cast(Future, self._publish(version, _boxes(tensors, in_place), publishers, in_place, to_ms(timeout)))

    def pull(self, tensors: Tensors, version: int | None = None, *, after: int = 0, timeout: float | None = None) -> int:
        """Fills the memory with a version, waits until there is one, and returns its number. From then on this worker
        gives it to others: the memory may change only by further pulls, or after withdraw.

        version  None: the latest
        after    with None: waits for a version newer than this
        Raises StaleError if the version was replaced. After an error the elements are undefined.
        """
        return cast(int, self.pull_async(tensors, version, after=after, timeout=timeout).wait())

    def pull_async(self, tensors: Tensors, version: int | None = None, *, after: int = 0,
                   timeout: float | None = None) -> Future:
        """Starts it and returns the Future of the number."""
        return cast(Future, self._pull(_LATEST if version is None else version, _boxes(tensors, True), after, to_ms(timeout)))

    def report(self, version: int, error: BaseException | str | None = None) -> None:
        """Records what became of a version that this handle has pulled: None if it is applied, else why not."""
        self.report_async(version, error).wait()

    def report_async(self, version: int, error: BaseException | str | None = None) -> Future:
        """Starts it."""
        why = ("EREMOTE", error) if isinstance(error, str) else None if error is None else describe(error)
        return cast(Future, self._report(version, why))

    def wait(self, version: int | None = None, reports: int = 0, timeout: float | None = None) -> Record:
        """Waits until a version is visible and so many workers have reported about it; None: the latest."""
        return cast(Record, self.wait_async(version, reports, timeout).wait())

    def wait_async(self, version: int | None = None, reports: int = 0, timeout: float | None = None) -> Future:
        """Starts it and returns the Future of the Record."""
        if reports < 0:
            raise ValueError(f"reports is {reports}, expected 0 or more")
        return cast(Future, self._wait(_LATEST if version is None else version, reports, to_ms(timeout)))

    def holders(self, timeout: float | None = None) -> list[Holder]:
        """Which worker has which version; waits for the first version."""
        return self.wait(timeout=timeout)["holders"]

    def withdraw(self, version: int, timeout: float | None = None) -> None:
        """Ends what this handle has published or pulled of a version: then no byte of its memory is read or changes
        through the set. TimeoutError names the workers that still read; a further call waits for them."""
        self.withdraw_async(version, timeout).wait()

    def withdraw_async(self, version: int, timeout: float | None = None) -> Future:
        """Starts it."""
        return cast(Future, self._withdraw(version, to_ms(timeout)))

    def held(self, version: int, timeout: float | None = None) -> Held:
        """A context at whose end the version is withdrawn: `with weights.held(weights.pull(tensors)): ...`."""
        return Held(self, version, timeout)

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _boxes(tensors: Tensors, shared: bool) -> tuple[tuple[str, Any, tuple[int, ...] | None, tuple[int, ...] | None], ...]:
    """The boxes of tensors, as the library reads them; `shared`: it uses their own memory."""
    made = []
    for name, tensor in tensors.items() if isinstance(tensors, Mapping) else tensors:
        shard = tensor if isinstance(tensor, Shard) else Shard(tensor, (), ())
        memory = own_memory(shard.tensor) if shared else shard.tensor
        made.append((name, memory, tuple(shard.shape), tuple(shard.at)) if shard is tensor else (name, memory, None, None))
    return tuple(made)
