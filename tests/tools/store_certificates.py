# SPDX-License-Identifier: Apache-2.0
"""store_certificates.py - certificates that openssl makes for the tests of store plugins; without
openssl the program skips."""
import os
import shutil
import subprocess
import sys
import tempfile

from store_tool import LIMIT_S

if not shutil.which("openssl"):
    print("1..0 # SKIP openssl is not installed")
    sys.exit(0)

FOLDER = tempfile.TemporaryDirectory(prefix="tenrec-store-tls-")


def path(name):
    return os.path.join(FOLDER.name, name)


def certify(name, *more):
    """NAME.pem and NAME.key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-keyout", path(f"{name}.key"), "-out", path(f"{name}.pem"), *more],
                   check=True, capture_output=True, timeout=LIMIT_S)


def sign(name, san, by="ca"):
    certify(name, "-CA", path(f"{by}.pem"), "-CAkey", path(f"{by}.key"), "-addext",
            f"subjectAltName={san}", "-addext", "basicConstraints=critical,CA:FALSE")


certify("ca")
certify("stranger")
sign("server", "IP:127.0.0.1,DNS:localhost")
sign("elsewhere", "DNS:elsewhere.example")
sign("worker", "DNS:worker")
CA = path("ca.pem")
