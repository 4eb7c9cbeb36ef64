# SPDX-License-Identifier: Apache-2.0
"""run.py - PyTorch's own RPC suites on Tenrec.

Each case is one test method of a suite that comes with the installed torch, on
one way (--transports) between its ranks, which are processes of this machine:

  shm      backend TENREC, config/shm.yaml: through shared memory
  tcp      backend TENREC, config/tcp.yaml: through TCP
  faulty   backend TENREC, config/faulty.yaml: `faulty` without rules around shm
  inject   the suites of torch's faulty agent, with the `faulty` plugin in its place
  ucx      backend TENREC, config/ucx.yaml: through UCX; only if --transports names it

Prints one line per case, what a failed one printed, and at the end
"N passed, N failed, N skipped". Cases in known_flakes are tried up to three times, then skipped.
"""
import argparse
import collections
import importlib
import os
import re
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch

import pool
import ranks
import upstream

DEBIAN_PYTHON = "/usr/bin/python3"  # the results of another Python's torch carry its version
WAYS = ["shm", "tcp", "faulty", "inject"]
MORE_WAYS = ["ucx"]  # need what not each machine has
# torch tests the class of options only for its own agent.
NOT_OURS = re.compile("_options|num_worker_threads|set_default_timeout")
ON_DEVICES = re.compile("dynamic.*cuda")  # cases in suites of the host
FLAKE_DEADLINE_S = 30  # short: a flaky case has three attempts
SHOWN_LINES = 150  # of the output of a failed case: the first, and as many last


def run_new_rank(backend, way, test, *args, **kwargs):
    """One rank of a case with devices, in an interpreter of its own."""
    ranks.answer_with_stacks()
    ranks.keep_process_groups()
    case = next(c for c in all_cases(upstream.load(), backend, [way], True) if c.test == test)
    case.make()
    case.cls._run(*args, **kwargs)


class Case(collections.namedtuple("Case", "way suite method cls")):
    @property
    def test(self):
        return f"{self.suite}.{self.method}"

    @property
    def name(self):
        return f"{self.way}/{self.test}"

    def make(self):
        """Runs in the process of the case."""
        self.cls.prepare()
        if self.test in known_flakes():
            self.cls.deadline_s = min(self.cls.deadline_s, FLAKE_DEADLINE_S)
        if self.cls.on_devices:
            self.cls.new_rank = run_new_rank, (self.cls.backend, self.way, self.test)
        setattr(sys.modules[__name__], self.suite, self.cls)  # where pickle finds it
        return self.cls(self.method)


def options():
    p = argparse.ArgumentParser(prog="script/ci/test-torch", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--backend", choices=["TENREC", "TENSORPIPE"], default="TENREC",
                   help="TENSORPIPE: torch's own agents (and its faulty one), to compare")
    p.add_argument("--transports", default=",".join(WAYS), metavar="WAY,...",
                   help="ways between the ranks (default: all)")
    p.add_argument("--suite", metavar="REGEX", help="only suites whose name matches")
    p.add_argument("--only", metavar="REGEX", help="only cases whose WAY/SUITE.METHOD matches")
    p.add_argument("--third", action="store_true",
                   help="each test on one way only, always the same one, and a third of inject")
    p.add_argument("--cuda", action="store_true",
                   help="the suites of tensors on CUDA devices in place of the others; cases skip without enough GPUs")
    p.add_argument("--repeat", type=int, default=1, metavar="N", help="each case N times")
    p.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), metavar="N",
                   help="cases at a time (default: twice as many as cpus; most wait most of the time)")
    p.add_argument("--deadline", type=float, default=120, metavar="SECONDS",
                   help="of one case; then its stacks are printed (default: 120)")
    p.add_argument("--results", metavar="FILE", help="append 'ok|not ok|skip NAME' lines to it")
    p.add_argument("--quiet", action="store_true", help="no line for what passed")
    p.add_argument("--list", action="store_true", help="print the names only")
    o = p.parse_args()
    o.transports = o.transports.split(",")
    if set(o.transports) - {*WAYS, *MORE_WAYS}:
        p.error(f"--transports: one or more of {','.join(WAYS + MORE_WAYS)}")
    return o


def in_third(way, test):
    """Selects one of three transports for each test; the faulty suites and those over ucx run on one of three."""
    if test.startswith(("TenrecProgramTest.", "TenrecWorkerTest.")):
        return True
    n = zlib.crc32(test.encode()) % 3
    return n == (0 if way in ("inject", *MORE_WAYS) else WAYS.index(way))


