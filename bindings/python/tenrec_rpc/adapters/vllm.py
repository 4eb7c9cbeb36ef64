# SPDX-License-Identifier: Apache-2.0
"""vllm.py - weights of a trainer for vLLM, by versions of weights: the two weight transfer engines of vLLM 0.29 to 0.33.

    from tenrec_rpc.adapters.vllm import TenrecTrainerInitInfo, register

    register()                                       # in the trainer and in each process of vLLM
    llm = LLM(model, weight_transfer_config=WeightTransferConfig(backend="tenrec"))
    trainer = WeightTransferTrainerFactory.trainer_init(TenrecTrainerInitInfo(rank=0), client=client, source=ModuleSource(model))
    trainer.send_weights()                           # after each step, on every rank

The trainer publishes a version, each worker of vLLM pulls it. The engines are tested with the classes of vLLM 0.33, but in
no worker of vLLM, which needs a GPU. See docs/adapters.md.
"""
from __future__ import annotations

import base64
import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.distributed.weight_transfer.base import (TrainerInitInfo, TrainerWeightTransferEngine, WeightTransferEngine, WeightTransferInitInfo,
                                                   WeightTransferUpdateInfo)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory

import tenrec_rpc as tenrec

NAME = "tenrec"
LIMIT_S = 600.0  # of a transfer of all weights, at most that of a lease


def register() -> None:
    """Registers both engines by the name "tenrec"; may be called again."""
    for factory, engine in ((WeightTransferEngineFactory, TenrecEngine), (WeightTransferTrainerFactory, TenrecTrainerEngine)):
        with contextlib.suppress(ValueError):  # it is registered
            factory.register_engine(NAME, engine)


@dataclass
class TenrecInitInfo(WeightTransferInitInfo):
    """What a worker of vLLM needs to reach the trainer: plain values, which also travel as JSON."""

    record: str
    weights: str = "policy"
    timeout_s: float = LIMIT_S


@dataclass
class TenrecUpdateInfo(WeightTransferUpdateInfo):
    """A version, and what it has."""

    version: int
    names: list[str]
    dtype_names: list[str]
    shapes: list[list[int]]

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.dtype_names) == len(self.shapes):
            raise ValueError(f"{len(self.names)} names, {len(self.dtype_names)} types and {len(self.shapes)} shapes, expected as many of each")


class TenrecEngine(WeightTransferEngine[TenrecInitInfo, TenrecUpdateInfo]):
    """At a worker of vLLM: pulls a version into memory of the host, and loads the model from it. Engines that pull at the
    same time share the trainer; the memory stays for the next version."""

    init_info_cls = TenrecInitInfo
    update_info_cls = TenrecUpdateInfo
    _node: _Node | None = None
    _tensors: dict[str, torch.Tensor] = {}

    def init_transfer_engine(self, init_info: TenrecInitInfo) -> None:
        """Links this process to the trainer."""
        self.shutdown()
        node = _Node("vllm", None, init_info.timeout_s)
        try:
            link = node.worker.connect(base64.b64decode(init_info.record, validate=True))
            node.open(init_info.weights, link.name, link)
        except BaseException:
            node.close()
            raise
        self._node = node

    def start_weight_update(self) -> None:
        """Lets vLLM take weights as a checkpoint has them."""
        from vllm.model_executor.model_loader.reload import initialize_layerwise_reload
        initialize_layerwise_reload(self.model)

    def finish_weight_update(self) -> None:
        """Lets vLLM process what was loaded."""
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload
        finalize_layerwise_reload(self.model, self.model_config)

    def receive_weights(self, update_info: TenrecUpdateInfo) -> None:
        """Pulls the version and loads it; the trainer learns what became of it."""
        if self._node is None:
            raise RuntimeError("init_transfer_engine has not been called")
        weights, version = self._node.weights, update_info.version
        tensors = self._memory(update_info)
        try:
            weights.pull({name: _sent(tensor) for name, tensor in tensors.items()}, version, timeout=self._node.timeout_s)
            for name, tensor in tensors.items():
                self.model.load_weights([(name, tensor.to(self.device))])
        except Exception as e:
            with contextlib.suppress(tenrec.Error):  # a version that was not pulled has no report
                weights.report(version, e)
            raise
        weights.report(version)

    def _memory(self, info: TenrecUpdateInfo) -> dict[str, torch.Tensor]:
        """Memory of the host for all tensors: that of the version before, where it fits."""
        made: dict[str, torch.Tensor] = {}
        for name, dtype_name, shape in zip(info.names, info.dtype_names, info.shapes):
            dtype = getattr(torch, dtype_name, None)
            if not isinstance(dtype, torch.dtype):
                raise ValueError(f"'{name}' is of type '{dtype_name}', which torch does not have")
            old = self._tensors.get(name)
            if old is None or old.dtype != dtype or list(old.shape) != list(shape):
                old = torch.empty(shape, dtype=dtype)
            made[name] = old
        self._tensors = made
        return made

    def shutdown(self) -> None:
        """Ends the link to the trainer."""
        node, self._node = self._node, None
        self._tensors = {}
        if node is not None:
            node.close()


