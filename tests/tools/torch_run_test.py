# SPDX-License-Identifier: Apache-2.0
"""torch_run_test.py TENREC - `tenrec run` starts programs of torch that use env://."""
import subprocess
import sys

from cases import environment, equal, main, run

TENREC = sys.argv[1]

PYTHON = "/usr/bin/python3"
GLOO = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(t)
assert t.item() == 3 and os.environ["ROLE_RANK"] == os.environ["RANK"], t
dist.destroy_process_group()
"""
TENSORPIPE = """
import os, torch, torch.distributed.rpc as rpc
rank = int(os.environ["RANK"])
rpc.init_rpc(f"w{rank}", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
assert rpc.rpc_sync(f"w{1 - rank}", torch.add, (torch.ones(2), 1)).tolist() == [2, 2]
rpc.shutdown()
"""


def torch_is_here():
    try:
        return subprocess.run([PYTHON, "-c", "import torch.distributed.rpc as r; r.init_rpc"], capture_output=True,
                              timeout=120, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def succeeds(program):
    got = run(TENREC, "run", "-n", "2", "--", PYTHON, "-c", program, env=environment())
    equal((got.returncode, got.stdout), (0, ""), f"stderr is {got.stderr}; status and output")


def torch_run_starts_a_program_on_gloo():
    succeeds(GLOO)


def torch_run_starts_a_program_on_tensorpipe():
    succeeds(TENSORPIPE)


if torch_is_here():
    main(globals(), "torch_run_")
else:
    print("1..1\nok 1 - torch_run_starts_a_program_on_gloo # SKIP python3-torch is not installed")