def host_suites(rpc_utils, backend, way):
    # The suites of torch's own agent are mostly about sparse tensors, as any agent has.
    suites = [*rpc_utils.GENERIC_TESTS, *rpc_utils.TENSORPIPE_TESTS]
    if backend == "TENREC":
        suites.append(importlib.import_module("package_test").TenrecPackageTest)
        suites.append(importlib.import_module("dynamic_test").TenrecDynamicTest)
        if way == "shm":  # these set their own transports
            suites.append(importlib.import_module("program_test").TenrecProgramTest)
            suites.append(importlib.import_module("worker_test").TenrecWorkerTest)
    return suites


def all_cases(rpc_utils, backend, ways, cuda):
    import fixtures
    fixtures.import_backend(backend)
    make = {"TENREC": fixtures.tenrec, "TENSORPIPE": fixtures.tensorpipe}[backend]
    for way in ways:
        fixture = fixtures.injecting(backend) if way == "inject" else make(way)
        if not fixture:
            continue
        if way == "inject":
            suites = [] if cuda else rpc_utils.FAULTY_AGENT_TESTS
        elif cuda:
            suites = [*rpc_utils.GENERIC_CUDA_TESTS, *rpc_utils.TENSORPIPE_CUDA_TESTS, *rpc_utils.TENSORPIPE_TESTS]
        else:
            suites = host_suites(rpc_utils, backend, way)
        made = rpc_utils.generate_tests("", fixture, suites, __name__)
        for suite, cls in made.items():
            for method in sorted(m for m in dir(cls) if m.startswith("test")):
                of_torch = suite == "TensorPipeAgentRpcTest"
                if of_torch and (NOT_OURS.search(method) or bool(ON_DEVICES.search(method)) != cuda):
                    continue
                if cuda and suite == "TensorPipeAgentDistAutogradTest":
                    continue
                yield Case(way, suite, method, cls)


def known_flakes():
    """{SUITE.METHOD: why}; why is the text after '#'."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_flakes")
    with open(path, encoding="utf-8") as f:
        lines = [line.strip().split("#", 1) for line in f if not line.startswith("#") and line.strip()]
    return {test.strip(): why.strip() for test, why in lines}


def show(text):
    lines = text.splitlines()
    if len(lines) > 2 * SHOWN_LINES:
        lines[SHOWN_LINES:-SHOWN_LINES] = [f"... {len(lines) - 2 * SHOWN_LINES} lines ..."]
    print("\n".join("     " + x for x in lines), flush=True)


def main():
    o = options()
    started = time.monotonic()
    if o.cuda:
        ranks.keep_off_devices()
    found = all_cases(upstream.load(), o.backend, o.transports, o.cuda)
    cases = [c for c in found
             if (not o.suite or re.search(o.suite, c.suite)) and (not o.only or re.search(o.only, c.name))
             and (not o.third or in_third(c.way, c.test))]
    if o.list:
        print("\n".join(c.name for c in cases))
        return 0
    import fixtures
    fixtures.Fixture.deadline_s = o.deadline
    fixtures.Fixture.on_devices = o.cuda
    # The suites with faults wait most: start them first, so that they do not run last and alone.
    cases.sort(key=lambda c: c.way != "inject")
    flakes = known_flakes()
    count = collections.Counter()
    prefix = "torch" if o.backend == "TENREC" else "torch_" + o.backend.lower()
    if sys.executable != DEBIAN_PYTHON:
        prefix += "-" + torch.__version__.split("+")[0]

    def say(case, how, text, took_s, log, number):
        if how == "fail" and case.test in flakes:
            how, text = "skip", f"failed {number} times, which is torch's: {flakes[case.test]}"
            number = 1
        count[how] += 1
        again = f" (attempt {number}: {flakes[case.test]})" if number > 1 else ""
        if how != "ok" or again or not o.quiet:
            print(f"{how:4} {case.name}  {took_s:.1f} s{again}", flush=True)
        if how == "fail":
            with open(log, encoding="utf-8", errors="replace") as f:
                printed = f.read()
            show(printed)
            if "Caught exception" not in printed:  # the ranks have printed theirs already
                show(text)
        elif how == "skip":
            print(f"     {text.strip()}")
        if o.results:
            with open(o.results, "a", encoding="utf-8") as f:
                f.write(f"{'not ok' if how == 'fail' else how} {prefix}/{case.name}\n")

    with tempfile.TemporaryDirectory(prefix="tenrec-torch-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        pool.run(cases * o.repeat, o.jobs, o.deadline, folder,
                 lambda case: 3 if case.test in flakes else 1, say)
    print(f"{time.monotonic() - started:.0f} s")
    print(f"{count['ok']} passed, {count['fail']} failed, {count['skip']} skipped", flush=True)
    return 1 if count["fail"] or not count["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
