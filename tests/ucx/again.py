# SPDX-License-Identifier: Apache-2.0
"""again.py COMMAND ARGUMENTS... - runs a test on UCX, and runs it again if UCX gave up.

UCX 1.13 aborts its process in about one of a thousand shutdowns on a loaded machine, by an
assertion in its own TCP transport (tcp_ep.c, tcp_cm.c, tcp_sockcm_ep.c). docs/backends.md names
it. Only a run that ends so is repeated, twice at most, and each such run is named.
"""
import re
import subprocess
import sys

OWN = re.compile(rb"\btcp_(ep|cm|sockcm_ep)\.c:\d+\s+Assertion.*failed")
RUNS = 3

for left in reversed(range(RUNS)):
    run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    gave_up = OWN.search(run.stdout + run.stderr)
    if run.returncode == 0 or not gave_up or left == 0:
        break
    print("UCX gave up, the test is run again:", gave_up[0].decode(errors="replace"), file=sys.stderr)
sys.stdout.buffer.write(run.stdout)
sys.stderr.buffer.write(run.stderr)
sys.exit(run.returncode if run.returncode >= 0 else 128 - run.returncode)
