# SPDX-License-Identifier: Apache-2.0
"""works.py - all compared works, with the peers and the reach of each."""
from verdict import Limit, Pair, Same, Without, Work


def small_shared(p):
    """Calls without arguments between two processes of one host, in shared memory."""
    busy = p.tenrec("latency", "busy", "shm")
    return [
        Work("no-op call, shared memory, busy", busy, "p50_us", [
            Pair("UCX message", p.peer("UCX", "latency", "busy", "sm"), reach=1.5),
            Pair("raw spin", p.raw("latency", "busy", "spin"), rounds=None),
            Pair("libtensorpipe", p.peer("libtensorpipe", "latency", "busy", "shm_cma")),
            Pair("torch", p.peer("torch", "latency", "busy", "shm"))]),
        Work("no-op call, shared memory, asleep", p.tenrec("latency", "sleep", "shm"), "p50_us", [
            Pair("raw eventfd", p.raw("latency", "sleep", "eventfd"), reach=1.15),
            Pair("raw eventfd", p.raw("latency", "sleep", "eventfd"), "cpu_us_per_call", reach=1.3),
            Pair("raw futex", p.raw("latency", "sleep", "futex")),
            Pair("raw Unix socket", p.raw("latency", "sleep", "unix")),
            Pair("UCX message (polls)", p.peer("UCX", "latency", "sleep", "sm"))]),
        Work("no-op call, shared memory, adaptive", p.tenrec("latency", "adaptive", "shm"), "p50_us", [
            Pair("Tenrec busy", busy, reach=1.5)]),
        Work("no-op call of a pool function, shared memory, asleep", p.tenrec("latency", "sleep", "shm_pool"), "p50_us", [
            Pair("inline function", p.tenrec("latency", "sleep", "shm"), reach=1.3)]),
        Limit("a moment after the last call, adaptive", p.tenrec("after", "shm"), {"cpu_percent": 0.05}),
    ]


def small_tcp(p):
    asleep = p.tenrec("latency", "sleep", "uv")
    return [
        Work("no-op call, TCP, busy", p.tenrec("latency", "busy", "uv"), "p50_us", [
            Pair("raw", p.raw("latency", "busy", "tcp"), reach=1.12),
            Pair("UCX message", p.peer("UCX", "latency", "busy", "tcp"))]),
        Work("no-op call, TCP, asleep", asleep, "p50_us", [
            Pair("raw", p.raw("latency", "sleep", "tcp"), reach=1.15),
            Pair("raw", p.raw("latency", "sleep", "tcp"), "cpu_us_per_call", rounds=None),
            Pair("UCX message", p.peer("UCX", "latency", "sleep", "tcp")),
            Pair("libtensorpipe", p.peer("libtensorpipe", "latency", "sleep", "uv")),
            Pair("torch", p.peer("torch", "latency", "sleep", "uv"))]),
        Limit("system calls of a small message, TCP, busy", p.tenrec("latency", "busy", "uv"),
              {"sends_per_message": 1, "receives_per_message": 1}, exact=True),
        Limit("system calls of a small message, TCP, asleep", asleep,
              {"sends_per_message": 1, "receives_per_message": 1}, exact=True),
    ]


def many_shared(p):
    busy = p.tenrec("rate", "busy", "shm")
    return [
        Work("64 in flight, shared memory", busy, "calls_per_s", [
            Pair("libtensorpipe", p.peer("libtensorpipe", "rate", "busy", "shm_cma"), reach=10),
            Pair("raw ring", p.raw("rate", "busy", "spin"), rounds=None),
            Pair("UCX message", p.peer("UCX", "rate", "busy", "sm"), reach=0.7),
            Pair("torch", p.peer("torch", "rate", "busy", "shm"))], at_least=True),
        Work("64 in flight, shared memory, adaptive", p.tenrec("rate", "adaptive", "shm"), "calls_per_s", [
            Pair("Tenrec busy", busy, reach=0.8)], at_least=True)]