@dataclass
class TenrecTrainerInitInfo(TrainerInitInfo):
    """Of each rank of the trainer, of which rank 0 publishes.

    host  address of this host for vLLM's workers; None: they are on this host
    """

    backend: ClassVar[str] = NAME
    host: str | None = None
    weights: str = "policy"
    timeout_s: float = LIMIT_S


class TenrecTrainerEngine(TrainerWeightTransferEngine[TenrecTrainerInitInfo]):
    """At a trainer: publishes the weights of its source as a version, and has vLLM load it."""

    init_info_cls = TenrecTrainerInitInfo
    _node: _Node | None = None
    _version = 0

    @classmethod
    def trainer_init(cls, init_info: TenrecTrainerInitInfo, *, client: Any, source: Any = None) -> TenrecTrainerEngine:
        """Makes the engine of a rank. That of rank 0 has the worker which vLLM's workers read from."""
        if source is None:
            raise ValueError("the backend 'tenrec' sends the weights of a source, which is missing")
        made = cls(client=client, source=source, is_sender=init_info.is_sender)
        if made.is_sender:
            made._node = node = _Node("trainer", init_info.host, init_info.timeout_s)
            try:
                node.open(init_info.weights, node.worker.name)
                client.init_weight_transfer_engine({"record": base64.b64encode(node.worker.bind()).decode(), "weights": init_info.weights,
                                                    "timeout_s": init_info.timeout_s})
            except BaseException:
                made.shutdown()
                raise
        return made

    def send_weights(self) -> None:
        """Publishes a version without a copy of host memory, and returns when vLLM has loaded it and nobody reads it."""
        tensors = {}
        for name, tensor in _pairs(self.source):  # on every rank: it may gather
            if self.is_sender and tensor is None:
                raise ValueError(f"rank 0 has no tensor of '{name}': the backend 'tenrec' publishes what rank 0 has")
            if self.is_sender:
                tensors[name] = tensor.detach().cpu().contiguous()
        if not self.is_sender:
            return
        if self._node is None:
            raise RuntimeError("the engine was shut down")
        weights, limit = self._node.weights, self._node.timeout_s
        self._version += 1
        info = {"version": self._version, "names": list(tensors), "dtype_names": [str(t.dtype).removeprefix("torch.") for t in tensors.values()],
                "shapes": [list(t.shape) for t in tensors.values()]}
        weights.publish(self._version, {name: _sent(t) for name, t in tensors.items()}, in_place=True, timeout=limit)
        try:
            self.client.start_weight_update()
            self.client.update_weights(info)
            self.client.finish_weight_update()
        finally:
            weights.withdraw(self._version, limit)

    def shutdown(self) -> None:
        """Ends the worker."""
        node, self._node = self._node, None
        if node is not None:
            node.close()


class _Node:
    """A worker that stands alone, and its handle on the weights."""

    weights: tenrec.Weights

    def __init__(self, kind: str, host: str | None, timeout_s: float) -> None:
        name = f"{kind}-{secrets.token_hex(8)}"
        at = f"memory://{name}?rank=0&world_size=1" + (f"&host={host}" if host else "")
        self.timeout_s = timeout_s
        self._made: list[Any] = []
        self.worker = tenrec.Worker(name, overrides={"init_method": at})
        self.worker.init_rpc()

    def open(self, name: str, keeper: str, link: tenrec.Link | None = None) -> None:
        """Opens the set of that name, whose record the keeper has, and keeps the link to the keeper."""
        if link is not None:
            self._made.append(link.drop)
        self.weights = self.worker.weights(name, keeper)
        self._made.append(self.weights.close)

    def close(self) -> None:
        """Ends all of it."""
        for end in reversed(self._made):
            end()
        with contextlib.suppress(tenrec.Error):  # the worker is down, also after an error
            self.worker.shutdown(graceful=False)


def _pairs(source: Any) -> Iterator[tuple[str, Any]]:
    """The whole tensors of a source, by name: of vLLM 0.33, or of an earlier one, which has none of what other ranks have."""
    if not hasattr(source, "iter_full"):
        return iter(source)
    missing = [meta.name for meta in source.metadata if meta.owners is not None and 0 not in meta.owners]
    if missing:
        raise ValueError(f"rank 0 does not own '{missing[0]}': the backend 'tenrec' publishes what rank 0 has")
    pairs: Iterator[tuple[str, Any]] = source.iter_full()
    return pairs


def _sent(tensor: torch.Tensor) -> torch.Tensor:
    """Types of a byte travel as uint8: DLPack has not all of them in each torch."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor
