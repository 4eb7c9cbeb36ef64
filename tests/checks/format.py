# SPDX-License-Identifier: Apache-2.0
"""format.py - the tree looks as .clang-format says, in the version it was
written for (others differ in details)."""
import shutil
import subprocess

import report

WANTED = "version 14."


def main():
    name = "format_tree_is_clang_formatted"
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = subprocess.run([tool, "--version"], capture_output=True, text=True,
                             check=True).stdout if tool else ""
    if WANTED not in version:
        report.skip(name, f"no clang-format {WANTED}x")
        report.finish()
    sources = report.files("bindings/python", *report.LIBRARY, "testkit", "plugins", "tools", "examples", "bench", "tests",
                           ends=(".c", ".h", ".cc", ".cpp"))
    done = subprocess.run([tool, "--dry-run", "--Werror", *sources], cwd=report.ROOT,
                          capture_output=True, text=True, check=False)
    bad = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line})
    problems = [f"{path}: clang-format -i {path}" for path in bad]
    if done.returncode and not problems:
        problems = done.stderr.splitlines()
    report.case(name, problems)
    report.finish()


main()