def many_tcp(p):
    """The limit of a rate is the plain blocking loop; Tenrec's default is adaptive."""
    return [
        Work("64 in flight, TCP", p.tenrec("rate", "adaptive", "uv"), "calls_per_s", [
            Pair("raw batched", p.raw("rate", "sleep", "tcp"), reach=0.7),
            Pair("UCX message", p.peer("UCX", "rate", "busy", "tcp")),
            Pair("libtensorpipe", p.peer("libtensorpipe", "rate", "sleep", "uv")),
            Pair("torch", p.peer("torch", "rate", "sleep", "uv"))], at_least=True),
        Work("64 in flight, TCP, busy", p.tenrec("rate", "busy", "uv"), "calls_per_s", [
            Pair("raw batched", p.raw("rate", "busy", "tcp"))], at_least=True),
        Work("64 in flight, TCP, asleep", p.tenrec("rate", "sleep", "uv"), "calls_per_s", [
            Pair("raw batched", p.raw("rate", "sleep", "tcp"))], at_least=True),
    ]


def large_shared(p):
    return [
        Work("64 MiB, shared memory, reused buffer", p.tenrec("bandwidth", "busy", "shm"), "gb_per_s", [
            Pair("libtensorpipe", p.peer("libtensorpipe", "bandwidth", "busy", "shm_basic"), reach=1),
            Pair("raw copy", p.raw("bandwidth", "busy", "copy")),
            Pair("raw pipelined ring", p.raw("bandwidth", "busy", "ring")),
            Pair("raw process_vm_readv", p.raw("bandwidth", "busy", "readv")),
            Pair("libtensorpipe, cma", p.peer("libtensorpipe", "bandwidth", "busy", "shm_cma")),
            Pair("UCX message", p.peer("UCX", "bandwidth", "busy", "sm"))], at_least=True),
        Work("64 MiB, shared memory, source that can be mapped", p.tenrec("source", "busy", "shm"), "gb_per_s", [
            Pair("raw copy", p.raw("bandwidth", "busy", "copy"), reach=0.85)], at_least=True),
        Work("64 MiB, shared memory, each result dropped", p.tenrec("drop", "busy", "shm"), "gb_per_s", [
            Pair("libtensorpipe", p.peer("libtensorpipe", "drop", "busy", "shm_cma"), reach=4),
            Pair("torch", p.peer("torch", "drop", "busy", "shm")),
            Pair("raw, new pages", p.raw("drop", "busy", "pages")),
            Pair("raw, new huge pages", p.raw("drop", "busy", "huge"))], at_least=True),
        Work("64 MiB, shared memory, all results kept", p.tenrec("keep", "busy", "shm"), "gb_per_s", [
            Pair("raw, new pages", p.raw("keep", "busy", "pages")),
            Pair("raw, new huge pages", p.raw("keep", "busy", "huge"))], at_least=True),
    ]


def shared(p):
    """Handing over a tensor as a mapping takes as long as a small call, at any size."""
    small = Pair("no-op call", p.tenrec("latency", "busy", "shm"), reach=1.4)
    return [
        Work("shared tensor of 64 KiB, shared memory", p.tenrec("handover", "busy", "shm", str(64 << 10)), "p50_us",
             [small]),
        Work("shared tensor of 64 MiB, shared memory", p.tenrec("handover", "busy", "shm", str(64 << 20)), "p50_us", [
            Pair("no-op call", small.command, reach=1.4),
            Pair("raw, memfd passed and mapped each time", p.raw("handover", "sleep", "memfd"))]),
        Work("shared tensor of 1 GiB, shared memory", p.tenrec("handover", "busy", "shm", str(1 << 30)), "p50_us", [
            Pair("no-op call", small.command, reach=1.4)]),
    ]


def large_tcp(p):
    return [
        Work("64 MiB, TCP, busy", p.tenrec("bandwidth", "busy", "uv"), "gb_per_s", [
            Pair("raw", p.raw("bandwidth", "busy", "tcp"), reach=0.95),
            Pair("UCX message", p.peer("UCX", "bandwidth", "busy", "tcp"))], at_least=True),
        Work("64 MiB, TCP, asleep", p.tenrec("bandwidth", "sleep", "uv"), "gb_per_s", [
            Pair("raw", p.raw("bandwidth", "sleep", "tcp")),
            Pair("libtensorpipe", p.peer("libtensorpipe", "bandwidth", "sleep", "uv")),
            Pair("torch", p.peer("torch", "bandwidth", "sleep", "uv"))], at_least=True),
    ]


