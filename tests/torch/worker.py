# SPDX-License-Identifier: Apache-2.0
"""worker.py - starts groups of workers, which are forks of it: it has imported torch for all.

Each line on standard input is a group: {"folder", "program", "config", "env"}, with WORLD in
`env`. What rank N prints is in FOLDER/said.N; the answer is a line with their exit codes."""
import contextlib
import gc
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed.rpc as rpc
from torch.distributed import autograd

import tenrec_torch

LIMIT = 60  # seconds for one program


def codes_of(workers):
    """Those that are not over at the limit are killed."""
    until = time.monotonic() + LIMIT
    codes = []
    for pid in workers:
        fd = os.pidfd_open(pid)
        if not select.select([fd], [], [], max(0, until - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(fd)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return codes


def start():
    """In each worker: its group and its rank."""
    while line := sys.stdin.readline():
        group = json.loads(line)
        workers = []
        for rank in range(int(group["env"]["WORLD"])):
            workers.append(os.fork())
            if not workers[-1]:
                return group, rank
        print(json.dumps(codes_of(workers)), flush=True)
    sys.exit()


def speak_into(path):
    """The worker has its own output, and no input."""
    for fd, path, flags in (0, os.devnull, os.O_RDONLY), (1, path, os.O_WRONLY | os.O_CREAT):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    os.dup2(1, 2)


gc.freeze()  # a worker that ends visits no object of ours, which would copy its page
group, rank = start()
speak_into(os.path.join(group["folder"], f"said.{rank}"))
os.environ.update(group["env"])


def init(name=None, world_size=None, **options):
    options = tenrec_torch.TenrecRpcBackendOptions(
        config=group["config"], init_method=os.environ["INIT_METHOD"], **options)
    rpc.init_rpc(name or f"w{rank}", backend=rpc.BackendType.TENREC, rank=rank,
                 world_size=world_size or int(os.environ["WORLD"]), rpc_backend_options=options)


def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert re.search(text, str(error)), f"{text} is not in: {error}"
    else:
        raise AssertionError(f"{kind} was expected")


def wait_until(condition):
    """A program that waits in vain is killed at its limit."""
    while not condition():
        threading.Event().wait(0.005)


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


exec(compile(group["program"], "program", "exec"))
