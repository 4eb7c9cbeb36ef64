# SPDX-License-Identifier: Apache-2.0
"""tenrec_torch.transport - the transport `tenrec` of torch.distributed._transport.

    from torch.distributed._transport import new_transport

    transport = new_transport("tenrec", "cpu")

See docs/transports.md.
"""
import asyncio
import concurrent.futures
import threading
import time

import torch
from torch.distributed._transport import Transport, wait_all
from torch.distributed._transport._work import _validate_timeout

from ._transport_hub import CONNECT, LAND, RESOLVE, STAGE, Record, hub
from ._transport_memory import (Registration, TenrecMemory, TenrecMemoryView, TenrecMutableMemoryView, TenrecRemoteBuffer)
from ._transport_work import TenrecWork

NO_LIMIT = float("inf")
REFS_MAX = 4096  # references to regions of a peer that are kept; others are asked for again

_live = set()  # transports whose memory peers may use: they stay until they are closed


class TenrecTransport(Transport):
    """An endpoint with one peer.

    device   the only device whose tensors may be registered; None: any
    timeout  seconds of a wait that sets none of its own
    host     address of this host for peers on other hosts; the same in all transports of a process.
             None: that of its default route
    """

    def __init__(self, device=None, *, timeout=30.0, host=None):
        super().__init__(device)
        if self.device is not None and self.device.type not in ("cpu", "cuda"):
            raise ValueError(f"device is '{self.device}', expected cpu or cuda")
        if timeout is None:
            raise ValueError("timeout is None, expected seconds")
        _validate_timeout(timeout)
        self._default_timeout = timeout
        self._host = host
        self._hub = hub()
        self._number = self._hub.add(self)
        self._lock = threading.RLock()  # guards all below
        self._peer = None  # its record
        self._link = None
        self._met = concurrent.futures.Future()  # both sides have connected
        self._registrations = {}  # active ones, by address, length and device
        self._numbers = {}  # the same, by number
        self._count = 0
        self._refs = {}  # references to regions of the peer, by descriptor
        self._pending = set()
        self._closing = False

    @staticmethod
    def supported():
        """Returns True, as the package could be imported."""
        return True

    def _limit(self, timeout):
        """Returns a function of the seconds left."""
        _validate_timeout(timeout)
        until = time.monotonic() + (self._default_timeout if timeout is None else timeout)
        return lambda: until - time.monotonic()

    def _ensure_open(self):
        if self._closing:
            raise RuntimeError("the transport is closed")

    # ---- the peer

    def bind(self, *, timeout=None):
        """Returns the record that the peer connects to. It has a secret in it, unless the configuration has one."""
        _validate_timeout(timeout)
        with self._lock:
            self._ensure_open()
            return Record(self._hub.process, self._number, self._hub.record(self._host)).to_bytes()

    def connect(self, peer_url, *, timeout=None):
        """Connects to the peer whose bind() returned these bytes. Does not wait for the peer, which has to connect
        as well: the first transfer does."""
        _validate_timeout(timeout)
        if not isinstance(peer_url, (bytes, bytearray)):
            raise TypeError(f"peer_url is {type(peer_url).__name__}, expected the bytes of bind()")
        peer = Record.of_bytes(bytes(peer_url))
        with self._lock:
            self._ensure_open()
            if self._peer is not None:
                raise RuntimeError("the transport is already connected")
            if (peer.process, peer.endpoint) == (self._hub.process, self._number):
                raise ValueError("peer_url is that of the transport itself")
            self._hub.record(self._host)
            self._link = self._hub.link(peer)
            self._peer = peer
        asked = self._hub.worker.call_async(self._link.peer, CONNECT, peer.endpoint, self._hub.process, self._number, timeout=NO_LIMIT)
        asked._on_done(lambda: self._answered(asked))
        return 0

    def _answered(self, asked):
        try:
            met = asked.wait()
        except Exception as error:  # pylint: disable=broad-except
            self._settle(error)
        else:
            if met:
                self._settle(None)

    def _settle(self, error):
        """Lets the transfers that wait begin, or fail: once."""
        with self._lock:
            if self._met.running() or self._met.done():
                return
            self._met.set_running_or_notify_cancel()
        if error is None:
            self._met.set_result(None)
        else:
            self._met.set_exception(error)

    def meet(self, process, number):
        """The transport of that process and number has connected. Returns true if this one has, with it."""
        peer = self._peer
        met = peer is not None and (peer.process, peer.endpoint) == (process, number)
        if met:
            self._settle(None)
        return met

    def lose(self, name, why):
        """The process of that name was lost."""
        if self._link is not None and self._link.peer == name:
            self._settle(why)

    def connected(self):
        """Returns true from connect() on, until the peer is lost or the transport closes."""
        return self._peer is not None and not self._closing and not self._link.lost

    # ---- memory

    def register_memory(self, tensor, *, timeout=None):
        """Registers a contiguous tensor; the same memory has one registration."""
        _validate_timeout(timeout)
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"tensor is {type(tensor).__name__}, expected a torch.Tensor")
        if tensor.layout != torch.strided or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            raise ValueError("the tensor is not contiguous memory: register tensor.contiguous(), or of resolve_conj() and resolve_neg()")
        if tensor.numel() == 0:
            raise ValueError("the tensor is empty")
        self._check_device(tensor.device)
        if tensor.device.type not in ("cpu", "cuda"):
            raise ValueError(f"the tensor is on '{tensor.device}', expected cpu or cuda")
        key = tensor.data_ptr(), tensor.numel() * tensor.element_size(), str(tensor.device)
        with self._lock:
            self._ensure_open()
            found = self._registrations.get(key)
            if found is None:
                self._count += 1
                found = self._registrations[key] = Registration(tensor, self._count)
                self._numbers[found.number] = found
                _live.add(self)
            found.handles += 1
            return TenrecMemory(self, found)

    def unregister_memory(self, memory, *, timeout=None):
        """Ends all handles, views and descriptors of the memory. Returns when the peer cannot reach it any more."""
        limit = self._limit(timeout)
        with self._lock:
            self._ensure_open()
            if not isinstance(memory, TenrecMemory) or memory._transport is not self:
                raise TypeError("the memory was not registered by this transport")
            registration = memory._registration
            if not registration.active:
                return
            if any(view._memory._registration is registration for view in self._cuda_stream_views()):
                raise RuntimeError("the memory is in use by transfers of a CUDA stream or graph")
            if any(work.views[0]._memory._registration is registration for work in self._pending):
                raise RuntimeError("the memory has pending transfers: wait for them first")
            registration.active = False
        try:
            registration.end(limit)
        except BaseException:
            registration.active = True
            raise
        with self._lock:
            self._forget(registration)

    def _forget(self, registration):
        registration.active = False
        self._numbers.pop(registration.number, None)
        for key in [key for key, value in self._registrations.items() if value is registration]:
            del self._registrations[key]
        if not self._registrations and not self._pending:
            _live.discard(self)

    def exposed(self, number):
        """Returns the registration of this number, for the peer; None once it has ended."""
        found = self._numbers.get(number)
        return found if found is not None and found.active else None

    def _remote_buffer(self, registration, timeout):
        _validate_timeout(timeout)
        with self._lock:
            self._ensure_open()
            registration.ensure_active()
            return TenrecRemoteBuffer(self._hub.process, self._number, registration.number, registration.length,
                                      registration.device, registration.key)

    # ---- transfers

    def _check_transfer(self, local_buffer, remote_buffer, *, mutable):
        expected = TenrecMutableMemoryView if mutable else TenrecMemoryView
        if not isinstance(local_buffer, expected) or local_buffer._memory._transport is not self:
            raise TypeError(f"local_buffer is no {expected.__name__} of this transport")
        if not isinstance(remote_buffer, TenrecRemoteBuffer):
            raise TypeError("remote_buffer is no descriptor of a transport 'tenrec'")
        peer = self._peer
        if peer is None or (peer.process, peer.endpoint) != (remote_buffer.process, remote_buffer.endpoint):
            raise ValueError("remote_buffer is not that of the connected peer")
        if local_buffer.size() > remote_buffer.length:
            raise ValueError(f"the view has {local_buffer.size()} bytes, the memory of the peer {remote_buffer.length}")
        local_buffer._memory._registration.ensure_active()

    def write(self, local_buffer, remote_buffer, *, async_op=False, timeout=None):
        """Writes a view to the memory of the peer, from its first byte on."""
        return self._start(local_buffer, remote_buffer, False, async_op, timeout)

    def read(self, local_buffer, remote_buffer, *, async_op=False, timeout=None):
        """Reads the memory of the peer, from its first byte on, into a view."""
        return self._start(local_buffer, remote_buffer, True, async_op, timeout)

    def _start(self, local, remote, reads, async_op, timeout):
        limit = self._limit(timeout)
        work = TenrecWork((local, remote), self._default_timeout if timeout is None else timeout)
        with self._lock:
            self._ensure_open()
            self._check_transfer(local, remote, mutable=reads)
            if local.size():
                self._pending.add(work)
        if not local.size():
            work.finish()
        else:
            _Transfer(self, work, reads, None if async_op else limit).begin()
        if async_op:
            return work
        work._limit = max(0.0, limit())
        work.wait()
        return 0

    def _ended(self, work, error):
        with self._lock:
            self._pending.discard(work)
            if error is not None:
                self._refs.pop(work.views[1], None)
            if not self._registrations and not self._pending:
                _live.discard(self)
        work.finish(error)

    # ---- the end

    def close(self, *, timeout=None):
        """Ends the transfers under way, and then the memory for the peer. After TimeoutError it may be called again."""
        limit = self._limit(timeout)
        self._close_cuda_streams()
        error = None
        for work in self._begin_close():
            work._done.wait(max(0.0, limit()))
            if not work.is_completed():
                raise TimeoutError("the transport has pending transfers: close it again later")
            error = error or work.exception()
        self._release(limit)
        if error is not None:
            raise error

    async def close_async(self, *, timeout=None):
        """The same in a coroutine, whose loop goes on."""
        limit = self._limit(timeout)
        self._close_cuda_streams()
        error = None
        pending = self._begin_close()
        try:
            await wait_all(pending, timeout=max(0.0, limit()))
        except BaseException as failure:
            if isinstance(failure, asyncio.CancelledError) or not all(work.is_completed() for work in pending):
                raise
            error = failure
        await asyncio.to_thread(self._release, limit)
        if error is not None:
            raise error

    def _begin_close(self):
        with self._lock:
            self._closing = True
            return list(self._pending)

    def _release(self, limit):
        with self._lock:
            left = list(self._registrations.values())
        for registration in left:
            registration.active = False
            registration.end(limit)
            with self._lock:
                self._forget(registration)
        with self._lock:
            self._refs.clear()
        self._hub.transports.pop(self._number, None)
        _live.discard(self)


