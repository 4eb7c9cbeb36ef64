# SPDX-License-Identifier: Apache-2.0
"""worker.py RANK CONFIG - runs the program on standard input as one worker of a group."""
import json
import os
import re
import subprocess
import sys
import threading
import time

import torch
import torch.distributed.rpc as rpc

import tenrec_torch

rank = int(sys.argv[1])


def init(name=None, world_size=None, **options):
    options = tenrec_torch.TenrecRpcBackendOptions(
        config=json.loads(sys.argv[2]), init_method=os.environ["INIT_METHOD"], **options)
    rpc.init_rpc(name or f"w{rank}", backend=rpc.BackendType.TENREC, rank=rank,
                 world_size=world_size or int(os.environ["WORLD"]), rpc_backend_options=options)


def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert re.search(text, str(error)), f"{text} is not in: {error}"
    else:
        raise AssertionError(f"{kind} was expected")


def same(x):
    return x


def down(to, n):
    me = rpc.get_worker_info().name
    return 0 if n == 0 else 1 + rpc.rpc_sync(to, down, args=(me, n - 1))


def fail():
    raise ValueError("no luck")


def nap(seconds):
    """Takes its time: the limit is what ends the wait."""
    threading.Event().wait(seconds)
    return seconds


exec(compile(sys.stdin.read(), "program", "exec"))
