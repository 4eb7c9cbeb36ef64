# SPDX-License-Identifier: Apache-2.0
"""gpu_torch.py [BACKEND]... - torch.distributed.rpc with device maps: a tensor from a GPU to the
same GPU in another process and back. The same work as tests/tensorpipe/cuda/bench.c.

One JSON object on stdout: the time of a call on each BACKEND, by default TENSORPIPE alone, and
with several the time of the last one over that of the first."""
import json
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

SIZES = [4, 1 << 20, 16 << 20, 64 << 20, 256 << 20]
ROUNDS = 30


def echo(tensor):
    return tensor


def worker(rank, backend, port, rows):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if backend != "TENSORPIPE":
        import tenrec_torch  # noqa: F401 - registers the backend
    options = rpc.TensorPipeRpcBackendOptions()
    options.set_device_map(f"worker{1 - rank}", {0: 0})
    rpc.init_rpc(f"worker{rank}", backend=rpc.backend_registry.BackendType[backend], rank=rank,
                 world_size=2, rpc_backend_options=options)
    if rank == 0:
        for size in SIZES:
            tensor = torch.ones(size, dtype=torch.uint8, device="cuda:0")
            times = []
            for i in range(ROUNDS + 3):
                torch.cuda.synchronize()
                start = time.perf_counter()
                rpc.rpc_sync("worker1", echo, args=(tensor,))
                torch.cuda.synchronize()
                if i >= 3:
                    times.append(time.perf_counter() - start)
            rows.put(round(statistics.median(times) * 1e6, 1))
    rpc.shutdown()


def measure(backend):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    rows = mp.get_context("spawn").SimpleQueue()
    mp.spawn(worker, (backend, port, rows), nprocs=2)
    return [rows.get() for _ in SIZES]


def main():
    backends = sys.argv[1:] or ["TENSORPIPE"]
    times = {backend: measure(backend) for backend in backends}
    rows = [{"bytes": size, "call_us": {backend: times[backend][i] for backend in backends}}
            for i, size in enumerate(SIZES)]
    if len(backends) > 1:
        for row in rows:
            row["ratio"] = round(row["call_us"][backends[-1]] / row["call_us"][backends[0]], 3)
    print(json.dumps({"torch": torch.__version__, "there_and_back": rows}))


if __name__ == "__main__":
    main()
