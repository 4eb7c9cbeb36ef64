# SPDX-License-Identifier: Apache-2.0
"""dump_test.py - `tenrec dump` on groups that run, and the dumps that workers write by themselves."""
import glob
import json
import os
import signal
import stat
import tempfile

from cases import contains, equal, main, one_line, run, true, until
from crew import LONG_MS, TENREC, Crew, backend, by_hand, limit, store_of

LIMIT = f"{limit(10000)}ms"


def dump(*args, cwd=None):
    return run(os.path.abspath(TENREC), "dump", *args, "--timeout", LIMIT, env=backend(), cwd=cwd)


def well(*args, cwd=None):
    got = dump(*args, cwd=cwd)
    true(got.returncode == 0, f"{args}: exit status {got.returncode}, {got.stderr}")
    return got.stdout


def trace_of(path):
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode of the trace")
    with open(path, encoding="utf-8") as f:
        return json.load(f)["traceEvents"]


def stand(crew, of=0, at=1):
    crew[of].do(f"start worker{at} stand {LONG_MS}")
    crew[at].until_held()


def dump_shows_the_handler_that_runs_and_the_call_that_waits():
    with Crew().run(2) as crew, tempfile.TemporaryDirectory() as folder:
        crew.all("init")
        stand(crew)
        got = json.loads(well("worker1", "--store", store_of(crew[0]), "--json", "--output", f"{folder}/t.json"))
        equal((got["worker"], got["pid"], got["trace"], got["waits"]), ("worker1", crew[1].pid, f"{folder}/t.json", []))
        handler, = got["handlers"]
        equal((handler["function"], handler["caller"], handler["state"]), ("stand", "worker0", "runs"))
        true(str(handler["thread"]) in os.listdir(f"/proc/{crew[1].pid}/task"), f"{handler} is of no thread")
        true(handler["stack"] and not handler["no_stack"], f"no stack in {handler}")
        slices = [e for e in trace_of(got["trace"]) if e["ph"] == "X" and e["name"] == "stand"]
        true(len(slices) == 1 and slices[0]["args"]["unfinished_us"] > 0, f"{slices}")
        text = well("worker0", "--store", store_of(crew[0]), cwd=folder)
        for part in (f"worker0, process {crew[0].pid}\n0 handlers\n1 own call that waits\n", "stand", "worker1",
                     f"wrote tenrec-worker0-{crew[0].pid}.json: ", "observe.recorder is false"):
            contains(text, part)
        trace_of(f"{folder}/tenrec-worker0-{crew[0].pid}.json")
        # A name that the tool chose is of no file that was there, nor of a link that another user planted.
        planted, victim = f"{folder}/tenrec-worker0-{crew[0].pid}-2.json", f"{folder}/victim"
        with open(victim, "w", encoding="ascii") as f:
            f.write("untouched")
        os.symlink("victim", planted)
        contains(well("worker0", "--store", store_of(crew[0]), cwd=folder), f"wrote tenrec-worker0-{crew[0].pid}-3.json: ")
        with open(victim, encoding="ascii") as f:
            equal(f.read(), "untouched")
        equal(os.stat(f"{folder}/tenrec-worker0-{crew[0].pid}-3.json").st_mode & 0o777, 0o600)
        crew[1].do("release")
        crew[0].do("await")
        crew.leave()


def dump_answers_while_the_pool_is_full():
    with Crew().start(by_hand(2, TENREC_WORKER__NUM_WORKER_THREADS="1")) as crew, \
            tempfile.TemporaryDirectory() as folder:
        store = f"file://{crew.folder.name}/store"
        crew.all(f"init init_method={store}")
        stand(crew)
        crew[0].do(f"start worker1 stand {LONG_MS}")
        def queued():
            got = json.loads(well("worker1", "--store", store, "--json", "--output", f"{folder}/t.json"))
            return sorted(h["state"] for h in got["handlers"]) == ["queued", "runs"]
        until(queued, "a handler that runs and a handler that is queued")
        crew[1].do("release")
        crew[1].until_held()
        crew[1].do("release")
        crew[0].do("await")
        crew[0].do("await")
        crew.leave()


def dump_is_written_when_a_worker_is_lost():
    with tempfile.TemporaryDirectory() as folder, \
            Crew().start(by_hand(3, TENREC_OBSERVE__DUMP_DIR=folder, TENREC_OBSERVE__RECORDER="true")) as crew:
        crew.all(f"init init_method=file://{crew.folder.name}/store")
        stand(crew)
        crew[0].do(f"call worker2 echo {LONG_MS} x")
        for rank in (1, 2):  # the second within a minute
            crew[rank].send_signal(signal.SIGKILL)
            crew[0].event("lost")
        pattern = f"{folder}/tenrec-worker0-{crew[0].pid}-*.json"
        until(lambda: glob.glob(pattern), "a dump of worker0")
        crew[0].do(f"shutdown immediate {LONG_MS}")  # what is being written is finished
        path, = glob.glob(pattern)
        names = [(e["ph"], e["name"]) for e in trace_of(path)]
        for event in (("i", "lost worker worker1"), ("b", "stand"), ("b", "echo"), ("e", "echo")):
            true(event in names, f"{event} is not in {names}")
        crew.release([0])
        _, _, errors = crew.ended(crew.processes[0])
        contains(errors, f"lost worker 'worker1': wrote '{path}'")
        equal(errors.count("wrote '"), 1, "dumps in the log")


def dump_says_what_is_wrong():
    with Crew().run(1) as crew:
        crew.all("init")
        store = store_of(crew[0])
        for args, part in ((["worker_0"], "did you mean 'worker0'?"),
                           (["worker0", "--output", "/nowhere/at/all"], "--output: cannot write '/nowhere/at/all': ")):
            got = dump(*args, "--store", store)
            equal((got.returncode, got.stdout), (1, ""))
            contains(one_line(got.stderr), part)
        equal(dump("--store", store).returncode, 2)
        crew.leave()


main(globals(), "dump_")
