# SPDX-License-Identifier: Apache-2.0
"""torch_test.py PEER - the benchmark program on torch does its work."""
import json
import subprocess
import sys

from cases import environment, equal, main, run, true

PEER = sys.argv[1]
PYTHON = "/usr/bin/python3"


def torch_is_here():
    try:
        return subprocess.run([PYTHON, "-c", "import torch.distributed.rpc as r; r.init_rpc"], capture_output=True,
                              timeout=120, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def figures(*args):
    # Eight processes import torch: seconds of a processor each.
    got = run(PYTHON, PEER, *args, limit_s=240, env=environment(BENCH_QUICK="1", BENCH_CPUS="none"))
    true(got.returncode == 0, f"{args}: {got.stderr}")
    return [json.loads(line) for line in got.stdout.splitlines()]


def torch_peer_does_all_announced_work():
    for mode, key in (("latency", "p50_us"), ("rate", "calls_per_s"), ("bandwidth", "gb_per_s"), ("drop", "gb_per_s")):
        for progress, via in (("sleep", "uv"), ("busy", "shm")):
            got = figures(mode, progress, via, "65536")
            equal([(row["mode"], row["via"]) for row in got], [(mode, via)])
            true(got[0][key] > 0, f"figures are {got}")
    true(figures("init", "uv")[0]["init_s"] > 0, "init took no time")
    true(figures("idle", "uv")[0]["threads"] > 0, "no threads")


def torch_peer_refuses_unknown_arguments():
    for args in ([], ["latency"], ["latency", "busy", "uv"], ["bandwidth", "sleep", "uv", "x"], ["init", "air"]):
        equal(run(sys.executable, PEER, *args).returncode, 2, f"exit status of {args}")


if torch_is_here():
    main(globals(), "torch_peer_")
else:
    print("1..1\nok 1 - torch_peer_does_all_announced_work # SKIP python3-torch is not installed")
