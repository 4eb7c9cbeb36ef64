# SPDX-License-Identifier: Apache-2.0
"""with_server.py PROGRAM ARGS - runs a program that finds an etcd server of its own at
TENREC_TEST_ETCD, and in its arguments at @ETCD@."""
import os
import subprocess
import sys

from server import Server, need_server

need_server()
with Server() as server:
    done = subprocess.run([arg.replace("@ETCD@", server.url("")) for arg in sys.argv[1:]], check=False,
                          env={**os.environ, "TENREC_TEST_ETCD": server.url("")})
sys.exit(done.returncode)