def small_regions(p):
    """64 KiB of a region beside a call without arguments. Busy, the copy alone is longer than such a call."""
    def work(name, mode, progress, reach):
        return Work(f"{name} 64 KiB of a region, shared memory, {'asleep' if progress == 'sleep' else progress}",
                    p.tenrec(mode, progress, "shm", str(64 << 10)), "p50_us", [
            Pair("no-op call", p.tenrec("latency", progress, "shm"), reach=reach),
            Pair("raw process_vm_readv", p.raw("bandwidth", "busy", "readv", str(64 << 10))),
            Pair(f"UCX {mode}", p.peer("UCX", mode, "busy", "sm", str(64 << 10))),
            Pair(f"libfabric {mode}", p.peer("libfabric", mode, "busy", "shm", str(64 << 10)))])
    return [work("read", "get", "sleep", 1.5), work("write", "put", "sleep", 1.5), work("read", "get", "busy", None),
            work("write", "put", "busy", None),
            Limit("a region, made and dropped", p.tenrec("register", "busy", "shm"), {"p50_us": 100})]


def large_regions(p):
    def work(name, mode, progress, via, pairs):
        return Work(name, p.tenrec(mode, progress, via), "gb_per_s", pairs, at_least=True)

    def beside(mode, via):
        return [Pair(f"UCX {mode}", p.peer("UCX", mode, "busy", "sm" if via == "shm" else via)),
                Pair(f"libfabric {mode}", p.peer("libfabric", mode, "busy", via))]

    readv, copy, tcp = (p.raw("bandwidth", "busy", via) for via in ("readv", "copy", "tcp"))
    return [
        work("read 64 MiB of a region, shared memory, busy", "get", "busy", "shm", [
            Pair("raw process_vm_readv", readv, reach=0.95), Pair("raw copy", copy), *beside("get", "shm")]),
        work("read 64 MiB of a region, shared memory, adaptive", "get", "adaptive", "shm", [
            Pair("raw process_vm_readv", readv, reach=0.95), Pair("raw copy", copy), *beside("get", "shm")]),
        work("write 64 MiB of a region, shared memory, busy", "put", "busy", "shm", [
            Pair("raw process_vm_readv", readv, reach=0.95), Pair("raw copy", copy), *beside("put", "shm")]),
        work("read 64 MiB of a region that can be mapped, shared memory, busy", "get_mapped", "busy", "shm", [
            Pair("raw copy", copy, reach=0.95)]),
        work("read 64 MiB of a region, TCP, busy", "get", "busy", "uv", [
            Pair("raw", tcp, reach=0.95), *beside("get", "tcp")]),
        work("write 64 MiB of a region, TCP, busy", "put", "busy", "uv", [
            Pair("raw", tcp, reach=0.95), *beside("put", "tcp")]),
    ]


def blocks_of_regions(p):
    """A batch of 1,000 scattered blocks of 16 KiB beside one block of the same size."""
    size = str(1000 * (16 << 10))

    def work(name, mode, via):
        return Work(f"{name} 1,000 blocks of 16 KiB of a region, {'TCP' if via == 'uv' else 'shared memory'}, adaptive",
                    p.tenrec(f"{mode}_blocks", "adaptive", via, size), "gb_per_s", [
            Pair("one block of the same size", p.tenrec(mode, "adaptive", via, size), reach=0.8)], at_least=True)
    return [work("read", "get", "shm"), work("write", "put", "shm"), work("read", "get", "uv"), work("write", "put", "uv")]


def beside(p):
    """Small calls do not wait for tensors of 256 MiB to or from the same peer."""
    ways, wheres = (("shared memory", "shm"), ("TCP", "uv")), (("out", "to"), ("in", "from"))
    return [Limit(f"small calls beside tensors {name} the peer, {way}", p.tenrec("beside", via, where),
                  {"p50_ratio": 3, "p99_ratio": 10})
            for way, via in ways for where, name in wheres]


def security(p):
    """What the proof of the secret and TLS cost: nothing, and at most a seventh of a call."""
    none, tls = p.tenrec("latency", "sleep", "uv"), p.tenrec("latency", "sleep", "tls")
    return [
        Work("no-op call, TCP, mode secret, asleep", p.tenrec("latency", "sleep", "secret"), "p50_us", [
            Pair("mode none", none, reach=1.03)]),
        Work("no-op call, TCP, mode tls, asleep", tls, "p50_us", [
            Pair("mode none", none, reach=1.15),
            Pair("OpenSSL", p.raw("latency", "sleep", "tls"), rounds=None)]),
        Work("64 MiB, TCP, mode tls, asleep", p.tenrec("bandwidth", "sleep", "tls"), "gb_per_s", [
            Pair("OpenSSL, full records", p.raw("bandwidth", "sleep", "tls"), reach=0.9),
            Pair("mode none", p.tenrec("bandwidth", "sleep", "uv"), rounds=None)], at_least=True),
        Work("first call of a pair, mode secret", p.tenrec("connect", "secret"), "p50_us", [
            Pair("mode none", p.tenrec("connect", "uv"))]),
        Work("first call of a pair, mode tls", p.tenrec("connect", "tls"), "p50_us", [
            Pair("mode none", p.tenrec("connect", "uv"))]),
        Limit("first call of a pair, mode secret", p.tenrec("connect", "secret"), {"p50_us": 2000}),
        Limit("first call of a pair, mode tls", p.tenrec("connect", "tls"), {"p50_us": 2000}),
    ]


