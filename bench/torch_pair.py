# SPDX-License-Identifier: Apache-2.0
"""torch_pair.py - two forked workers of torch.distributed.rpc, and the works between them.

The caller has imported torch and, for TENREC, tenrec_torch: a pair is two forks of it, so that it
begins at once, and gone before the next one begins. The works are one-sided: w0 calls, w1 serves.
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


def works(plan):
    """{name: function of rpc}, in the order of a run."""
    found = {}
    if plan.get("rest"):
        return {"rest": lambda rpc: rest_percent(rpc, plan)}
    found["call"] = lambda rpc: one_call_us(rpc, plan)
    found["in flight"] = lambda rpc: in_flight_us(rpc, plan)
    for size in plan["sizes"]:
        found[f"result {size}"] = lambda rpc, size=size: result_us(rpc, give, size, plan)
        found[f"argument {size}"] = lambda rpc, size=size: argument_us(rpc, give, size, plan)
    for size in plan["pickles"]:
        found[f"pickle result {size}"] = lambda rpc, size=size: result_us(rpc, give_bytes, size, plan)
        found[f"pickle argument {size}"] = lambda rpc, size=size: argument_us(rpc, give_bytes, size, plan)
    return found


def options(agent, way, folder):
    from torch.distributed import rpc
    init = f"file://{folder}/store"
    if agent == "TENREC":
        import tenrec_torch
        return tenrec_torch.TenrecRpcBackendOptions(init_method=init, rpc_timeout=60,
                                                    config=TCP if way == "tcp" else None)
    ways = {"_transports": ["uv"], "_channels": ["basic"]} if way == "tcp" else {}
    return rpc.TensorPipeRpcBackendOptions(init_method=init, rpc_timeout=60, **ways)


def worker(rank, agent, way, plan, folder, out):
    from torch.distributed import rpc
    if plan.get("cpus"):
        os.sched_setaffinity(0, {plan["cpus"][rank]})
    rpc.init_rpc(f"w{rank}", backend=rpc.backend_registry.BackendType[agent], rank=rank, world_size=2,
                 rpc_backend_options=options(agent, way, folder))
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
        pids = [fork(rank, agent, way, plan, folder, write) for rank in range(2)]
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
