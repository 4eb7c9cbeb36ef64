# SPDX-License-Identifier: Apache-2.0
"""workers.py - workers of a group for tests of the package tenrec_rpc: in this process, or in others.

The first argument of each test says why the package was not built; then the test skips.
"""
import contextlib
import glob
import os
import signal
import subprocess
import sys
import tempfile
import threading

from cases import LIMIT_S, Failed, environment, equal, until

if sys.argv[1]:
    print(f"1..0 # SKIP {sys.argv[1]}")
    sys.exit(0)

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))

import tenrec_rpc as tenrec  # pylint: disable=wrong-import-position


def at_once(*functions):
    """Runs the functions on threads of their own and returns their results; raises the first error."""
    results = [None] * len(functions)
    errors = []

    def run(i, function):
        try:
            results[i] = function()
        except BaseException as e:  # pylint: disable=broad-except
            errors.append(e)
    threads = [threading.Thread(target=run, args=item) for item in enumerate(functions)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results


@contextlib.contextmanager
def started(n=2, as_tensor=None, **overrides):
    """Workers w0, w1 ... of one static group, all in this process; they shut down at the end."""
    with tempfile.TemporaryDirectory(prefix="tenrec-python-") as folder:
        common = {"init_method": f"file://{folder}/store", "worker.world_size": n, "worker.rpc_timeout": f"{LIMIT_S}s", **overrides}
        made = [tenrec.Worker(f"w{i}", as_tensor=as_tensor, overrides={"worker.rank": i, **common}) for i in range(n)]
        at_once(*(w.init_rpc for w in made))
        try:
            yield made
        finally:
            at_once(*(lambda w=w: w.running and w.shutdown() for w in made))


def program(text, *args, rank=0, world=1, folder=None):
    """Starts a process that runs a text, whose `overrides` make it a worker of the group in `folder`."""
    head = f"""
import sys, os, threading
import tenrec_rpc as tenrec
overrides = {{"init_method": "file://{folder}/store", "worker.world_size": {world}, "worker.rank": {rank},
             "worker.rpc_timeout": "{LIMIT_S}s", "worker.init_timeout": "{LIMIT_S}s"}}
"""
    return subprocess.Popen([sys.executable, "-c", head + text, *map(str, args)], env=environment(PYTHONPATH=os.environ["PYTHONPATH"]),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stop(process):
    """Stops a process, and returns when each of its threads stands."""
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: all(state(stat) == "T" for stat in glob.glob(f"/proc/{process.pid}/task/*/stat")), "the process is stopped")


def state(stat):
    with open(stat, encoding="ascii", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def programs_end(*processes, status=0):
    """Waits for the processes, and returns what they printed."""
    printed = []
    for p in processes:
        out, err = p.communicate(timeout=LIMIT_S)
        equal(p.returncode, status, f"exit status of a process that printed {out!r} and {err!r}")
        printed.append(out)
    return printed


def refused(error, function, *args, **more):
    """Calls a function that has to raise this error, and returns the error."""
    try:
        function(*args, **more)
    except error as e:
        return e
    raise Failed(f"{error.__name__} was not raised")
