# SPDX-License-Identifier: Apache-2.0
"""tally.py BUILDDIR [RESULTS] - counts test cases of the last `meson test
--setup full`.

Prints what failed with its output, which cases were skipped and whether
tests/allowed_skips names them, or why a security mode leaves them out
(security_skips), and as the last line

    N passed, N failed, N skipped

RESULTS is a file with lines "ok NAME", "not ok NAME" and "skip NAME" of cases
that meson did not run. A program that crashed or ran out of time counts the
cases that it announced and did not tell about as failed, and at least one.
Exit status 1 when anything failed, nothing ran, or a skip was not allowed.
"""
import fnmatch
import json
import os
import re
import sys

import security_skips

HERE = os.path.dirname(os.path.abspath(__file__))
PLAN = re.compile(r"1\.\.(\d+)")
CASE = re.compile(r"(not )?ok\b\s*(\d+)?\s*(?:-\s*)?([^#]*)(#\s*SKIP\b.*)?", re.IGNORECASE)


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add(self, how, name):
        if how == "ok":
            self.passed += 1
        elif how == "skip":
            self.skipped.append(name)
        else:
            self.failed.append(name)

    def add_program(self, test):
        """One entry of meson's log; True when all of it is well."""
        before = len(self.failed)
        name = test["name"] = test["name"].split(" / ")[-1]
        result = test["result"]
        announced = told = 0
        for line in test.get("stdout", "").splitlines():
            plan = PLAN.fullmatch(line.strip())
            case = CASE.fullmatch(line.strip())
            if plan:
                announced += int(plan[1])
            elif case:
                told += 1
                how = "skip" if case[4] else "not ok" if case[1] else "ok"
                self.add(how, f"{name}/{case[3].strip()}")
        well = result in ("OK", "SKIP", "EXPECTEDFAIL")
        if not announced and not told:
            self.add("skip" if result == "SKIP" else "ok" if well else "not ok", name)
        elif told < announced:
            lost = announced - told
            self.failed += [f"{name}: one of {lost} cases it never came to"] * lost
        if not well and len(self.failed) == before:
            self.failed.append(f"{name} ({result.lower()}, exit status {test.get('returncode')})")
        return len(self.failed) == before


def show(test):
    print(f"\n==== {test['name']}: {test['result']}, exit status {test.get('returncode')}, "
          f"{test['duration']:.1f} s")
    for stream in ("stdout", "stderr"):
        text = test.get(stream, "")
        lines = text.splitlines()
        if stream == "stdout":
            lines = [x for x in lines if not re.match(r"ok\b", x)]
        if len(lines) > 200:
            print(f"---- {stream}: the last 200 of {len(lines)} lines")
        elif lines:
            print(f"---- {stream}")
        print("\n".join(lines[-200:]))


def read_allowed():
    names = ["allowed_skips"]
    if os.environ.get("TENREC_TEST_WRAPPER", "").startswith("valgrind"):
        names.append("allowed_skips.valgrind")
    if "TSAN_OPTIONS" in os.environ:
        names.append("allowed_skips.thread")
    lines = []
    for name in names:
        with open(os.path.join(HERE, name), encoding="utf-8") as f:
            lines += (line.split("#")[0].strip() for line in f)
    return [line for line in lines if line]


def main():
    build = sys.argv[1]
    tally = Tally()
    log = os.path.join(build, "meson-logs", "testlog-full.json")
    if os.path.exists(log):
        with open(log, encoding="utf-8") as f:
            for test in map(json.loads, f):
                if not tally.add_program(test):
                    show(test)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            for line in f:
                how, name = re.match(r"(ok|not ok|skip) (.*)", line).groups()
                tally.add(how, name)

    allowed = read_allowed()
    left_out = security_skips.read()
    refused = 0
    for name in tally.skipped:
        why = security_skips.reason(name, left_out)
        known = why or any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
        refused += not known
        print(f"skipped: {name}" + (f" - {why}" if why else "" if known else
              " - NOT in tests/allowed_skips, so this run fails"))
    for name in tally.failed:
        print(f"failed: {name}")
    if not tally.passed and not tally.failed:
        print("no test ran, which is a failure too")
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped",
          flush=True)
    return 1 if tally.failed or refused or not tally.passed else 0


sys.exit(main())
