# SPDX-License-Identifier: Apache-2.0
"""perf_test.py TENREC - the contract of `tenrec perf`. How fast it is, no test says."""
import json
import os
import sys
import tempfile

from cases import contains, environment, equal, main, one_line, run, true

TENREC = os.path.abspath(sys.argv[1])
ALWAYS = {"mode", "backend", "transport", "channel", "progress", "size_bytes", "inflight", "calls"}


def perf(mode, *args, env=None):
    got = run(TENREC, "perf", mode, "--json", *args, env=env)
    equal((got.returncode, got.stderr), (0, ""))
    equal(got.stdout.count("\n"), 1, "lines on stdout")
    return json.loads(got.stdout)


def perf_latency_prints_one_object():
    got = perf("latency", "--calls", 50)
    equal(set(got), ALWAYS | {"p50_us", "p99_us", "calls_per_s"})
    equal((got["mode"], got["backend"], got["transport"], got["channel"]),
          ("latency", "tensorpipe", "tenrec_ring", "tenrec_host"))
    equal((got["size_bytes"], got["inflight"], got["calls"]), (0, 1, 50))
    true(0 < got["p50_us"] <= got["p99_us"], f"percentiles are {got}")


def perf_rate_prints_one_object():
    got = perf("rate", "--calls", 300, "--inflight", 8, "--size", 100)
    equal(set(got), ALWAYS | {"calls_per_s"})
    equal((got["size_bytes"], got["inflight"], got["calls"]), (100, 8, 300))
    true(got["calls_per_s"] > 0, f"rate is {got}")


def perf_bandwidth_prints_one_object():
    got = perf("bandwidth", "--calls", 3, "--size", "3MiB")
    equal(set(got), ALWAYS | {"p50_us", "p99_us", "gib_per_s"})
    equal((got["size_bytes"], got["calls"]), (3 << 20, 3))
    true(got["gib_per_s"] > 0, f"bandwidth is {got}")


def perf_takes_more_in_flight_than_calls():
    equal(perf("rate", "--calls", 2, "--inflight", 64)["calls"], 2)


def perf_says_how_threads_wait():
    for progress in ("sleep", "adaptive"):
        got = perf("latency", "--calls", 10, env=environment(TENREC_PROGRESS=progress))
        equal(got["progress"], progress)


def perf_measures_the_backend_of_the_config():
    text = """worker: { name: mine, rank: 5, world_size: 9 }
init_method: tcp://127.0.0.1:1
backend: slow
backends:
  wire: { plugin: tensorpipe, options: { progress: sleep } }
  slow: { plugin: faulty, wraps: wire }
"""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        got = perf("latency", "--calls", 10, "--config", f.name)
    equal((got["backend"], got["transport"], got["progress"]), ("slow", "tenrec_ring", "sleep"))


def perf_shows_people_the_same():
    got = run(TENREC, "perf", "latency", "--calls", 10)
    equal((got.returncode, got.stderr), (0, ""))
    for part in ("mode         latency\n", "backend      tensorpipe\n", "p50_us "):
        contains(got.stdout, part)


def perf_refuses_a_wrong_config_once():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("backend: tensorpipe\nbackends:\n  tensorpipe: { plugin: tensorpip }\n")
        f.flush()
        got = run(TENREC, "perf", "latency", "--config", f.name)
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), f"{f.name}:3:25: ")


def perf_fails_when_the_workers_cannot_talk():
    got = run(TENREC, "perf", "latency", env=environment(TENREC_BACKENDS__TENSORPIPE__PORT="1-2",
                                                         TENREC_BACKENDS__TENSORPIPE__LISTEN="192.0.2.1"))
    true(got.returncode != 0, "exit status is 0")
    equal(got.stdout, "")
    contains(got.stderr, "192.0.2.1")


def perf_refuses_an_invalid_command_line():
    for args, part in (([], "latency, rate or bandwidth"), (["speed"], "latency, rate"),
                       (["latency", "rate"], "latency, rate"), (["rate", "--size", "x"], "--size"),
                       (["rate", "--size", "5GiB"], "4GiB"), (["rate", "--inflight", "0"], "'0'"),
                       (["latency", "--inflight", "4"], "requires rate"),
                       (["bandwidth", "--size", "0"], "at least 1"), (["rate", "--calls", "-1"], "'-1'"),
                       (["rate", "--what"], "'--what'")):
        got = run(TENREC, "perf", *args)
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), part)


main(globals(), "perf_", "tools_perf")
