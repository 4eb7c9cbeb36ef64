#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tap.py PROGRAM ARGS - runs a test program and makes clean TAP of its output.

cmocka 1.1 writes a skipped case as "not ok 3 # SKIP name", which every reader
takes for a failure, and what a case prints itself lies between the lines of
the protocol. Here the first becomes "ok 3 - name # SKIP" and the second a
comment. meson calls this as the wrapper of every test. TENREC_TEST_WRAPPER
(valgrind and its arguments) goes in front of compiled programs.
"""
import os
import re
import shlex
import subprocess
import sys

PROTOCOL = re.compile(rb"(1\.\.\d+|(not )?ok\b.*|#.*|Bail out!.*|\s*)$")
SKIP = re.compile(rb"(?:not )?ok (\d+) # SKIP ?(.*)$")


def clean(line):
    line = line.rstrip(b"\r\n")
    skip = SKIP.match(line)
    if skip:
        return b"ok %s - %s # SKIP" % skip.groups()
    return line if PROTOCOL.match(line) else b"# " + line


def is_compiled(path):
    try:
        with open(path, "rb") as f:
            return f.read(4) == b"\x7fELF" and "python" not in os.path.basename(path)
    except OSError:
        return False


def main():
    command = sys.argv[1:]
    wrapper = os.environ.get("TENREC_TEST_WRAPPER", "")
    if wrapper and is_compiled(command[0]):
        command = shlex.split(wrapper) + command
    if os.environ.get("CMOCKA_MESSAGE_OUTPUT") != "TAP":
        os.execvp(command[0], command)

    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        for line in program.stdout:
            sys.stdout.buffer.write(clean(line) + b"\n")
            sys.stdout.buffer.flush()
    if program.returncode < 0:
        print(f"# killed by signal {-program.returncode}", flush=True)
        return 128 - program.returncode
    return program.returncode


sys.exit(main())
