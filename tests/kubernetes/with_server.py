# SPDX-License-Identifier: Apache-2.0
"""with_server.py PROGRAM ARGS - runs a program that finds the stub of a cluster's API at
TENREC_TEST_KUBERNETES, and in its arguments at @KUBERNETES@, without TLS."""
import os
import subprocess
import sys

from api import Api

with Api() as api:
    done = subprocess.run([arg.replace("@KUBERNETES@", api.url()) for arg in sys.argv[1:]], check=False,
                          env={**os.environ, "TENREC_TEST_KUBERNETES": api.url(), "TENREC_STORES__KUBERNETES__TLS": "false"})
sys.exit(done.returncode)
