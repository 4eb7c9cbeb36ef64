# SPDX-License-Identifier: Apache-2.0
"""tenrec_torch - Tenrec as a backend of torch.distributed.rpc.

Importing it registers the backend TENREC:

    import torch.distributed.rpc as rpc
    import tenrec_torch

    rpc.init_rpc("worker0", backend=rpc.BackendType.TENREC, rank=0, world_size=2)

See docs/pytorch.md.
"""
import tenrec_rpc as tenrec  # first: it loads the libtenrec of this process
import torch
import torch.distributed.rpc as rpc

from . import _fit

_fit.check_library(tenrec)
_fit.check_torch(torch)
if not rpc.is_available():
    raise ImportError(f"tenrec_torch: torch {torch.__version__} was built without torch.distributed.rpc (USE_RPC=0 or "
                      "USE_DISTRIBUTED=0), of which Tenrec is a backend: install a torch that has it")

# The rest needs torch.distributed.rpc, and loads the extension.
from ._backend import register
from ._options import TenrecRpcBackendOptions
from ._supply import supply

__all__ = ["TenrecRpcBackendOptions", "register"]

supply()
register()
