# SPDX-License-Identifier: Apache-2.0
"""worker.py - the package tenrec_rpc, whose received tensors are torch's.

Not torch.distributed.rpc: a worker among C, C++ and Python programs that call each other's functions by
name, with values that all languages have. See docs/python.md; only the arguments of init_rpc differ.

    import tenrec_torch.worker as worker

    worker.register("double", lambda x: x * 2)
    worker.init_rpc("trainer")                 # rank, world size, MASTER_ADDR ... as torchrun sets them
    y = worker.call("cworker", "scale", torch.ones(4), 0.5)
    worker.shutdown()
"""
import tenrec_rpc as tenrec
import torch
from tenrec_rpc import call, call_async, get_worker, register, remote, rref, shutdown

__all__ = ["Worker", "call", "call_async", "get_worker", "init_rpc", "register", "remote", "rref", "shutdown"]


def _as_tensor(received):
    # torch has no read-only tensors: a write would crash the process.
    return torch.from_dlpack(received.copy() if received.read_only else received)


class Worker(tenrec.Worker):
    """A tenrec.Worker, for processes with several."""

    def __init__(self, name=None, config=None, overrides=None):
        super().__init__(name, config=config, overrides=overrides, as_tensor=_as_tensor)


def init_rpc(name=None, config=None, overrides=None):
    """Makes this process a worker; returns when all members have joined."""
    return tenrec.init_rpc(name, config=config, overrides=overrides, as_tensor=_as_tensor)
