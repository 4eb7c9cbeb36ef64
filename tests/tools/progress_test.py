# SPDX-License-Identifier: Apache-2.0
"""progress_test.py - what commands that take their time say on a terminal, and that they say it nowhere else."""
import contextlib
import os
import pty
import re
import select
import socket
import subprocess
import sys
import time

from cases import equal, main, run, true

TENREC = sys.argv[1]
CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../config/default.yaml")
SLOW = float(os.environ.get("TENREC_TEST_SLOW", "1"))
LIMIT_S = 30 * SLOW
WAIT = ["ping", "--timeout", "2s", "--store"]
SHORT = ["ping", "--timeout", "1500ms", "--store"]
PERF = ["perf", "rate", "--calls", "100000000"]


@contextlib.contextmanager
def mute():
    """The URL of a store that takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def on_terminal(*words, until=None):
    """Everything that a command writes on a terminal, or that until a pattern is found; then it is interrupted."""
    parent, child = pty.openpty()
    process = subprocess.Popen([TENREC, *words], stdin=child, stdout=child, stderr=child, start_new_session=True)
    os.close(child)
    text, end = "", time.monotonic() + LIMIT_S
    try:
        while not (until and re.search(until, text)):
            true(time.monotonic() < end, f"no {until!r} in {text!r}")
            if select.select([parent], [], [], 0.2)[0]:
                try:
                    text += os.read(parent, 65536).decode()
                except OSError:  # the end of a terminal
                    break
        true(not until or re.search(until, text), f"no {until!r} in {text!r}")
        if until:
            process.terminate()
        process.wait(timeout=LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(parent)
    return text


def progress_is_shown_while_a_command_waits_for_a_store():
    with mute() as store:
        text = on_terminal(*WAIT, store)
    true(re.search(r"\r\x1b\[Ktenrec ping: waiting for the store and the group, \d of 2 s", text), repr(text))
    line = text.split("\x1b[K")[-1]
    true(re.fullmatch(r"\r?tenrec ping: [^\r\n]+\r\n", line), f"the error is not on a line of its own: {line!r}")


def progress_is_shown_while_calls_are_measured():
    text = on_terminal(*PERF, until=r"tenrec perf: rate: [1-9]\d* of 1\d+ calls, 1 s")
    true("\n" not in text, f"more than one line: {text!r}")


def progress_names_the_case_of_conformance():
    on_terminal("conformance", CONFIG, until=r"tenrec conformance: case \d+ of \d+, \w+")


def progress_is_not_shown_without_a_terminal_or_with_json():
    with mute() as store:
        got, text = run(TENREC, *SHORT, store), on_terminal(*SHORT, store, "--json")
    equal((got.returncode, got.stdout), (1, ""))
    true("\x1b" not in got.stderr and "waiting" not in got.stderr, got.stderr)
    true("\x1b" not in text, text)


main(globals(), "progress_")
