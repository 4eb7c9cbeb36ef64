# SPDX-License-Identifier: Apache-2.0
"""ray.py - tensors of Ray's actors by regions of Tenrec: a tensor transport of Ray Direct Transport, for Ray 2.60.

    from tenrec_rpc.adapters.ray import register

    register()                                       # in the driver, before it makes the actors

    @ray.remote(enable_tensor_transport=True)
    class Producer:
        @ray.method(tensor_transport="tenrec")
        def make(self):
            return numpy.ones(1 << 20)

The actor that made a tensor offers its memory as a region, and the receiver reads it: the owner's program runs nothing.
See docs/adapters.md.
"""
from __future__ import annotations

import collections
import secrets
import sys
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

import ray.util
from ray.exceptions import RayDirectTransportError
from ray.experimental import CommunicatorMetadata, TensorTransportManager, TensorTransportMetadata, register_tensor_transport
from ray.experimental.rdt.tensor_transport_manager import FetchRequest

import tenrec_rpc as tenrec

NAME = "TENREC"
LINKS = 512  # to processes that made tensors; a worker has 1023 at most
REVOKE_S = 5.0  # for readers of a tensor that is no longer referenced


def register(data_type: type | None = None) -> None:
    """Registers the transport: call it in the process that makes the actors, before it makes them.

    data_type  torch.Tensor or numpy.ndarray; None: that of torch, where it can be imported
    """
    register_tensor_transport(NAME, ["cpu"], TenrecTransport, data_type or _default())


def _default() -> type:
    try:
        import torch
        found: type = torch.Tensor
    except ImportError:
        import numpy
        found = numpy.ndarray
    return found


@dataclass
class TenrecMetadata(TensorTransportMetadata):
    """What a receiver needs: the record of the owner, and a reference to each tensor, None for an empty one."""

    record: bytes = b""
    refs: list[bytes | None] = field(default_factory=list)


@dataclass
class TenrecCommunicator(CommunicatorMetadata):
    """Nothing: the metadata of the tensors name their owner."""


@dataclass
class TenrecFetch(FetchRequest):
    """Reads under way. They keep the link to the owner."""

    transfer: tenrec.Transfer | None = None
    link: tenrec.Link | None = None


