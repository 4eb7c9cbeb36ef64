#!/usr/bin/python3
"""The same work on torch.distributed.rpc (transport uv, channel basic).

    torch_peer.py latency|rate|bandwidth|init|idle

latency    rpc_sync of a function that does nothing
rate       64 rpc_async in flight
bandwidth  a 64 MiB tensor to a function that does nothing
init       init_rpc of 8 workers over a file store, first call in to last return
idle       one of 2 workers after its last call: CPU, threads, memory

BENCH_CPUS and BENCH_QUICK as in pair.h; prints one line of JSON.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

SMALL, LARGE, INFLIGHT, INIT_WORLD = 64, 64 << 20, 64, 8
QUICK = os.environ.get("BENCH_QUICK", "0") != "0"
SETTLE_S, WINDOW_S = (2, 2) if QUICK else (10, 5)


def noop(*_):
    return None


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


def bandwidth(rpc):
    import torch
    tensor = torch.arange(LARGE // 4, dtype=torch.float32)
    row = timed(lambda: rpc.rpc_sync("w1", noop, args=(tensor,)), 2, 4 if QUICK else 12)
    return dict(row, size_bytes=LARGE, inflight=1, gib_per_s=LARGE / 2**30 / (row["p50_us"] / 1e6))


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


def worker(mode, rank, world, folder):
    import torch
    from torch.distributed import rpc
    torch.set_num_threads(1)
    if mode in ("latency", "rate", "bandwidth"):
        pin(rank)
    sys.modules["torch_peer"] = sys.modules["__main__"]
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{folder}/store", rpc_timeout=120,
                                              _transports=["uv"], _channels=["basic"])
    if mode == "init":  # nobody begins before all have imported torch
        open(f"{folder}/ready.{rank}", "w", encoding="ascii").close()
        while not os.path.exists(f"{folder}/go"):
            time.sleep(0.001)
    begin = time.monotonic_ns()
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=world, rpc_backend_options=options)
    end = time.monotonic_ns()
    row = {"begin_ns": begin, "end_ns": end}
    if rank == 0 and mode != "init":
        row = {"latency": latency, "rate": rate, "bandwidth": bandwidth, "idle": idle}[mode](rpc)
    rpc.shutdown()
    if rank == 0 or mode == "init":
        print(json.dumps(row), flush=True)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode not in ("latency", "rate", "bandwidth", "init", "idle"):
        sys.exit("usage: torch_peer.py latency|rate|bandwidth|init|idle")
    if len(sys.argv) > 2:
        worker(mode, int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
        return
    world = INIT_WORLD if mode == "init" else 2
    env = dict(os.environ, TP_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory(prefix="torch-peer-") as folder:
        command = [sys.executable, os.path.abspath(__file__), mode]
        processes = [subprocess.Popen(command + [str(rank), str(world), folder], env=env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                     for rank in range(world)]
        try:
            if mode == "init":
                deadline = time.monotonic() + 120
                while not all(os.path.exists(f"{folder}/ready.{r}") for r in range(world)):
                    if time.monotonic() > deadline or any(p.poll() for p in processes):
                        sys.exit("torch_peer: not all workers could import torch")
                    time.sleep(0.01)
                time.sleep(0.5)
                open(f"{folder}/go", "w", encoding="ascii").close()
            outputs = [p.communicate(timeout=180)[0] for p in processes]
        finally:
            for p in processes:
                p.kill()
        if any(p.returncode for p in processes):
            sys.exit("torch_peer: a worker failed")
    rows = [json.loads(text.splitlines()[-1]) for text in outputs if text]
    row = rows[0]
    if mode == "init":
        row = {"world": world, "init_s": (max(r["end_ns"] for r in rows) -
                                          min(r["begin_ns"] for r in rows)) / 1e9}
    print(json.dumps(dict({"peer": "torch", "mode": mode, "progress": "sleep"}, **row)))


if __name__ == "__main__":
    main()
