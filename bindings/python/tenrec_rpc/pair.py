# SPDX-License-Identifier: Apache-2.0
"""pair.py - two workers in one process, for a first try and for tests."""
from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from .worker import Worker

_numbers = itertools.count()


def _at_once(*functions: Callable[[], object]) -> None:
    """Runs the functions, each of which waits for the other, and raises the first error."""
    errors: list[BaseException] = []

    def run(function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as e:  # pylint: disable=broad-except
            errors.append(e)
    threads = [threading.Thread(target=run, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Pair(NamedTuple):
    """Two workers of one group, both running. At its end as a context manager both leave."""

    a: Worker
    b: Worker

    def shutdown(self, graceful: bool = True) -> None:
        """Lets both workers leave their group."""
        _at_once(*(functools.partial(worker.shutdown, graceful) for worker in self if worker.running))

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.shutdown(graceful=kind is None)


def pair(a: str = "a", b: str = "b") -> Pair:
    """Starts two workers of these names in this process, which are a group of their own:

    a, b = tenrec.pair(); b.register("add", lambda x, y: x + y)
    a.call("b", "add", 40, 2)
    """
    group = {"init_method": f"memory://pair-{next(_numbers)}", "worker.world_size": 2}
    made = Pair(Worker(a, overrides={**group, "worker.rank": 0}), Worker(b, overrides={**group, "worker.rank": 1}))
    try:
        _at_once(*(worker.init_rpc for worker in made))
    except BaseException:
        made.shutdown(graceful=False)
        raise
    return made
