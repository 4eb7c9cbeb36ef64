# SPDX-License-Identifier: Apache-2.0
import abc
import dataclasses
from typing import Generic, TypeVar

Init = TypeVar("Init")
Update = TypeVar("Update")


@dataclasses.dataclass
class WeightTransferInitInfo:
    pass


@dataclasses.dataclass
class WeightTransferUpdateInfo:
    pass


@dataclasses.dataclass
class TrainerInitInfo(WeightTransferInitInfo):
    rank: int = dataclasses.field(kw_only=True)

    @property
    def is_sender(self):
        return self.rank == 0


class WeightTransferEngine(abc.ABC, Generic[Init, Update]):
    """Of a worker of vLLM. Control messages are dicts, of which it makes the engine's dataclasses."""

    def __init__(self, config, vllm_config, device, model):
        self.config, self.device, self.model, self.model_config = config, device, model, vllm_config.model_config

    def parse_init_info(self, values):
        return self.init_info_cls(**values)

    def update_weights(self, values):
        self.receive_weights(self.update_info_cls(**values))


class TrainerWeightTransferEngine(abc.ABC, Generic[Init, Update]):
    """Of a rank of the trainer."""

    def __init__(self, config, *, client, source, is_sender=True):
        self.config, self.client, self.source, self.is_sender = config, client, source, is_sender


for _class, _names in ((WeightTransferEngine, ("init_transfer_engine", "start_weight_update", "finish_weight_update", "receive_weights", "shutdown",
                                               "trainer_send_weights")),
                       (TrainerWeightTransferEngine, ("trainer_init", "send_weights"))):
    for _name in _names:
        setattr(_class, _name, abc.abstractmethod(lambda self: None))
    abc.update_abstractmethods(_class)
