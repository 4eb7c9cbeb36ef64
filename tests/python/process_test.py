# SPDX-License-Identifier: Apache-2.0
"""process_test.py WHY TENREC SMOOTH - workers in processes of their own."""
import importlib.util
import os
import re
import signal
import sys
import tempfile

from cases import LIMIT_S, Skipped, contains, environment, equal, main, run, start, true
from workers import ROOT, program, programs_end

TENREC, SMOOTH = map(os.path.abspath, sys.argv[2:4])


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


def process_reads_the_answers_of_its_calls_on_the_threads_that_call():
    """The worker's own thread, which could read them, too, sleeps: in one stretch of calls at least, as other programs use the processors."""
    text = """
def wakes():
    threads = [t for t in os.listdir("/proc/self/task") if open(f"/proc/self/task/{t}/comm").read() == "tensorpipe\\n"]
    return sum(int(open(f"/proc/self/task/{t}/status").read().split("\\nvoluntary_ctxt_switches:")[1].split()[0]) for t in threads)

def fewest(call):
    n = 200
    for _ in range(50):
        before = wakes()
        for _ in range(200):
            call()
        n = min(n, wakes() - before)
        if n <= 10:
            break
    return n

tenrec.register("id", os.getpid)
me = tenrec.init_rpc(overrides=overrides)
if me.id == 0:
    made = tenrec.remote("worker1", "id")
    print(fewest(lambda: tenrec.call("worker1", "id")), fewest(made.to_here))
tenrec.shutdown()
"""
    with tempfile.TemporaryDirectory() as folder:
        counts, _ = programs_end(*(program(text, rank=i, world=2, folder=folder) for i in range(2)))
    for what, n in zip(("calls", "fetches"), map(int, counts.split())):
        true(n <= 10, f"the worker's own thread woke up {n} times in 200 {what}")


def process_is_started_by_the_launcher():
    done = run(TENREC, "run", "-n", "3", "--", sys.executable, os.path.join(ROOT, "examples/python/hello.py"),
               env=environment(PYTHONPATH=os.environ["PYTHONPATH"]))
    equal(done.returncode, 0, f"exit status, {done.stderr}")
    equal(done.stdout.count("worker0 says 42"), 3, "number of answers")


def process_trains_with_a_parameter_server():
    if not importlib.util.find_spec("numpy"):
        raise Skipped("no numpy")
    done = run(TENREC, "run", "-n", "3", "--", sys.executable, os.path.join(ROOT, "examples/python/parameter_server.py"),
               env=environment(PYTHONPATH=os.environ["PYTHONPATH"]))
    equal(done.returncode, 0, f"exit status, {done.stderr}")
    contains(done.stdout, "parameter_server: error 0.00")


def process_samples_a_graph_of_several_workers():
    if not importlib.util.find_spec("numpy"):
        raise Skipped("no numpy")
    for n in (1, 4):  # alone it reads nothing
        done = run(TENREC, "run", "-n", n, "--", sys.executable, os.path.join(ROOT, "examples/python/sampling.py"), 3,
                   env=environment(PYTHONPATH=os.environ["PYTHONPATH"]))
        equal(done.returncode, 0, f"exit status of {n} workers, {done.stderr}")
        equal((done.stdout.count("3 batches as of the whole graph"), done.stdout.count(" 0 rows read")), (n, 1 if n == 1 else 0))


def process_in_c_calls_functions_of_one_in_python():
    def side(rank, *command):
        return start(*command, env=environment(PYTHONPATH=os.environ["PYTHONPATH"], RANK=str(rank), WORLD_SIZE="2", **meeting))
    with tempfile.TemporaryDirectory() as folder:
        meeting = {"TENREC_INIT_METHOD": f"file://{folder}/store"}
        both = side(0, SMOOTH), side(1, sys.executable, os.path.join(ROOT, "examples/python/smoothed.py"))
        c, python = programs_end(*both)
    contains(c, "the norm is 68.381")
    equal(python.splitlines(), ["smoothed: [1.5, 1.0, 2.0, 1.0, 2.0, 1.5]", "smoothed: EINVAL: 'smooth': argument 1 is text, expected a tensor"])


def process_of_the_launcher_prints_one_line_when_it_is_interrupted():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "waits.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write("""import threading
import tenrec_rpc as tenrec
def main():
    me = tenrec.init_rpc()
    if me.id == 1:
        threading.Event().wait()
    print("here", flush=True)
    me.barrier()
main()
""")
        p = start(TENREC, "run", "-n", "2", "--", sys.executable, path, env=environment(PYTHONPATH=os.environ["PYTHONPATH"]), start_new_session=True)
        try:
            contains(p.stdout.readline(), "here")
            os.killpg(p.pid, signal.SIGINT)  # as a terminal does
            _, err = p.communicate(timeout=LIMIT_S / 2)
        finally:
            p.kill()
    true(re.search(r"^\[0\] interrupted at waits\.py:[78] in main$", err, re.M), err)  # it has printed the line, or waits
    true("Traceback" not in err, err)


def process_that_ends_without_a_shutdown_ends():
    with tempfile.TemporaryDirectory() as folder:
        out, = programs_end(program('tenrec.init_rpc(overrides=overrides)\nprint("here")', folder=folder))
    equal(out, "here\n")


if __name__ == "__main__":
    main(globals(), "process_", "python_process")
