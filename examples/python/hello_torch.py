# SPDX-License-Identifier: Apache-2.0
"""hello_torch.py - every worker has worker 0 add two tensors: tenrec run -n 3 -- python3 hello_torch.py"""
import os

import tenrec_torch  # noqa: F401  registers the backend TENREC
import torch
import torch.distributed.rpc as rpc

rank = int(os.environ["RANK"])
rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TENREC, rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
print("worker0 says", rpc.rpc_sync("worker0", torch.add, args=(torch.tensor(40), 2)).item())
rpc.shutdown()
