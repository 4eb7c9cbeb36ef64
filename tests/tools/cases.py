# SPDX-License-Identifier: Apache-2.0
"""cases.py - runs the functions of a file as test cases and prints TAP.

A case is a function whose name says what is expected; it fails by raising.
"""
import os
import subprocess
import sys
import threading
import time
import traceback

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import security_skips  # pylint: disable=wrong-import-position

LIMIT_S = 60 * (5 if os.environ.get("TENREC_TEST_WRAPPER") else 1)


class Failed(Exception):
    """What was expected did not happen."""


class Skipped(Exception):
    """The case cannot run here; tests/allowed_skips must name it."""


def equal(got, wanted, what="value"):
    if got != wanted:
        raise Failed(f"{what} is {got!r}, expected {wanted!r}")


def contains(text, part):
    if part not in text:
        raise Failed(f"{part!r} is not in {text!r}")


def true(condition, what):
    if not condition:
        raise Failed(what)


def one_line(text):
    """Errors are one line on stderr."""
    true(text.endswith("\n") and text.count("\n") == 1, f"not one line: {text!r}")
    return text


def environment(**more):
    """Ours without what a caller of the tests may have set for itself; the security mode of the run stays."""
    ours = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    kept = ("TENREC_PLUGIN_PATH", "TENREC_DLCLOSE", "TENREC_SECRET_FILE", "TENREC_SECURITY__", "TENREC_TEST_SECURITY")
    env = {k: v for k, v in os.environ.items()
           if k.startswith(kept) or (k not in ours and not k.startswith("TENREC_"))}
    env.update(more)
    return env


def has_ucx():
    """The backend ucx is not built where its library is absent, and is refused in mode mtls."""
    folders = os.environ["TENREC_PLUGIN_PATH"].split(":")
    return security_skips.MODE != "mtls" and any(os.path.exists(f"{folder}/ucx.so") for folder in folders)


def tcp_transport():
    """What the backend tensorpipe calls TCP in the security mode of the run."""
    return "tls" if security_skips.MODE in ("tls", "mtls") else "uv"


def run(*args, env=None, text=True, limit_s=LIMIT_S, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, text=text, timeout=limit_s,
                          env=env or environment(), check=False, **more)


def start(*args, env=None, **more):
    return subprocess.Popen([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=env or environment(), **more)


def until(condition, what):
    """Polls until condition() holds."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what} did not come true in {LIMIT_S} s")
        threading.Event().wait(0.01)


def alive(pid):
    """False for a process that is gone, or ended and not yet collected."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def run_cases(found, test=""):
    """Returns the number of cases that failed. A test whose cases tests/security_skips names, passes its name."""
    failed = 0
    print(f"1..{len(found)}")
    for i, case in enumerate(found, 1):
        try:
            why = security_skips.reason(f"{test}/{case.__name__}")
            if why:
                raise Skipped(why)
            case()
            print(f"ok {i} - {case.__name__}", flush=True)
        except Skipped as why:
            print(f"ok {i} - {case.__name__} # SKIP {why}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {i} - {case.__name__}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    return failed


def main(namespace, prefix, test=""):
    failed = run_cases([f for n, f in namespace.items() if n.startswith(prefix) and callable(f)], test)
    sys.exit(1 if failed else 0)
