# SPDX-License-Identifier: Apache-2.0
"""trainer.py RANK INIT_METHOD - a program of torch.distributed.rpc on torch's own backend: fits four weights whose
parameter server, the worker "ps", happens to be a program in C."""
import sys

import ps
import torch
from torch.distributed import rpc

STEPS = 100
TRUTH = torch.tensor([1.0, -2.0, 3.0, 0.5])


def main():
    rank, init_method = int(sys.argv[1]), sys.argv[2]
    options = rpc.TensorPipeRpcBackendOptions(init_method=init_method)
    rpc.init_rpc(f"trainer{rank}", rank=rank, rpc_backend_options=options)
    torch.manual_seed(rank)
    for _ in range(STEPS):
        weight = rpc.rpc_sync("ps", ps.pull).requires_grad_()
        inputs = torch.randn(32, len(TRUTH))
        loss = ((inputs @ weight - inputs @ TRUTH) ** 2).mean()
        loss.backward()
        rpc.rpc_sync("ps", ps.push, (weight.grad,))
    rpc.rpc_sync("ps", ps.done)
    rpc.shutdown()


main()