class _Transfer:
    """The steps of a transfer. Each is begun by the end of the one before: on the thread of the caller while it waits,
    which saves two switches of threads, else on a thread of Tenrec."""

    def __init__(self, transport, work, reads, limit):
        self._transport = transport
        self._work = work
        self._local, self._remote = work.views
        self._queued = self._local._memory._registration.queued()  # by the caller, whose thread this is
        self._reads = reads
        self._limit = limit  # seconds left for the caller; None: it does not wait
        self._worker = transport._hub.worker

    def begin(self):
        """Waits until both sides have connected, unless that is so."""
        met = self._transport._met
        if met.done():
            self._step(self._find, met)
        else:
            self._limit = None
            met.add_done_callback(lambda future: self._step(self._find, future))

    def _step(self, step, *args):
        """Ends the transfer if the step raises."""
        try:
            step(*args)
        except Exception as error:  # pylint: disable=broad-except
            self._transport._ended(self._work, error)

    def _then(self, future, step):
        """Continues with step(result) after a call."""
        if self._limit is not None:
            try:
                result = future.wait(max(self._limit(), 0.001))
            except BaseException as error:  # also Ctrl-C
                if future.done():
                    raise
                self._later(future, step)
                if isinstance(error, TimeoutError):
                    return
                raise
            step(result)
        else:
            self._later(future, step)

    def _later(self, future, step):
        self._limit = None
        future._on_done(lambda: self._step(lambda: step(future.wait())))

    def _find(self, met):
        """Asks the owner for the region of its memory: once."""
        met.result()
        ref = self._transport._refs.get(self._remote)
        if ref is None:
            self._then(self._call(RESOLVE), self._found)
        else:
            self._prepare(ref)

    def _call(self, function, *more):
        remote = self._remote
        return self._worker.call_async(self._transport._link.peer, function, remote.endpoint, remote.memory, remote.key, *more, timeout=NO_LIMIT)

    def _found(self, ref):
        refs = self._transport._refs
        if len(refs) >= REFS_MAX:
            refs.clear()
        refs[self._remote] = ref
        self._prepare(ref)

    def _prepare(self, ref):
        if not self._reads:
            self._local._memory._registration.to_host(self._local._offset, self._local._length, self._queued)
        if self._reads and self._remote.device != "cpu":
            self._then(self._call(STAGE, self._local._length), lambda _: self._move(ref))
        else:
            self._move(ref)

    def _move(self, ref):
        offset, length = self._local._offset, self._local._length
        part = self._local._memory._registration.host[offset:offset + length]
        begin = self._worker.read_async if self._reads else self._worker.write_async
        self._then(begin(ref, part, timeout=NO_LIMIT), self._moved)

    def _moved(self, _):
        if self._reads:
            self._local._memory._registration.to_device(self._local._offset, self._local._length, self._queued)
        if not self._reads and self._remote.device != "cpu":
            self._then(self._call(LAND, self._local._length), self._end)
        else:
            self._end(None)

    def _end(self, _):
        self._transport._ended(self._work, None)
