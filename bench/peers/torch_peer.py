#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.rpc, measured as Tenrec is (bench/driver.h).

    torch_peer.py latency|rate|bandwidth|drop sleep uv [BYTES,...]
    torch_peer.py latency|rate|bandwidth|drop busy shm [BYTES,...]
    torch_peer.py init|idle uv|shm

latency    rpc_sync of a function that does nothing
rate       64 rpc_async in flight
bandwidth  a tensor to a function that does nothing
drop       a tensor as the result, which is dropped before the next call
init       init_rpc of 8 workers over a file store, first call in to last return
idle       one of 2 workers after its last call: CPU, threads, memory

uv is TCP and channel basic. shm is what torch takes by default on one host, with channel cma; a
thread of it never sleeps. Every tensor arrives in new memory: torch has no way to lend it some.

BENCH_CPUS and BENCH_QUICK as in pair.h; prints one line of JSON.
"""
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time

SMALL, LARGE, INFLIGHT, INIT_WORLD = 64, 64 << 20, 64, 8
QUICK = os.environ.get("BENCH_QUICK", "0") != "0"
SETTLE_S, WINDOW_S = (0.5, 0.5) if QUICK else (10, 5)


def noop(*_):
    return None


_given = {}


def give(size):
    import torch
    if size not in _given:
        _given[size] = torch.arange(size // 4, dtype=torch.float32)
    return _given[size]


def cpu_ns():
    """CPU time used by this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return int((usage.ru_utime + usage.ru_stime) * 1e9)


def pin(rank):
    cpus = os.environ.get("BENCH_CPUS", "none")
    if cpus != "none":
        os.sched_setaffinity(0, {int(cpus.split(",")[rank])})


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] / 1e3


def timed(fn, warm, calls):
    times = []
    for i in range(warm + calls):
        begin = time.monotonic_ns()
        fn()
        if i >= warm:
            times.append(time.monotonic_ns() - begin)
    return {"calls": calls, "p50_us": percentile(times, 0.5), "p99_us": percentile(times, 0.99)}


