# SPDX-License-Identifier: Apache-2.0
"""faults.py - `tenrec conformance` on a plugin that breaks a rule: the case of the fault fails, and names that rule alone."""
import json
import os
import subprocess
import tempfile

from cases import Failed, contains, equal

# Times TENREC_TEST_SLOW. A demand that holds comes true in a few milliseconds, or later on a loaded machine.
LIMIT, LOADED_LIMIT = "500ms", "10s"


def conformance(tenrec, *args, env=None):
    """A case that fails ends its process at once; TSan calls the threads that run there a leak."""
    env = dict(env or os.environ)
    env["TSAN_OPTIONS"] = ":".join(filter(None, (env.get("TSAN_OPTIONS"), "report_thread_leaks=0")))
    return subprocess.run([tenrec, "conformance", *args], capture_output=True, text=True, timeout=300, check=False, env=env)


def with_config(tenrec, text, *args, env=None):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "broken.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return conformance(tenrec, *args, path, env=env)


def sees(fault, expected, run):
    """A case: `run` gives the ended command of a fault by its further arguments; expected: (case, rule, part of the text)."""
    case, rule, text = expected

    def check_within(limit):
        done = run("--json", "--limit", limit, "--case", case)
        equal(done.returncode, 1, f"status; {done.stderr}")
        found = json.loads(done.stdout)
        equal(found["cases"][0]["result"], "failed")
        contains(found["cases"][0]["text"], text)
        equal([name for name, result in found["rules"].items() if result == "failed"], [rule], found["cases"][0]["text"])

    def check():
        try:
            check_within(LIMIT)
        except Failed:
            check_within(LOADED_LIMIT)
    check.__name__ = "conformance_sees_" + fault.replace(" ", "_")
    return check
