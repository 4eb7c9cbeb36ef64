# SPDX-License-Identifier: Apache-2.0
"""Gathers of torch, as rpc.shutdown makes one: they end when a member is lost that they wait for.

torch waits in `_all_gather` without a limit, and no answer is outstanding whose call could fail. So a gather
that waits for more than a moment calls each worker that it waits for, and the answers come when the gather has
ended: the loss of the worker fails its call at once.
"""
import collections
import contextlib
import functools
import itertools
import threading

import torch
import torch.distributed.rpc as rpc
from torch.distributed.rpc import api

from . import _current

MOMENT = 0.3  # seconds that a gather waits before it watches the workers

_here = threading.local()  # .gather: the one in which this thread waits
_numbers = itertools.count()
_lock = threading.Lock()   # guards the next
_watches = {}              # futures, by the name of the watcher and its number


class _Signal(threading.Event):
    """The signal on which torch's gather waits; `wait` raises the error of a lost worker."""

    def __init__(self):
        super().__init__()
        self._ends = threading.Lock()  # the first end stays: objects, or an error
        self.error = None

    def set(self):
        with self._ends:
            super().set()

    def fail(self, text):
        with self._ends:
            if not self.is_set():
                self.error = text
                super().set()

    def wait(self, timeout=None):
        gather = getattr(_here, "gather", None)
        if gather is None:
            return super().wait(timeout)
        if not super().wait(MOMENT if timeout is None else min(timeout, MOMENT)):
            with gather.watched(self):
                super().wait(timeout if timeout is None else max(0, timeout - MOMENT))
        if self.error:
            raise RuntimeError(self.error)
        return self.is_set()


class _States(api.AllGatherStates):
    def __init__(self):
        super().__init__()
        self.proceed_signal = _Signal()


class _Gather:
    """What one worker waits for. The leader, of the smallest name, has the others' objects when it proceeds."""

    def __init__(self, me, names):
        self.me = me
        self.names = set(names or api._ALL_WORKER_NAMES)
        self.leads = me == min(self.names)
        self.what = "a gather" if names else "rpc.shutdown()"

    @contextlib.contextmanager
    def watched(self, signal):
        names = self.names - {self.me} if self.leads else {min(self.names)}
        watches = [_Watch(self, signal, name) for name in sorted(names)]
        try:
            for watch in watches:
                watch.begin()
            yield
        finally:
            if signal.error and self.leads:
                self.tell(signal, watches)
            for watch in watches:
                watch.end()

    def tell(self, signal, watches):
        """Fails the gather of the followers: the loss of this worker, which follows, is not the reason."""
        with api._all_gather_dict_lock:
            ids = [i for i, states in api._all_gather_sequence_id_to_states.items() if states.proceed_signal is signal]
        told = [rpc.rpc_async(watch.name, _fail, args=(i, signal.error), timeout=MOMENT)
                for i in ids for watch in watches if not watch.lost]
        for future in told:
            with contextlib.suppress(RuntimeError):
                future.wait()


class _Watch:
    """A call to a worker that is open as long as the gather waits."""

    def __init__(self, gather, signal, name):
        self.gather, self.signal, self.name = gather, signal, name
        self.over = self.lost = False

    def begin(self):
        self.id = (self.gather.me, next(_numbers))
        self._call(self._broke, _attend, self.id)

    def end(self):
        self.over = True
        if not self.lost:
            self._call(None, _dismiss, self.id)

    def _call(self, then, function, *args):
        try:
            future = rpc.rpc_async(self.name, function, args=args, timeout=0)
        except RuntimeError as error:  # no member any more
            self._end_gather(error)
            return
        if then:
            future.then(then)

    def _broke(self, future):
        """The connection broke: a worker that lives can be called again."""
        if not self.over and _error_of(future):
            self._call(self._answered, _ping)

    def _answered(self, future):
        why = _error_of(future)
        if why:
            self._end_gather(why)
        elif not self.over:
            self.begin()

    def _end_gather(self, why):
        self.lost = True
        self.signal.fail(f"worker '{self.name}' was lost while '{self.gather.me}' waited for it in "
                         f"{self.gather.what}, since {why}")


def _error_of(future):
    try:
        future.value()
    except RuntimeError as error:
        return str(error)
    return None


def _ping():
    pass


def _meet(watch):
    """The future of a watch: the request to attend and the one that ends it may come in either order."""
    with _lock:
        future = _watches.pop(watch, None)
        if future is None:
            future = _watches[watch] = torch.futures.Future()
        return future


@rpc.functions.async_execution
def _attend(watch):
    return _meet(watch)


def _dismiss(watch):
    _meet(watch).set_result(None)


def _fail(sequence_id, text):
    with api._all_gather_dict_lock:
        signal = api._all_gather_sequence_id_to_states[sequence_id].proceed_signal
    signal.fail(text)


def _with_losses(all_gather):
    """Returns _all_gather that ends when a worker is lost, on TENREC."""
    @functools.wraps(all_gather)
    def gather(obj, worker_names=None, timeout=rpc.constants.UNSET_RPC_TIMEOUT):
        agent = _current.agent()
        if agent:
            _here.gather = _Gather(agent.get_worker_info().name, worker_names)
        try:
            return all_gather(obj, worker_names, timeout)
        finally:
            _here.gather = None
    return gather


def _without_log(wait_all_workers):
    """Returns _wait_all_workers that raises its error at once, on TENREC: torch logs the error first, and to make
    that line torch 2 imports its compiler, which takes seconds."""
    @functools.wraps(wait_all_workers)
    def wait(timeout=rpc.constants.DEFAULT_SHUTDOWN_TIMEOUT):
        if _current.agent():
            api._all_gather(None, timeout=timeout)
        else:
            wait_all_workers(timeout)
    return wait


def register():
    api._all_gather = _with_losses(api._all_gather)
    api._wait_all_workers = _without_log(api._wait_all_workers)
    api._all_gather_sequence_id_to_states.default_factory = _States
