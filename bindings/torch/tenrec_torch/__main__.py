# SPDX-License-Identifier: Apache-2.0
"""Runs a program whose init_rpc calls name no backend on TENREC."""
import importlib.util
import os
import runpy
import sys

from ._children import follow

USAGE = """usage: python -m tenrec_torch PROGRAM [ARGUMENT ...]
       python -m tenrec_torch -m MODULE [ARGUMENT ...]

Runs the program as python does; init_rpc without a backend uses TENREC.
"""


def refuse(text):
    sys.exit(f"tenrec_torch: {text}")


def run_program(argv):
    if not os.path.exists(argv[0]):
        refuse(f"no such file: '{argv[0]}'")
    sys.argv = argv
    if not getattr(sys.flags, "safe_path", False):  # else python adds no folder
        sys.path[0] = os.path.dirname(os.path.realpath(argv[0]))
    return runpy.run_path(argv[0], run_name="__main__")


def run_module(argv):
    if importlib.util.find_spec(argv[0]) is None:
        refuse(f"no module named '{argv[0]}'")
    sys.argv = argv
    return runpy.run_module(argv[0], run_name="__main__", alter_sys=True)


def main(argv):
    if argv[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return {}
    named = argv[:1] == ["-m"]
    argv = argv[1:] if named else argv
    if not argv or argv[0].startswith("-"):
        print(USAGE, end="", file=sys.stderr)
        sys.exit(2)
    os.environ["TENREC_TORCH_DEFAULT"] = "1"  # also for processes that the program starts
    follow()
    return run_module(argv) if named else run_program(argv)


# Threads may outlive the program's last line: pickle finds its functions in this module then.
globals().update(main(sys.argv[1:]))
