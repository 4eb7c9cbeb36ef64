# SPDX-License-Identifier: Apache-2.0
"""fuzz.py - script/fuzz runs the targets for as long as it is asked to."""
import os
import subprocess

import report


def zero_seconds():
    # Without this script's limit libFuzzer would go on for ever.
    done = subprocess.run([os.path.join(report.ROOT, "script/fuzz"), "0"], timeout=50,
                          capture_output=True, text=True, check=False)
    if done.returncode or "no target runs" not in done.stdout:
        yield f"exit status {done.returncode}: {done.stdout}{done.stderr}"


report.case("fuzz_runs_no_target_when_seconds_are_0", zero_seconds())
report.finish()
