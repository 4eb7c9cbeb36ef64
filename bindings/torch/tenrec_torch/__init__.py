# SPDX-License-Identifier: Apache-2.0
"""tenrec_torch - Tenrec as a backend of torch.distributed.rpc.

Importing it registers the backend TENREC:

    import torch.distributed.rpc as rpc
    import tenrec_torch

    rpc.init_rpc("worker0", backend=rpc.BackendType.TENREC, rank=0, world_size=2)

See docs/pytorch.md.
"""
from ._backend import register
from ._options import TenrecRpcBackendOptions

__all__ = ["TenrecRpcBackendOptions", "register"]

register()
