# SPDX-License-Identifier: Apache-2.0
import abc
import dataclasses


@dataclasses.dataclass
class CommunicatorMetadata:
    pass


@dataclasses.dataclass
class TensorTransportMetadata:
    tensor_meta: list
    tensor_device: str | None = None


@dataclasses.dataclass
class FetchRequest:
    obj_id: str
    tensors: list


class TensorTransportManager(abc.ABC):
    """Its abstract methods; the two others, fetch_multiple_tensors and wait_fetch_complete, have a default in Ray."""


for _name in ("tensor_transport_backend", "is_one_sided", "can_abort_transport", "actor_has_tensor_transport", "extract_tensor_transport_metadata",
              "get_communicator_metadata", "recv_multiple_tensors", "send_multiple_tensors", "garbage_collect", "abort_transport"):
    setattr(TensorTransportManager, _name, abc.abstractmethod(lambda self: None))
abc.update_abstractmethods(TensorTransportManager)
