# SPDX-License-Identifier: Apache-2.0
"""runs.py BUILDDIR - script/ci/test-all adds up its parts, and tests/security_skips is up to date."""
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile

import report

sys.path.insert(0, os.path.join(report.ROOT, "tests"))
import security_skips

BUILD = sys.argv[1]

# Stands for script/test: each part ends in another way.
STUB = """#!/bin/sh
case $* in
'') echo 'some output'; echo '5 passed, 0 failed, 1 skipped' ;;
'--security secret') echo 'failed: pair/case'; echo '3 passed, 1 failed, 2 skipped'; exit 1 ;;
'--sanitize address') echo 'no totals' ; exit 1 ;;
'--sanitize thread') echo 'skipped: some - NOT in tests/allowed_skips, so this run fails'; echo '1 passed, 0 failed, 1 skipped'; exit 1 ;;
*) echo '1 passed, 0 failed, 0 skipped' ;;
esac
"""


def test_all(*parts):
    with tempfile.TemporaryDirectory() as tree:
        for folder in ("script/ci", "tests"):
            os.makedirs(os.path.join(tree, folder))
        shutil.copy(os.path.join(report.ROOT, "tests/security.sh"), os.path.join(tree, "tests"))
        script = shutil.copy(os.path.join(report.ROOT, "script/ci/test-all"), os.path.join(tree, "script/ci"))
        with open(os.path.join(tree, "script/test"), "w", encoding="utf-8") as stub:
            stub.write(STUB)
        os.chmod(stub.name, 0o755)
        done = subprocess.run([script, *parts], timeout=50, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.replace(" in 0 min", "").replace(" in 1 min", "").splitlines()


def adds_up():
    code, lines = test_all("plain", "valgrind")
    wanted = ["plain: 5 passed, 0 failed, 1 skipped", "valgrind: 1 passed, 0 failed, 0 skipped",
              "6 passed, 0 failed, 1 skipped"]
    if (code, lines) != (0, wanted):
        yield f"exit status {code}: {lines}"


def tells_what_failed():
    code, lines = test_all("secret", "address", "thread")
    wanted = ["secret: 3 passed, 1 failed, 2 skipped (failed)", "    failed: pair/case",
              "address: 0 passed, 1 failed, 0 skipped (ended early: build/test-all/address.log)",
              "thread: 1 passed, 0 failed, 1 skipped (failed)",
              "    skipped: some - NOT in tests/allowed_skips, so this run fails",
              "4 passed, 2 failed, 3 skipped"]
    if (code, lines) != (1, wanted):
        yield f"exit status {code}: {lines}"


def knows_its_parts():
    code, lines = test_all("plain", "fast")
    if (code, lines) != (2, []):
        yield f"exit status {code}: {lines}"


def modes_apply():
    for modes, mode, wanted in (("all", "none", True), ("tls,mtls", "mtls", True), ("tls,mtls", "secret", False),
                                ("!none", "none", False), ("!none", "secret", True)):
        if security_skips.applies(modes, mode) != wanted:
            yield f"'{modes}' in mode {mode} is not {wanted}"


def skips_are_of_tests():
    listed = subprocess.run(["meson", "introspect", "--tests", BUILD], stdout=subprocess.PIPE, check=True)
    names = [test["name"] for test in json.loads(listed.stdout)]
    for number, line in report.lines("tests/security_skips"):
        if not line or line.startswith("#"):
            continue
        if len(line.split(None, 2)) < 3:
            yield f"tests/security_skips:{number}: expected a test, modes and a reason"
        elif not fnmatch.filter(names, line.split()[0].split("/")[0]):
            yield f"tests/security_skips:{number}: no test is called '{line.split()[0]}'"


report.case("runs_of_test_all_add_up", adds_up())
report.case("runs_of_test_all_tell_what_failed", tells_what_failed())
report.case("runs_of_test_all_are_refused_when_a_part_is_unknown", knows_its_parts())
report.case("runs_in_a_mode_skip_the_lines_of_that_mode", modes_apply())
report.case("runs_in_a_mode_skip_tests_that_exist", skips_are_of_tests())
report.finish()
