# SPDX-License-Identifier: Apache-2.0
"""train.py - a PyTorch program that has tensors smoothed by a worker in C, and answers that
worker's calls. See examples/mixed/run."""
import torch

import tenrec_torch.worker as worker

# A function for C to call: takes a torch.Tensor, returns a number.
worker.register("norm", lambda x: float(torch.linalg.norm(x)))

worker.init_rpc("trainer")
noisy = torch.tensor([0.0, 3.0, 0.0, 3.0, 0.0, 3.0])
print("train: smoothed", worker.call("smoother", "smooth", noisy).tolist())
try:
    worker.call("smoother", "smooth", torch.ones(2, 2))
except ValueError as e:  # what the C function returned: EINVAL
    print("train:", e)
worker.shutdown()
