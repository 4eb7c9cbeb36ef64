# SPDX-License-Identifier: Apache-2.0
"""trace_test.py TENREC HELLO - `tenrec run --trace`: one trace of several workers."""
import json
import os
import sys
import tempfile

from cases import contains, environment, equal, main, one_line, run, true

TENREC, HELLO = (os.path.abspath(path) for path in sys.argv[1:3])


def traced(n, path, *program, **more):
    return run(TENREC, "run", "-n", n, "--trace", path, "--", *program, **more)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)["traceEvents"]


def check_arrows(events, n):
    """Each arrow begins in a call and ends in a function that began later, and before the call was over."""
    slices = {(e["pid"], e["tid"], e["ts"]): e for e in events if e["ph"] == "X"}
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = [e for e in events if e["ph"] == "f"]
    equal(len(ends), n, "number of arrows")
    for end in ends:
        begin = begins[end["id"]]
        call = slices[(begin["pid"], begin["tid"], begin["ts"])]
        serve = slices[(end["pid"], end["tid"], end["ts"])]
        equal(call["cat"], "call")
        equal(serve["cat"], "serve")
        contains(call["name"], f"#{serve['name']}(worker{begin['pid'] - 1} -> worker{end['pid'] - 1})")
        true(call["ts"] < serve["ts"] < call["ts"] + call["dur"], f"{serve} is not within {call}")


def trace_has_the_rows_of_all_workers():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/trace.json"
        got = traced(3, path, HELLO)
        equal((got.returncode, got.stderr), (0, ""))
        events = load(path)
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        equal(names, {1: "worker0", 2: "worker1", 3: "worker2"})
        check_arrows(events, 3)
        equal(len([e for e in events if e["ph"] == "X" and e["cat"] == "call"]), 3)


def trace_leaves_nothing_else_behind():
    with tempfile.TemporaryDirectory() as folder:
        got = traced(1, f"{folder}/trace.json", HELLO, env=environment(TMPDIR=folder))
        equal(got.returncode, 0)
        equal(os.listdir(folder), ["trace.json"])


def trace_is_refused_when_its_file_cannot_be_written():
    got = traced(1, "/nowhere/trace.json", HELLO)
    equal(got.returncode, 1)
    contains(one_line(got.stderr), "--trace: cannot write '/nowhere/trace.json'")
    equal(got.stdout, "")


def trace_names_workers_without_a_trace():
    with tempfile.TemporaryDirectory() as folder:
        got = traced(2, f"{folder}/trace.json", "sh", "-c", "true")
        equal(got.returncode, 1)
        contains(got.stderr, "worker 0 wrote no trace")
        contains(got.stderr, "worker 1 wrote no trace")
        equal(load(f"{folder}/trace.json"), [])


def trace_may_lack_a_worker_when_the_others_keep_going():
    with tempfile.TemporaryDirectory() as folder:
        got = run(TENREC, "run", "-n", 2, "--keep-going", "--trace", f"{folder}/trace.json", "--",
                  "sh", "-c", f"test $RANK = 1 || WORLD_SIZE=1 exec {HELLO}")
        equal(got.returncode, 0)
        contains(one_line(got.stderr), "worker 1 wrote no trace")
        check_arrows(load(f"{folder}/trace.json"), 1)


def trace_keeps_the_exit_status_of_the_program():
    with tempfile.TemporaryDirectory() as folder:
        got = traced(1, f"{folder}/trace.json", "sh", "-c", f"{HELLO}; exit 7")
        equal(got.returncode, 7)
        check_arrows(load(f"{folder}/trace.json"), 1)


main(globals(), "trace_")
