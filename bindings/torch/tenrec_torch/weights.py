# SPDX-License-Identifier: Apache-2.0
"""tenrec_torch.weights - state dicts as versions of a set of weights. No tensor is pickled.

    from tenrec_torch import weights

    policy = worker.weights("policy", keeper="trainer0")            # a tenrec.Weights
    weights.publish_state_dict(policy, 7, model.state_dict())       # at a trainer
    have = weights.load_state_dict(policy, model, after=have)       # at a generator: waits for a newer version

See docs/weights.md.
"""
import torch
from tenrec_rpc import Shard

__all__ = ["load_state_dict", "publish_state_dict"]


def publish_state_dict(weights, version, state_dict, *, shards=None, publishers=1, in_place=False, timeout=None):
    """Publishes the tensors of a state dict as a version, or as one of `publishers` parts of it, and returns when all
    parts are published.

    shards    {name: (shape of the whole, first element)} of tensors that are a part of one; a DTensor has its own
    in_place  readers read the tensors themselves, which may change only after weights.withdraw; else a copy
    """
    tensors = {}
    for name, tensor in _tensors(state_dict):
        tensor, shard = _local(name, tensor, shards)
        plain = tensor.resolve_conj().resolve_neg()
        if in_place and (not _has_memory(plain) or plain.data_ptr() != tensor.data_ptr()):
            raise ValueError(f"'{name}' is no contiguous memory of the host, as in_place needs: publish a copy")
        tensors[name] = _sent(_bytes(plain.cpu()), shard)
    weights.publish(version, tensors, publishers=publishers, in_place=in_place, timeout=timeout)


def load_state_dict(weights, target, version=None, *, after=0, shards=None, timeout=None):
    """Fills the tensors of a module, or of its state dict, with a version, waits until there is one, and returns its
    number. They are then read by other workers, too: change them only by further loads, or after weights.withdraw.

    version  None: the latest; with `after`, a version newer than that
    shards   as of publish_state_dict
    """
    state_dict = target.state_dict() if isinstance(target, torch.nn.Module) else target
    tensors = list(_distinct(state_dict, shards))
    own = _own([tensor for _, tensor, _ in tensors])
    wanted, copies = {}, []
    for name, tensor, shard in tensors:
        memory = tensor
        if id(tensor) not in own:
            memory = torch.empty(tensor.shape, dtype=tensor.dtype)
            copies.append((tensor, memory))
        wanted[name] = _sent(_bytes(memory), shard)
    version = weights.pull(wanted, version, after=after, timeout=timeout)
    for tensor, memory in copies:
        tensor.copy_(memory)
    _note_changes(tensor for _, tensor, _ in tensors)
    return version


def _tensors(state_dict):
    for name, tensor in state_dict.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"'{name}' is a {type(tensor).__name__}, expected a tensor: leave it out, and send it by a call")
        if tensor.layout != torch.strided or getattr(tensor, "is_quantized", False) or tensor.device.type == "meta":
            raise TypeError(f"'{name}' has no plain memory ({tensor.layout}, {tensor.dtype}, on {tensor.device})")
        yield name, tensor


def _local(name, tensor, shards):
    """The memory of this process, and its Shard, or None."""
    if name in (shards or {}):
        return tensor.detach(), Shard(None, *shards[name])
    if hasattr(tensor, "placements"):
        return _local_of_dtensor(name, tensor)
    return tensor.detach(), None


def _local_of_dtensor(name, tensor):
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor import Shard as Split
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    if not all(type(placement) in (Replicate, Split) for placement in tensor.placements):
        raise TypeError(f"'{name}' is a DTensor with the placements {tensor.placements}, expected Shard and Replicate alone")
    _, at = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return tensor.detach().to_local(), Shard(None, tuple(tensor.shape), tuple(at))


def _sent(memory, shard):
    return shard._replace(tensor=memory) if shard else memory


def _bytes(tensor):
    """Types of a byte that DLPack does not have in each torch, such as bool and float8, travel as uint8."""
    plain = tensor.element_size() > 1 or tensor.dtype in (torch.uint8, torch.int8)
    return tensor if plain else tensor.view(torch.uint8)


def _has_memory(tensor):
    return tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _distinct(state_dict, shards):
    """Tensors that are the same memory, such as tied weights, are loaded by their first name."""
    seen = set()
    for name, tensor in _tensors(state_dict):
        tensor, shard = _local(name, tensor, shards)
        key = tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), tensor.device, tensor.is_conj(), tensor.is_neg()
        if tensor.numel() > 0 and key not in seen:
            seen.add(key)
            yield name, tensor, shard


def _own(tensors):
    """The ids of the tensors that can be filled where they are: none is a part of another one."""
    own, end = set(), 0
    for tensor in sorted(filter(_has_memory, tensors), key=torch.Tensor.data_ptr):
        if tensor.data_ptr() >= end:
            own.add(id(tensor))
            end = tensor.data_ptr() + tensor.numel() * tensor.element_size()
    return own


def _note_changes(tensors):
    """Lets autograd notice that the tensors have changed, as after copy_."""
    note = getattr(torch.autograd.graph, "increment_version", None)
    for tensor in tensors:
        if note and not tensor.is_inference():
            note(tensor)
