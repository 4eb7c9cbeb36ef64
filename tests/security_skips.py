# SPDX-License-Identifier: Apache-2.0
"""security_skips.py - the tests that a run in one security mode leaves out: the lines of tests/security_skips."""
import fnmatch
import os

HERE = os.path.dirname(os.path.abspath(__file__))
MODE = os.environ.get("TENREC_TEST_SECURITY", "")


def applies(modes, mode):
    """Returns true if `modes`, such as "all", "tls,mtls" or "!none", contains `mode`."""
    if modes.startswith("!"):
        return mode not in modes[1:].split(",")
    return modes == "all" or mode in modes.split(",")


def read(mode=MODE):
    """[(pattern, reason)] of the mode; none in a run without a mode."""
    if not mode:
        return []
    with open(os.path.join(HERE, "security_skips"), encoding="utf-8") as f:
        lines = [line.split(None, 2) for line in f if line.strip() and not line.startswith("#")]
    return [(test, why.strip()) for test, modes, why in lines if applies(modes, mode)]


def reason(name, skips=None):
    """Why the test, or the case "test/case", is left out; None if it is not."""
    for pattern, why in read() if skips is None else skips:
        if fnmatch.fnmatchcase(name, pattern):
            return why
    return None
