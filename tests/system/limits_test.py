# SPDX-License-Identifier: Apache-2.0
"""limits_test.py - groups whose processes have a limit of file sizes (ulimit -f): no signal ends any, and texts name the limit."""
import os
import resource
import sys
import tempfile

from cases import Skipped, contains, environment, equal, main, run, true

TENREC, HELLO, SHARED = sys.argv[1:4]
LIMIT = "the limit of file sizes (ulimit -f) is "
# The run-time library of ThreadSanitizer ends every program by the signal, before main, if files may have no bytes.
NOTHING = () if "TSAN_OPTIONS" in os.environ else (0,)


def limited(kib, *words, **more):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (kib * 1024, kib * 1024))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return run(*words, env=environment(**more), preexec_fn=limit, restore_signals=True)


def says_hello(got):
    equal(got.returncode, 0, got.stderr)
    contains(got.stdout, "42")


def limits_leave_the_rings_out_with_one_line_a_worker():
    for kib in (1, 4, 1024):
        got = limited(kib, TENREC, "run", "-n", "2", "--", HELLO)
        says_hello(got)
        lines = [line for line in got.stderr.splitlines() if "is not used" in line]
        equal(len(lines), 2, got.stderr)
        for line in lines:
            contains(line, f"{LIMIT}{kib} KiB")
        true("ring with process" not in got.stderr, got.stderr)


def limits_of_nothing_refuse_the_secret_and_run_without():
    if not NOTHING:
        raise Skipped("no program with ThreadSanitizer starts without files")
    got = limited(0, TENREC, "run", "-n", "1", "--", HELLO)
    equal(got.returncode, 1, got.stderr)
    contains(got.stderr, f"{LIMIT}0 KiB")
    says_hello(limited(0, TENREC, "run", "-n", "2", "--insecure", "--", HELLO))


def limits_fail_shared_tensors_with_their_text():
    for kib in (*NOTHING, 1, 4, 1024):
        got = limited(kib, SHARED)
        equal(got.returncode, 0, got.stderr)
        contains(got.stdout, LIMIT)


def limits_end_a_trace_without_a_signal():
    with tempfile.TemporaryDirectory() as folder:
        got = limited(1, TENREC, "run", "-n", "2", "--", HELLO, TENREC_WORKER__TRACE=f"{folder}/t{{rank}}.json")
        says_hello(got)
        contains(got.stderr, f"worker.trace: cannot write the trace '{folder}/t0.json': {LIMIT}1 KiB")


def limits_end_a_log_without_a_signal():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/log"
        says_hello(limited(1, TENREC, "run", "-n", "2", "--", HELLO, TENREC_LOG="trace", TENREC_LOG_FILE=path))
        true(os.stat(path).st_size <= 1024, f"{os.stat(path).st_size} bytes")


main(globals(), "limits_")
