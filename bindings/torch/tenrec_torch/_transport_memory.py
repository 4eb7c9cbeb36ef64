# SPDX-License-Identifier: Apache-2.0
"""Memory that a transport has registered, views of it, and what names it to the peer."""
import operator
import secrets
import threading
from dataclasses import dataclass

import tenrec_rpc as tenrec
import torch
from torch.distributed._transport._serialization import _WireDescriptor


@dataclass(frozen=True)
class TenrecRemoteBuffer(_WireDescriptor):
    """Names memory to the peer. The key lets its holder read and write the memory."""

    _backend = "tenrec"
    _fields = {"process": str, "endpoint": int, "memory": int, "length": int, "device": str, "key": bytes}

    process: str
    endpoint: int
    memory: int
    length: int
    device: str
    key: bytes


class Registration:
    """Memory, and the region that shows it to peers. Of a device, what peers see is a copy on the host."""

    def __init__(self, tensor, number):
        self.tensor = tensor
        self.number = number
        self.key = secrets.token_bytes(16)
        self.bytes = tensor.detach().reshape(-1).view(torch.uint8)
        self.length = self.bytes.numel()
        self.address = tensor.data_ptr()
        self.device = tensor.device.type
        self.staged = self.device != "cpu"
        self.host = torch.empty(self.length, dtype=torch.uint8, pin_memory=True) if self.staged else self.bytes
        self.active = True
        self.handles = 0
        self._copying = threading.Lock()  # of a copy that a peer asks for
        self._lock = threading.Lock()  # guards the next
        self._region = None  # made for the first peer that asks

    def ensure_active(self):
        """Raises unless transfers may begin."""
        if not self.active:
            raise RuntimeError("the memory has been unregistered")
        if self.tensor.data_ptr() != self.address or self.tensor.numel() * self.tensor.element_size() != self.length:
            raise RuntimeError("the registered tensor was resized, or its storage was replaced")

    def region(self, worker):
        """Returns the region of the memory, which no other registration of it shares."""
        with self._lock:
            if self._region is None:
                self._region = worker.region(self.host, "rw", own=True)
            return self._region

    def end(self, limit):
        """Returns when no peer can reach the memory any more; `limit()` is the time left, in seconds."""
        with self._lock:
            region = self._region
        if region is None:
            return
        region.revoke(max(limit(), 0.001))
        if not self._copying.acquire(timeout=max(limit(), 0.001)):
            raise TimeoutError("the copy of a transfer between the host and the device has not ended")
        self._copying.release()
        with self._lock:
            if self._region is region:
                region.drop()
                self._region = None

    def queued(self):
        """Returns an event behind the work that this thread has queued on the device, None for memory of the host."""
        return torch.cuda.current_stream(self.bytes.device).record_event() if self.staged else None

    def to_host(self, offset, length, queued=None):
        """Copies from the device to what peers see, after an event."""
        self._copy(self.host, self.bytes, slice(offset, offset + length), queued)

    def to_device(self, offset, length, queued=None):
        """The other way."""
        self._copy(self.bytes, self.host, slice(offset, offset + length), queued)

    def _copy(self, to, source, part, queued):
        if not self.staged:
            return
        if queued is not None:
            queued.synchronize()
        to[part].copy_(source[part])
        self.queued().synchronize()

    def serve(self, copy, length):
        """Copies for a peer, by a method of this registration. end() waits for it; then there are no more."""
        with self._copying:
            if not self.active:
                raise tenrec.Error("the memory has been unregistered, or its transport was closed", status="ESTALE")
            copy(self, 0, length)


class TenrecMemoryView:
    """A range of registered memory."""

    def __init__(self, memory, offset, length):
        self._memory = memory
        self._offset = offset
        self._length = length

    def size(self):
        """Its bytes."""
        return self._length


class TenrecMutableMemoryView(TenrecMemoryView):
    """One that transfers may write."""

    writable = True


class TenrecMemory:
    """A tensor that is registered with a transport."""

    def __init__(self, transport, registration):
        self._transport = transport
        self._registration = registration

    def _range(self, offset, length):
        registration = self._registration
        registration.ensure_active()
        offset = 0 if offset is None else operator.index(offset)
        if not 0 <= offset <= registration.length:
            raise ValueError(f"a view at {offset}: the memory has {registration.length} bytes")
        length = registration.length - offset if length is None else operator.index(length)
        if not 0 <= length <= registration.length - offset:
            raise ValueError(f"a view of {length} bytes at {offset}: the memory has {registration.length} bytes")
        return offset, length

    def to_view(self, offset=None, length=None):
        """Returns a view of `length` bytes from `offset` on."""
        return TenrecMemoryView(self, *self._range(offset, length))

    def to_mutable_view(self, offset=None, length=None):
        """Returns a view that transfers may write."""
        return TenrecMutableMemoryView(self, *self._range(offset, length))

    def to_remote_buffer(self, *, timeout=None):
        """Returns what names the memory to the peer."""
        return self._transport._remote_buffer(self._registration, timeout)

    def reused_registration(self):
        """Returns true if the memory was registered before this handle."""
        return self._registration.handles > 1
