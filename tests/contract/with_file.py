# SPDX-License-Identifier: Apache-2.0
"""with_file.py PROGRAM ARGS - runs a program with the URL of a file store of its own at @FILE@."""
import os
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory(prefix="tenrec-store-") as folder:
    url = "file://" + os.path.join(folder, "store")
    done = subprocess.run([arg.replace("@FILE@", url) for arg in sys.argv[1:]], check=False)
sys.exit(done.returncode)
