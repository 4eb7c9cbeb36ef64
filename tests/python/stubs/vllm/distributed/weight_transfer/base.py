# SPDX-License-Identifier: Apache-2.0
import abc
import dataclasses
from typing import ClassVar, Generic, TypeVar

Init = TypeVar("Init")
Update = TypeVar("Update")


@dataclasses.dataclass
class WeightTransferInitInfo:
    pass


@dataclasses.dataclass
class WeightTransferUpdateInfo:
    pass


@dataclasses.dataclass
class TrainerInitInfo:
    backend: ClassVar[str]
    rank: int = dataclasses.field(kw_only=True)

    def __init_subclass__(cls):
        if not getattr(cls, "backend", None):
            raise TypeError(f"{cls.__name__} has no backend")

    @property
    def is_sender(self):
        return self.rank == 0


class WeightTransferEngine(abc.ABC, Generic[Init, Update]):
    """Of a worker of vLLM. Control messages are dicts, of which it makes the engine's dataclasses."""

    def __init__(self, config, vllm_config, device, model):
        self.config, self.device, self.model = config, device, model
        self.parallel_config, self.model_config = vllm_config.parallel_config, vllm_config.model_config

    def parse_init_info(self, values):
        return self.init_info_cls(**values)

    def update_weights(self, values):
        self.receive_weights(self.update_info_cls(**values))


class TrainerWeightTransferEngine(abc.ABC, Generic[Init]):
    """Of a rank of the trainer."""

    def __init__(self, *, client, source=None, is_sender=True, rank=0):
        self.client, self.source, self.is_sender, self.rank = client, source, is_sender, rank


for _class, _names in ((WeightTransferEngine, ("init_transfer_engine", "start_weight_update", "finish_weight_update", "receive_weights", "shutdown")),
                       (TrainerWeightTransferEngine, ("trainer_init", "send_weights"))):
    for _name in _names:
        setattr(_class, _name, abc.abstractmethod(lambda self: None))
    abc.update_abstractmethods(_class)
