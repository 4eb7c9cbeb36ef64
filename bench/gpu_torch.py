# SPDX-License-Identifier: Apache-2.0
"""gpu_torch.py - torch.distributed.rpc with device maps: a tensor from a GPU to the
same GPU in another process and back. The same work as tests/tensorpipe/cuda/bench.c."""
import json
import os
import statistics
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

SIZES = [4, 1 << 20, 16 << 20, 64 << 20, 256 << 20]
ROUNDS = 30


def echo(tensor):
    return tensor


def worker(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["GPU_BENCH_PORT"])
    options = rpc.TensorPipeRpcBackendOptions()
    options.set_device_map(f"worker{1 - rank}", {0: 0})
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        rows = []
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
            rows.append({"bytes": size, "call_us": round(statistics.median(times) * 1e6, 1)})
        print(json.dumps({"torch": torch.__version__, "there_and_back": rows}))
    rpc.shutdown()


if __name__ == "__main__":
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        os.environ["GPU_BENCH_PORT"] = str(s.getsockname()[1])
    mp.spawn(worker, nprocs=2)