def over_ucx(p):
    """The backend ucx against UCX itself in the same error mode, and against the default backend, over TCP."""
    def work(name, mode, progress, figure, reach, at_least=False):
        return Work(name, p.tenrec(mode, progress, "ucx"), figure, [
            Pair("UCX message", p.peer("UCX", mode, progress, "tcp_peer"), reach=reach),
            Pair("tensorpipe", p.tenrec(mode, progress, "uv"))], at_least=at_least)

    if not p.peer("UCX"):
        return []
    return [
        work("no-op call, backend ucx, busy", "latency", "busy", "p50_us", 1.2),
        work("no-op call, backend ucx, asleep", "latency", "sleep", "p50_us", 1.25),
        work("64 in flight, backend ucx, busy", "rate", "busy", "calls_per_s", 0.8, at_least=True),
        work("64 MiB, backend ucx, busy", "bandwidth", "busy", "gb_per_s", 0.8, at_least=True),
        work("64 MiB, backend ucx, asleep", "bandwidth", "sleep", "gb_per_s", 0.8, at_least=True),
    ]


def wrappers(p):
    """What layers of the chain cost a call: call and answer pass each of them in two processes; limit sees
    sent messages only."""
    none = p.tenrec("latency", "busy", "shm")

    def layered(name, via, passes):
        return Work(f"no-op call, {name}", p.tenrec("latency", "busy", via), "p50_us", [Without("no layer", none, passes)])
    return [layered("ten layers that do nothing", "layers", 40), layered("trace to /dev/null", "trace", 4),
            layered("meter", "meter", 4), layered("limit", "limit", 2)]


def watched(p):
    """What it costs to watch every call, on both sides."""
    return [Work(f"no-op call, {name}", p.tenrec("latency", "busy", via), "p50_us", [
        Pair("not watched", p.tenrec("latency", "busy", "shm"), reach=1.05)])
            for name, via in (("durations", "durations"), ("durations and recorder", "recorder"), ("1 % of traces", "traces"))]


def connections(p):
    """All workers call all others, and leave together: each pair has two connections."""
    return [Limit("64 workers that call each other, shared memory", p.grow(64, 3),
                  {"ms_per_connection": 0.4, "shutdown_ms": 300}),
            Work("first call of a pair, shared memory", p.tenrec("connect", "shm"), "p50_us", [
                Pair("TCP", p.tenrec("connect", "uv"))])]


def life(p):
    return [
        Work("init of 8 workers", p.tenrec("init", "shm"), "init_s", [
            Pair("torch", p.peer("torch", "init", "uv"), reach=0.3)]),
        Limit("idle worker", p.tenrec("idle", "shm"), {"cpu_percent": 0.05, "threads": 4, "rss_kib": 12288}),
        Work("memory of an idle worker", p.tenrec("idle", "shm"), "rss_kib", [
            Pair("torch", p.peer("torch", "idle", "uv"), rounds=1)]),
    ]


def all_works(p):
    return (small_shared(p) + small_tcp(p) + many_shared(p) + many_tcp(p) + large_shared(p) + shared(p) + large_tcp(p) +
            small_regions(p) + large_regions(p) + blocks_of_regions(p) + beside(p) + security(p) + connections(p) +
            over_ucx(p) + wrappers(p) + watched(p) + life(p))


def same_works(here, there):
    """The same works by two builds of Tenrec; `there` is the other build."""
    done = {}
    for work in all_works(here):
        if isinstance(work, Work):
            done.setdefault((tuple(work.command), work.figure), Work(
                work.name, work.command, work.figure, [Same("other build", there.tenrec(*work.command[1:]))],
                work.at_least))
    return list(done.values())
