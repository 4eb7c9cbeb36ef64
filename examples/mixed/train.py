# SPDX-License-Identifier: Apache-2.0
"""train.py - a PyTorch program whose helper is a C program: it sends it tensors to be smoothed, and
answers what the helper asks. See examples/mixed/run."""
import torch

import tenrec_torch.worker as worker

# What C may call: gets a torch.Tensor, returns a number.
worker.register("norm", lambda x: float(torch.linalg.norm(x)))

worker.init_rpc("trainer")
noisy = torch.tensor([0.0, 3.0, 0.0, 3.0, 0.0, 3.0])
print("train: smoothed", worker.call("smoother", "smooth", noisy).tolist())
try:
    worker.call("smoother", "smooth", torch.ones(2, 2))
except ValueError as e:  # what the C function returned: EINVAL
    print("train:", e)
worker.shutdown()
