# SPDX-License-Identifier: Apache-2.0
"""torch_pair.py - two or three forked workers of torch.distributed.rpc, and the works between them.

The caller has imported torch and, for TENREC, tenrec_torch: a pair is two forks of it, so that it
begins at once, and gone before the next one begins. The works are one-sided: w0 calls, w1 serves, and in
works of three w2, too.
"""
import json
import os
import signal
import sys
import tempfile
import threading
import time

INFLIGHT = 64
LIMIT_S = 180
MEETINGS = [4, 16, 64]  # functions that wait for each other
TRIO_THREADS = 80       # more: with as many as functions that wait TENSORPIPE's pool has none left
TRIO_TIMES = 9
MICRO_BATCHES = 16
TCP = """
backend: tensorpipe
backends:
  tensorpipe: { plugin: tensorpipe, options: { transports: [uv], channels: [basic] } }
"""


def noop(*_):
    return None


_given = {}


def give(size):
    """A tensor of `size` bytes, the same each time."""
    import torch
    if size not in _given:
        _given[size] = torch.arange(size, dtype=torch.int64).to(torch.uint8)
    return _given[size]


def median_us(fn, warm, calls):
    times = []
    for i in range(warm + calls):
        begin = time.perf_counter_ns()
        fn()
        if i >= warm:
            times.append(time.perf_counter_ns() - begin)
    return sorted(times)[len(times) // 2] / 1e3


def one_call_us(rpc, plan):
    return median_us(lambda: rpc.rpc_sync("w1", noop), plan["calls"] // 10, plan["calls"])


def in_flight_us(rpc, plan):
    """Time per call, with INFLIGHT calls open."""
    calls = 4 * plan["calls"]
    room = threading.Semaphore(INFLIGHT)
    begin = 0
    for i in range(-INFLIGHT, calls):
        if i == 0:
            begin = time.perf_counter_ns()
        room.acquire()
        rpc.rpc_async("w1", noop).add_done_callback(lambda _: room.release())
    for _ in range(INFLIGHT):
        room.acquire()
    return (time.perf_counter_ns() - begin) / calls / 1e3


def how_often(size, plan):
    """Warm-up calls and calls with a tensor of `size` bytes."""
    calls = max(5, min(plan["calls"] // 2, plan["bytes"] // size))
    return max(2, calls // 10), calls


def give_bytes(size):
    """A bytes object of `size` bytes, the same each time."""
    if size not in _given:
        block = bytes(range(251)) * 4096
        _given[size] = (block * (size // len(block) + 1))[:size]
    return _given[size]


def result_us(rpc, make, size, plan):
    """Returns make(size), which is dropped before the next call."""
    import torch
    same = torch.equal if make is give else bytes.__eq__
    if not same(rpc.rpc_sync("w1", make, args=(size,)), make(size)):
        raise RuntimeError(f"a result of {size} bytes has other contents")
    _given.clear()
    return median_us(lambda: rpc.rpc_sync("w1", make, args=(size,)), *how_often(size, plan))


def argument_us(rpc, make, size, plan):
    value = make(size)
    return median_us(lambda: rpc.rpc_sync("w1", noop, args=(value,)), *how_often(size, plan))


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def rest_percent(rpc, plan):
    """CPU of the busier of the two, in percent of a processor, after the last call."""
    pids = [os.getpid(), rpc.rpc_sync("w1", os.getpid)]
    time.sleep(plan["settle_s"])
    before = [cpu_ticks(p) for p in pids]
    time.sleep(plan["window_s"])
    used = max(cpu_ticks(p) - b for p, b in zip(pids, before))
    return 100 * used / os.sysconf("SC_CLK_TCK") / plan["window_s"]


def meet(_, n, key):
    """Returns when n of these calls run."""
    with _lock:
        barrier = _given.setdefault(key, threading.Barrier(n))
    barrier.wait(LIMIT_S)


_lock = threading.Lock()


def meeting_us(rpc, n):
    """n calls at once that wait for each other, each with the reference of a third worker."""
    keys = iter(range(1000))

    def once():
        ref, key = rpc.remote("w2", give, args=(64,)), (n, next(keys))
        for future in [rpc.rpc_async("w1", meet, args=(ref, n, key)) for _ in range(n)]:
            future.wait()
    return median_us(once, 2, TRIO_TIMES)


class Stage:
    """A part of a model, as PyTorch's tutorial of pipelines has it."""

    def __init__(self):
        import torch
        self.layers, self.lock = torch.nn.Linear(64, 64), threading.Lock()

    def forward(self, x_rref):
        import torch
        x = x_rref.to_here()
        with self.lock, torch.no_grad():
            return self.layers(x)


def pipeline_us(rpc, _):
    """One batch in MICRO_BATCHES through stages on w1 and w2: the second gets references of the first."""
    import torch
    first, second = rpc.remote("w1", Stage), rpc.remote("w2", Stage)
    batch = torch.rand(MICRO_BATCHES * 4, 64)

    def once():
        futures = []
        for x in batch.split(4):
            y_rref = first.remote().forward(rpc.RRef(x))
            futures.append(second.rpc_async().forward(y_rref))
        torch.cat(torch.futures.wait_all(futures))
    return median_us(once, 2, TRIO_TIMES)


def works(plan):
    """{name: function of rpc}, in the order of a run."""
    found = {}
    if plan.get("rest"):
        return {"rest": lambda rpc: rest_percent(rpc, plan)}
    if plan.get("trio"):
        found = {f"meeting of {n}": lambda rpc, n=n: meeting_us(rpc, n) for n in MEETINGS}
        found["pipeline"] = lambda rpc: pipeline_us(rpc, plan)
        return found
    found["call"] = lambda rpc: one_call_us(rpc, plan)
    found["in flight"] = lambda rpc: in_flight_us(rpc, plan)
    for size in plan["sizes"]:
        found[f"result {size}"] = lambda rpc, size=size: result_us(rpc, give, size, plan)
        found[f"argument {size}"] = lambda rpc, size=size: argument_us(rpc, give, size, plan)
    for size in plan["pickles"]:
        found[f"pickle result {size}"] = lambda rpc, size=size: result_us(rpc, give_bytes, size, plan)
        found[f"pickle argument {size}"] = lambda rpc, size=size: argument_us(rpc, give_bytes, size, plan)
    return found


def options(agent, way, folder, plan):
    from torch.distributed import rpc
    given = {"init_method": f"file://{folder}/store", "rpc_timeout": 60}
    if plan.get("trio"):
        given["num_worker_threads"] = TRIO_THREADS
    if agent == "TENREC":
        import tenrec_torch
        return tenrec_torch.TenrecRpcBackendOptions(config=TCP if way == "tcp" else None, **given)
    ways = {"_transports": ["uv"], "_channels": ["basic"]} if way == "tcp" else {}
    return rpc.TensorPipeRpcBackendOptions(**given, **ways)


def world(plan):
    return 3 if plan.get("trio") else 2


def worker(rank, agent, way, plan, folder, out):
    from torch.distributed import rpc
    if plan.get("cpus"):
        os.sched_setaffinity(0, {plan["cpus"][min(rank, 1)]})
    rpc.init_rpc(f"w{rank}", backend=rpc.backend_registry.BackendType[agent], rank=rank, world_size=world(plan),
                 rpc_backend_options=options(agent, way, folder, plan))
    if rank == 0:
        figures = {}
        for name, work in works(plan).items():
            if not plan["only"] or name in plan["only"]:
                figures[name] = work(rpc)
                _given.clear()
        os.write(out, json.dumps(figures).encode())
    rpc.shutdown()


def fork(rank, *args):
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.alarm(LIMIT_S)
        worker(rank, *args)
        status = 0
    except BaseException as e:
        print(f"torch_compare: w{rank} on {args[0]}, {args[1]}: {e}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(status)


def measure(agent, way, plan):
    """{work: figure} of one pair of workers; {} when one of them failed."""
    with tempfile.TemporaryDirectory(prefix="torch-compare-") as folder:
        read, write = os.pipe()
        pids = [fork(rank, agent, way, plan, folder, write) for rank in range(world(plan))]
        os.close(write)
        told = b""
        while part := os.read(read, 65536):
            told += part
        os.close(read)
        ended = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(ended) or not told:
        print(f"torch_compare: a pair on {agent}, {way}, failed (status {ended})", file=sys.stderr)
        return {}
    return json.loads(told)