def latency(rpc):
    calls = 500 if QUICK else 3000
    before = cpu_ns() + rpc.rpc_sync("w1", cpu_ns)
    row = timed(lambda: rpc.rpc_sync("w1", noop), calls // 10, calls)
    used = cpu_ns() + rpc.rpc_sync("w1", cpu_ns) - before
    return dict(row, size_bytes=0, inflight=1, cpu_us_per_call=used / 1e3 / (calls + calls // 10))


def rate(rpc):
    calls = 2000 if QUICK else 10000
    payload = bytes(SMALL)
    room = threading.Semaphore(INFLIGHT)
    begin = time.monotonic_ns()
    for _ in range(calls):
        room.acquire()
        rpc.rpc_async("w1", noop, args=(payload,)).add_done_callback(lambda _: room.release())
    for _ in range(INFLIGHT):
        room.acquire()
    wall = time.monotonic_ns() - begin
    return {"calls": calls, "size_bytes": SMALL, "inflight": INFLIGHT, "calls_per_s": calls / wall * 1e9}


def sized(row, size):
    return dict(row, size_bytes=size, gb_per_s=size / (row["p50_us"] * 1e3))


def how_often(size):
    """Warm-up calls and calls with a tensor of `size` bytes."""
    calls = max(4 if QUICK else 12, min(50 if QUICK else 500, (64 << 20) // size))
    return max(2, calls // 10), calls


def bandwidth(rpc, size):
    import torch
    tensor = torch.arange(size // 4, dtype=torch.float32)
    return sized(timed(lambda: rpc.rpc_sync("w1", noop, args=(tensor,)), *how_often(size)), size)


def drop(rpc, size):
    return sized(timed(lambda: rpc.rpc_sync("w1", give, args=(size,)), *how_often(size)), size)


def idle_of(pid):
    """CPU share, threads and resident memory of a process, seen from outside."""
    def cpu_ticks():
        fields = open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status", encoding="ascii"))
    before = cpu_ticks()
    time.sleep(WINDOW_S)
    share = (cpu_ticks() - before) / os.sysconf("SC_CLK_TCK") / WINDOW_S
    return {"cpu_percent": 100 * share, "threads": int(status["Threads"]),
            "rss_kib": int(status["VmRSS"].split()[0])}


def idle(rpc):
    pid = rpc.rpc_sync("w1", os.getpid)
    time.sleep(SETTLE_S)
    return idle_of(pid)


def run(mode, rpc, sizes):
    if mode in ("bandwidth", "drop"):
        return [{"bandwidth": bandwidth, "drop": drop}[mode](rpc, size) for size in sizes]
    return [{"latency": latency, "rate": rate, "idle": idle}[mode](rpc)]


def worker(mode, via, sizes, rank, world, folder):
    import torch
    from torch.distributed import rpc
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    torch.set_num_threads(1)
    if mode not in ("init", "idle"):
        pin(rank)
    sys.modules["torch_peer"] = sys.modules["__main__"]
    ways = {"_transports": ["uv"], "_channels": ["basic"]} if via == "uv" else {}
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{folder}/store", rpc_timeout=120, **ways)
    if mode == "init":  # all start together, after the import of torch
        open(f"{folder}/ready.{rank}", "w", encoding="ascii").close()
        while not os.path.exists(f"{folder}/go"):
            time.sleep(0.001)
    begin = time.monotonic_ns()
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=world, rpc_backend_options=options)
    end = time.monotonic_ns()
    rows = [{"begin_ns": begin, "end_ns": end}]
    if rank == 0 and mode != "init":
        rows = run(mode, rpc, sizes)
    rpc.shutdown()
    return rows if rank == 0 or mode == "init" else []


def await_ready(folder, world):
    deadline = time.monotonic() + 120
    while not all(os.path.exists(f"{folder}/ready.{r}") for r in range(world)):
        if time.monotonic() > deadline:
            sys.exit("torch_peer: not all workers started")
        time.sleep(0.01)
    time.sleep(0.5)
    open(f"{folder}/go", "w", encoding="ascii").close()


def parent(mode, via, sizes):
    """Starts the workers; returns their rows. torch is imported once: a worker is a fork of this process."""
    world = INIT_WORLD if mode == "init" else 2
    os.environ.update(TP_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    import torch.distributed.rpc  # pylint: disable=unused-import
    with tempfile.TemporaryDirectory(prefix="torch-peer-") as folder, multiprocessing.get_context("fork").Pool(world) as workers:
        running = workers.starmap_async(worker, [(mode, via, sizes, rank, world, folder) for rank in range(world)], chunksize=1)
        if mode == "init":
            await_ready(folder, world)
        try:
            rows = sum(running.get(100), [])
        except multiprocessing.TimeoutError:
            sys.exit("torch_peer: the workers did not end in 100 s")
        except Exception as e:  # of a worker
            sys.exit(f"torch_peer: a worker failed: {e}")
    if mode == "init":
        rows = [{"world": world, "init_s": (max(r["end_ns"] for r in rows) -
                                            min(r["begin_ns"] for r in rows)) / 1e9}]
    return rows


def arguments(argv):
    """MODE, progress, VIA, and sizes; None if these are invalid."""
    modes = ("latency", "rate", "bandwidth", "drop")
    if len(argv) == 2 and argv[0] in ("init", "idle") and argv[1] in ("uv", "shm"):
        return argv[0], "sleep", argv[1], []
    if len(argv) not in (3, 4) or argv[0] not in modes or argv[1:3] not in (["sleep", "uv"], ["busy", "shm"]):
        return None
    sizes = argv[3].split(",") if len(argv) == 4 else [str(LARGE)]
    if not all(s.isdigit() and int(s) >= SMALL for s in sizes):
        return None
    return argv[0], argv[1], argv[2], [int(s) for s in sizes]


def main():
    known = arguments(sys.argv[1:])
    if not known:
        print("usage: torch_peer.py latency|rate|bandwidth|drop sleep uv [BYTES,...]\n"
              "       torch_peer.py latency|rate|bandwidth|drop busy shm [BYTES,...]\n"
              "       torch_peer.py init|idle uv|shm", file=sys.stderr)
        sys.exit(2)
    mode, progress, via, sizes = known
    for row in parent(mode, via, sizes):
        print(json.dumps(dict({"peer": "torch", "via": via, "mode": mode, "progress": progress}, **row)))


if __name__ == "__main__":
    main()