class TenrecTransport(TensorTransportManager):
    """The transport of a process, whose worker stands alone and is linked to the owners of tensors."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all below
        self._worker: tenrec.Worker | None = None
        self._record = b""
        self._regions: dict[str, list[tenrec.Region | None]] = {}  # by object
        self._links: collections.OrderedDict[bytes, tenrec.Link] = collections.OrderedDict()  # by record, the last used at the end
        self._fetches: weakref.WeakValueDictionary[int, TenrecFetch] = weakref.WeakValueDictionary()

    def tensor_transport_backend(self) -> str:
        """The name that `tensor_transport=` of a method has."""
        return NAME

    @staticmethod
    def is_one_sided() -> bool:
        """The receiver reads."""
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        """A read that fails or is aborted leaves both actors as they are, so that Ray kills none."""
        return True

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        """The package is installed wherever the transport was registered."""
        return True

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: str | None = None) -> TenrecCommunicator:
        """Nothing has to be agreed before a read."""
        return TenrecCommunicator()

    # ---- at the owner

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Any]) -> TenrecMetadata:
        """Offers the tensors of an object as regions, once: a repeated task has the same ones."""
        with self._lock:
            worker = self._started()
            if obj_id not in self._regions:
                self._regions[obj_id] = _offer(worker, rdt_object)
            refs = [None if region is None else bytes(region.ref) for region in self._regions[obj_id]]
            return TenrecMetadata([(t.shape, t.dtype) for t in rdt_object], "cpu" if rdt_object else None, self._record, refs)

    def garbage_collect(self, obj_id: str, tensor_transport_meta: TensorTransportMetadata, tensors: list[Any]) -> None:
        """Ends the regions of an object: then no byte of it is read any more, or TimeoutError names the reader."""
        with self._lock:
            regions = self._regions.pop(obj_id, [])
        late = None
        for region in regions:
            try:
                if region is not None:
                    region.revoke(REVOKE_S)
            except tenrec.TimeoutError as e:
                late = e
            finally:
                if region is not None:
                    region.drop()
        if late:
            raise late

    def send_multiple_tensors(self, tensors: list[Any], tensor_transport_metadata: TensorTransportMetadata,
                              communicator_metadata: CommunicatorMetadata) -> None:
        """Never called: the receiver reads."""
        raise NotImplementedError("the transport 'tenrec' is one-sided")

    # ---- at the receiver

    def recv_multiple_tensors(self, obj_id: str, tensor_transport_metadata: TensorTransportMetadata, communicator_metadata: CommunicatorMetadata,
                              target_buffers: list[Any] | None = None) -> list[Any]:
        """Reads the tensors of an object, at most for worker.rpc_timeout of the configuration."""
        return self.wait_fetch_complete(self.fetch_multiple_tensors(obj_id, tensor_transport_metadata, communicator_metadata, target_buffers))

    def fetch_multiple_tensors(self, obj_id: str, tensor_transport_metadata: TensorTransportMetadata, communicator_metadata: CommunicatorMetadata,
                               target_buffers: list[Any] | None = None) -> TenrecFetch:
        """Begins to read them: all at once, in one batch."""
        meta = tensor_transport_metadata
        if not isinstance(meta, TenrecMetadata):
            raise TypeError(f"the metadata of object {obj_id} are {type(meta).__name__}, expected those of the transport 'tenrec'")
        tensors = [_empty(*of) for of in meta.tensor_meta] if target_buffers is None else list(target_buffers)
        reads = _reads(tensors, meta)
        fetch = TenrecFetch(obj_id, tensors)
        if not reads:
            return fetch
        try:
            with self._lock:
                worker = self._started()
                fetch.link = self._link(worker, meta.record)
                fetch.transfer = worker.transfer_async(reads)
                self._fetches[id(fetch)] = fetch
        except tenrec.Error as e:
            raise _failed(obj_id, e) from e
        return fetch

    def wait_fetch_complete(self, fetch_request: FetchRequest, timeout: float = -1) -> list[Any]:
        """Returns the tensors, or raises TimeoutError after `timeout` seconds; below 0: when the read has ended."""
        transfer = fetch_request.transfer if isinstance(fetch_request, TenrecFetch) else None
        try:
            if transfer is not None:
                transfer.result(None if timeout < 0 else timeout)
        except tenrec.TimeoutError:
            raise
        except tenrec.Error as e:
            raise _failed(fetch_request.obj_id, e) from e
        tensors: list[Any] = fetch_request.tensors
        return tensors

    def abort_transport(self, obj_id: str, communicator_metadata: CommunicatorMetadata) -> None:
        """Ends the waits for an object. Its memory stays as long as bytes arrive."""
        with self._lock:
            found = [fetch for fetch in self._fetches.values() if fetch.obj_id == obj_id]
        for fetch in found:
            if fetch.transfer is not None:
                fetch.transfer.cancel()

    # ---- the worker

    def _started(self) -> tenrec.Worker:
        if self._worker is None:
            name = f"ray-{secrets.token_hex(8)}"
            at = f"memory://{name}?rank=0&world_size=1&host={ray.util.get_node_ip_address()}"
            worker = tenrec.Worker(name, overrides={"init_method": at})
            worker.init_rpc()
            self._worker, self._record = worker, worker.bind()
        return self._worker

    def _link(self, worker: tenrec.Worker, record: bytes) -> tenrec.Link | None:
        """The link to the owner of a record; None for this process."""
        if record == self._record:
            return None
        if record not in self._links:
            self._links[record] = worker.connect(record)
        self._links.move_to_end(record)
        while len(self._links) > LINKS:
            self._links.popitem(last=False)  # it ends with the reads that use it
        return self._links[record]


def _failed(obj_id: str, why: tenrec.Error) -> Exception:
    made: Exception = RayDirectTransportError(f"object {obj_id} was not read by Tenrec: {why}")
    return made


def _offer(worker: tenrec.Worker, tensors: list[Any]) -> list[tenrec.Region | None]:
    """A region of each tensor. Each is its own, so that the end of an object ends no other one of the same memory."""
    made: list[tenrec.Region | None] = []
    try:
        for number, tensor in enumerate(tensors):
            memory = _memory(f"tensor {number}", tensor)
            made.append(None if memory is None else worker.region(memory, "r", own=True))
    except BaseException:
        for region in made:
            if region is not None:
                region.drop()
        raise
    return made


def _reads(tensors: list[Any], meta: TenrecMetadata) -> list[tenrec.Read]:
    """The reads of all tensors that have bytes: as many as the owner offers, of the same length."""
    if not len(tensors) == len(meta.refs) == len(meta.tensor_meta):
        raise ValueError(f"{len(tensors)} tensors for {len(meta.refs)} references and {len(meta.tensor_meta)} shapes")
    reads = []
    for number, (tensor, ref) in enumerate(zip(tensors, meta.refs)):
        memory = _memory(f"target {number}", tensor)
        length = 0 if memory is None else len(memory)
        offered = 0 if ref is None else tenrec.RegionRef(ref).length
        if length != offered:
            raise ValueError(f"target {number} has {length} bytes, and its tensor {offered}")
        if ref is not None:
            reads.append(tenrec.Read(ref, memory))
    return reads


def _memory(what: str, tensor: Any) -> Any:
    """The bytes of a tensor of torch or numpy, without a copy; None: it has none."""
    numpy: Any = sys.modules.get("numpy")
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
            raise ValueError(f"{what} has no plain memory of the host ({tensor.layout}, on {tensor.device})")
        contiguous, length, byte = tensor.is_contiguous(), tensor.numel(), torch.uint8
        tensor = tensor.detach()
    elif numpy is not None and isinstance(tensor, numpy.ndarray) and not tensor.dtype.hasobject:
        contiguous, length, byte = tensor.flags.c_contiguous, tensor.nbytes, numpy.uint8
    else:
        raise TypeError(f"{what} is {type(tensor).__name__}, expected a tensor of torch or an array of numbers")
    if not contiguous:
        raise ValueError(f"{what} is not contiguous: return a contiguous copy of it")
    return tensor.reshape(-1).view(byte) if length else None


def _empty(shape: Any, dtype: Any) -> Any:
    """Memory for a tensor that another process has described."""
    numpy: Any = sys.modules.get("numpy")  # the one of the type has been imported
    torch: Any = sys.modules.get("torch")
    for library in (numpy, torch):
        if library is not None and isinstance(dtype, library.dtype):
            return library.empty(tuple(shape), dtype=dtype)
    raise TypeError(f"the element type is {type(dtype).__name__}, expected one of numpy or torch")
