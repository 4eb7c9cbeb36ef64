# SPDX-License-Identifier: Apache-2.0
"""groups.py - runs a program as the workers of a group, and cases one after the other."""
import json
import os
import subprocess
import sys
import tempfile
import traceback

# Forks all workers, so that torch is imported once.
forks = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "worker.py")],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# Rank 0 serves torch's store.
SERVED = """
import json
import torch.distributed as dist
port = group["folder"] + "/port"
if rank == 0:
    server = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False, multi_tenant=True)
    with open(port + ".new", "w") as f:
        f.write(str(server.port))
    os.rename(port + ".new", port)
wait_until(lambda: os.path.exists(port))
with open(port) as f:
    os.environ["INIT_METHOD"] = f"tcp://127.0.0.1:{f.read()}"
"""
# Rank 1 reads the records after rank 0 has read them.
LATE_READER = SERVED + """
meet = tenrec_torch._backend._meet
def meet_late(store, rank, world_size, mine, limit):
    store.set(f"workers/{rank}", json.dumps(mine))
    wait_until(lambda: tenrec_torch._C.has_key(store, "refused/0"))
    return meet(store, rank, world_size, mine, limit)
if rank == 1:
    tenrec_torch._backend._meet = meet_late
"""


def run(world, program, config=None, env=None):
    """Runs `program` once per rank, each with `rank`, `init(**options)` and all that a test
    needs; what they print, by rank."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(env or {}, INIT_METHOD=f"file://{folder}/store", WORLD=str(world))
        task = {"folder": folder, "program": program, "config": config, "env": env}
        print(json.dumps(task), file=forks.stdin, flush=True)
        codes = json.loads(forks.stdout.readline())
        said = []
        for rank in range(world):
            with open(os.path.join(folder, f"said.{rank}"), encoding="utf-8") as f:
                said.append(f.read())
    text = "\n".join(said)
    assert not any(codes), f"exit codes {codes}:\n{text}"
    return said


def over(*transports, **options):
    return {"backend": "tensorpipe", "backends": {"tensorpipe": {
        "plugin": "tensorpipe", "options": dict(transports=list(transports), **options)}}}


def main(plans):
    """Runs the cases of `plans`, (name, case, config) each, and prints TAP."""
    failed = 0
    for number, (name, case, config) in enumerate(plans, 1):
        try:
            case(config)
            print(f"ok {number} - {name}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}")
            for line in traceback.format_exc().splitlines():
                print("#", line)
    print(f"1..{len(plans)}")
    sys.exit(1 if failed else 0)
