# SPDX-License-Identifier: Apache-2.0
"""torch_process.py NAME RANK URL [WORLD_SIZE] - a process of torch.distributed.rpc on torch's own backend, without any
part of Tenrec. Joins a dynamic group, or a static one of that size, says "up", or "down" and why, evaluates each line of
stdin, and writes one line with what came of it."""
import operator  # for the lines
import os
import signal
import sys
import threading
import time

os.environ["TP_SOCKET_IFNAME"] = "lo"
import torch
from torch.distributed import rpc

LIMIT_S = 60


@torch.jit.script
def scripted(a: torch.Tensor, b: int):
    return a + b


def names():
    return sorted(w.name for w in rpc.api._get_current_rpc_agent().get_worker_infos())


def call(to, function, *args):
    return rpc.rpc_sync(to, function, args)


kept = {}


def keep(name, value):
    kept[name] = value


def drop(name):
    del kept[name]


def remote(to, function, *args):
    return rpc.remote(to, function, args)


def fetch(ref):
    return ref.to_here()


def wait_for_refs(**counts):
    """Waits until torch counts so many: num_owner_rrefs, num_pending_users, num_forks."""
    until = time.monotonic() + LIMIT_S
    while True:
        now = {k: int(v) for k, v in rpc._rref_context_get_debug_info().items() if k in counts}
        if now == counts or time.monotonic() > until:
            return now
        threading.Event().wait(0.01)


def stop():
    """Stops this process. Another thread may take the signal, so this one waits: no answer leaves before."""
    os.kill(os.getpid(), signal.SIGSTOP)
    threading.Event().wait(LIMIT_S)


class Counter:
    """In C; torch checks here that there is such a method."""

    def __init__(self, start):
        raise NotImplementedError

    def add(self, n):
        raise NotImplementedError


def main():
    name, rank, url, *world = sys.argv[1:]
    options = rpc.TensorPipeRpcBackendOptions(init_method=url, rpc_timeout=LIMIT_S)
    try:
        rpc.init_rpc(name, rank=int(rank), world_size=int(world[0]) if world else None, rpc_backend_options=options)
    except Exception as e:  # pylint: disable=broad-except
        print("down", type(e).__name__, str(e).replace("\n", " "), flush=True)
        sys.exit(1)
    print("up", flush=True)
    for line in sys.stdin:
        try:
            print(repr(eval(line)).replace("\n", " "), flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print(type(e).__name__, str(e).replace("\n", " "), flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    main()
