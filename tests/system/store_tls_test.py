# SPDX-License-Identifier: Apache-2.0
"""store_tls_test.py - runs whose workers and store speak TLS: by the secret of the run, or by certificates."""
import contextlib
import os
import socket
import subprocess
import tempfile

from cases import contains, equal, main, one_line, run, true
from crew import LONG_MS, TENREC, Crew, backend, limit, store_of

LIMIT = f"{limit(10000)}ms"


def address_of(puppet):
    host, port = store_of(puppet).removeprefix("tcp://").rsplit(":", 1)
    return host, int(port)


def ping(crew, *args):
    return run(TENREC, "ping", "worker0", "--store", store_of(crew[0]), "--timeout", LIMIT, *args, env=backend())


def well(got):
    equal((got.returncode, got.stderr), (0, ""), "status and errors")


def refused(got, text):
    equal((got.returncode, got.stdout), (1, ""), "status and output")
    contains(one_line(got.stderr), text)


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=60)


def certificate(folder, name, *more):
    """A key of P-256 and a certificate for it."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
            "-subj", f"/CN={name}", "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem", *more)
    os.chmod(f"{folder}/{name}.key", 0o600)


@contextlib.contextmanager
def site():
    """The configuration of mode mtls whose certificate is of an authority of its own."""
    with tempfile.TemporaryDirectory() as folder:
        certificate(folder, "ca")
        certificate(folder, "worker", "-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key",
                    "-addext", "subjectAltName=DNS:worker0,DNS:worker1", "-addext", "basicConstraints=critical,CA:FALSE")
        path = f"{folder}/mtls.yaml"
        with open(path, "w", encoding="ascii") as f:
            f.write("security:\n  mode: mtls\n  store_plain: none\n"
                    "  mtls: { ca: ca.pem, cert: worker.pem, key: worker.key }\n")
        yield path


@contextlib.contextmanager
def shared_secret():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("security: { mode: tls, store_plain: none }\n")
        f.flush()
        yield f.name


def plain_client_is_refused(crew):
    """A request of torch's client: the answer says that this store proves, and no more."""
    with socket.create_connection(address_of(crew[0]), timeout=30) as s:
        s.sendall(bytes.fromhex("00cef7853c0d78563412"))
        answer = b"".join(iter(lambda: s.recv(4096), b""))
    true(answer[:4] == b"TNRP" and len(answer) == 9, f"the answer is {answer}")


def workers_meet_over_tls(config, mode):
    with Crew().run(2, "--config", config) as crew:
        crew.all("init")
        well(ping(crew, "--config", config))
        refused(ping(crew), f"security mode '{mode}'")
        plain_client_is_refused(crew)
        crew.all(f"shutdown graceful {LONG_MS}")
        crew.release()
        status, out, errors = crew.ended()
        equal((status, out), (0, ""), "status and output")
        contains(errors, "closed a connection of 127.0.0.1")


def store_tls_run_meets_in_a_store_over_tls():
    with shared_secret() as config:
        workers_meet_over_tls(config, "tls")


def store_tls_run_with_certificates_meets_in_a_store_over_tls():
    with site() as config:
        workers_meet_over_tls(config, "mtls")


def store_tls_run_with_certificates_serves_other_hosts_without_a_secret():
    with site() as config:
        well(run(TENREC, "run", "-n", "1", "--serve", "0.0.0.0", "--config", config, "true", env=backend()))


def store_tls_run_with_certificates_has_no_use_for_a_secret_file():
    with site() as config:
        key = os.path.dirname(config) + "/job.key"
        well(run(TENREC, "secret", "new", key, env=backend()))
        for args in (["run", "-n", "1", "--config", config, "--secret-file", key, "true"],
                     ["ping", "worker0", "--config", config, "--secret-file", key, "--store", "tcp://127.0.0.1:1"]):
            refused(run(TENREC, *args, env=backend()), "mode 'mtls'")


main(globals(), "store_tls_")
