# SPDX-License-Identifier: Apache-2.0
"""process_test.py WHY TENREC - workers in processes of their own."""
import os
import sys
import tempfile

from cases import contains, environment, equal, main, run
from workers import program, programs_end

TENREC = os.path.abspath(sys.argv[2])
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def process_calls_functions_of_another():
    text = """
tenrec.register("id", os.getpid)
me = tenrec.init_rpc(overrides=overrides)
other = f"worker{1 - me.id}"
print(os.getpid(), tenrec.call(other, "id"))
tenrec.shutdown()
"""
    with tempfile.TemporaryDirectory() as folder:
        first, second = programs_end(*(program(text, rank=i, world=2, folder=folder) for i in range(2)))
    equal(first.split(), second.split()[::-1], "the two process ids")


def process_is_started_by_the_launcher():
    done = run(TENREC, "run", "-n", "3", "--", sys.executable, os.path.join(ROOT, "examples/python/hello.py"),
               env=environment(PYTHONPATH=os.environ["PYTHONPATH"]))
    equal(done.returncode, 0, f"exit status, {done.stderr}")
    equal(done.stdout.count("worker0 says 42"), 3, "number of answers")


def process_that_ends_without_a_shutdown_ends():
    with tempfile.TemporaryDirectory() as folder:
        out, = programs_end(program('tenrec.init_rpc(overrides=overrides)\nprint("here")', folder=folder))
    equal(out, "here\n")


if __name__ == "__main__":
    main(globals(), "process_", "python_process")
