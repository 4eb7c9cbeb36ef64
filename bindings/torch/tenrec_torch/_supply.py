# SPDX-License-Identifier: Apache-2.0
"""What a torch that was built without TensorPipe lacks: names that its own code uses with any backend."""
import torch.distributed.rpc as rpc
from torch._C import _distributed_rpc
from torch.distributed.rpc import constants, options as torch_options

from ._options import DeviceOptions


class TensorPipeAgent:
    """The type of no agent. rpc.shutdown compares the agent of the process with it."""

    def __init__(self, *args):
        raise RuntimeError("this torch was built without TensorPipe, so the backend TENSORPIPE, which is torch's "
                           "default, does not exist: give init_rpc `backend=rpc.BackendType.TENREC`")


class TensorPipeRpcBackendOptions(DeviceOptions):
    """Options as a torch with TensorPipe has them. torch's own class of this name cannot be constructed
    without it, also not by init_rpc, which constructs the options of each backend to compare types."""

    def __init__(self, *, num_worker_threads=constants.DEFAULT_NUM_WORKER_THREADS,
                 rpc_timeout=constants.DEFAULT_RPC_TIMEOUT_SEC,
                 init_method=constants.DEFAULT_INIT_METHOD, device_maps=None, devices=None,
                 _transports=None, _channels=None):
        super().__init__(rpc_timeout, init_method, num_worker_threads, device_maps, devices)
        self.ways = _transports, _channels


def supply():
    """Adds the names that are missing, and no other."""
    if not hasattr(_distributed_rpc, "TensorPipeAgent"):
        _distributed_rpc.TensorPipeAgent = rpc.TensorPipeAgent = TensorPipeAgent
    if not issubclass(rpc.TensorPipeRpcBackendOptions, rpc.RpcBackendOptions):
        rpc.TensorPipeRpcBackendOptions = TensorPipeRpcBackendOptions
        torch_options.TensorPipeRpcBackendOptions = TensorPipeRpcBackendOptions
