# SPDX-License-Identifier: Apache-2.0
"""ring_model.py - ring.pml under spin: no wake-up is lost, and each mistake loses one.

usage: ring_model.py MODEL
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..", "checks"))
import report

# What is left out or turned round in a variant: a name of the model.
MISTAKES = ["NO_WRITER_FENCE", "NO_READER_FENCE", "NO_SECOND_LOOK", "LOOP_TAKES_BELLS",
            "NO_RECHECK", "LOOK_FIRST"]


def loses_a_wake_up(model, name):
    """Whether spin reaches a state from which nothing goes on; None with what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        for command in (["spin", f"-D{name}", "-a", model],
                        ["cc", "-O1", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"],
                        ["./pan", "-m100000"]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                return None, [f"{' '.join(command)}: {done.stdout}{done.stderr}"]
        if "errors: 0" in done.stdout and "max search depth too small" not in done.stdout:
            return False, []
        if "invalid end state" in done.stdout:
            return True, []
        return None, done.stdout.splitlines()


def main():
    model = os.path.abspath(sys.argv[1])
    names = ["model_loses_no_wake_up"] + [f"model_loses_a_wake_up_with_{m.lower()}"
                                          for m in MISTAKES]
    for name, mistake in zip(names, [""] + MISTAKES):
        if not shutil.which("spin") or not shutil.which("cc"):
            report.skip(name, "spin or cc is not installed")
            continue
        lost, problems = loses_a_wake_up(model, mistake or "AS_IT_IS")
        if lost is not None and lost != bool(mistake):
            problems = ["a state from which nothing goes on" if lost else "spin finds no error"]
        report.case(name, problems)
    report.finish()


main()
