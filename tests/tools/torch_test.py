# SPDX-License-Identifier: Apache-2.0
"""torch_test.py PEER - the benchmark program on torch does its work."""
import json
import subprocess
import sys

from cases import environment, equal, main, run, true

PEER = sys.argv[1]
PYTHON = "/usr/bin/python3"
# Imports torch, which takes seconds of a processor, then is the program once for each line of arguments, in a fork.
FORKS = """
import os, runpy, sys
import torch.distributed.rpc
for line in sys.argv[2:]:
    pid = os.fork()
    if pid == 0:
        sys.argv = [sys.argv[1], *line.split()]
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.stdout.flush()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        sys.exit(f"{line}: exit status {status}")
"""


def torch_is_here():
    try:
        return subprocess.run([PYTHON, "-c", "import torch.distributed.rpc as r; r.init_rpc"], capture_output=True,
                              timeout=120, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def figures(*runs):
    got = run(PYTHON, "-c", FORKS, PEER, *runs, limit_s=240, env=environment(BENCH_QUICK="1", BENCH_CPUS="none", OMP_NUM_THREADS="1"))
    true(got.returncode == 0, got.stderr)
    return [json.loads(line) for line in got.stdout.splitlines()]


def torch_peer_does_all_announced_work():
    keys = {"latency": "p50_us", "rate": "calls_per_s", "bandwidth": "gb_per_s", "drop": "gb_per_s"}
    ways = [(mode, progress, via) for mode in keys for progress, via in (("sleep", "uv"), ("busy", "shm"))]
    *got, init, idle = figures(*(f"{' '.join(way)} 65536" for way in ways), "init uv", "idle uv")
    equal([(row["mode"], row["progress"], row["via"]) for row in got], ways)
    for row in got:
        true(row[keys[row["mode"]]] > 0, f"figures are {row}")
    true(init["init_s"] > 0, "init took no time")
    true(idle["threads"] > 0, "no threads")


def torch_peer_refuses_unknown_arguments():
    for args in ([], ["latency"], ["latency", "busy", "uv"], ["bandwidth", "sleep", "uv", "x"], ["init", "air"]):
        equal(run(sys.executable, PEER, *args).returncode, 2, f"exit status of {args}")


if torch_is_here():
    main(globals(), "torch_peer_")
else:
    print("1..1\nok 1 - torch_peer_does_all_announced_work # SKIP python3-torch is not installed")
