# SPDX-License-Identifier: Apache-2.0
"""redis_tls_test.py STORE_TOOL - rediss://, and a password in a file. The certificates are made by
openssl. Prints TAP; skips without redis-server or openssl."""
import os

from server import Server, need_server

need_server()

from cases import Skipped, contains, equal, main, true  # pylint: disable=wrong-import-position
from store_certificates import CA, path  # pylint: disable=wrong-import-position
from tool import Tool  # pylint: disable=wrong-import-position

class TlsServer(Server):
    """A server that only speaks TLS."""

    def __init__(self, *options, cert="server", clients="no"):
        self.cert, self.clients = cert, clients
        super().__init__(*options)

    def more(self):
        return ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", self.clients,
                "--tls-cert-file", path(f"{self.cert}.pem"), "--tls-key-file",
                path(f"{self.cert}.key"), "--tls-ca-cert-file", CA, *self.options]

    def url(self, prefix="test", login="", host="127.0.0.1"):
        return f"rediss://{login}{host}:{self.port}/{prefix}"


def tls_store_is_used_as_any_other():
    with TlsServer() as server, Tool(CA_FILE=CA) as tool, Tool(CA_FILE=CA) as other:
        tool.ok("open", server.url())
        other.ok("open", server.url())
        tool.ok("set", "k", "v" * 300)
        equal(other.ok("get", "k"), "v" * 300)
        for i in range(1, 20):
            equal(other.ok("add", "n", 1), str(i))
        tool.tell("wait", "late", 20000)
        other.ok("set", "late", "x")
        equal(tool.hear(), "ok ")


def tls_store_is_found_again_after_a_restart():
    with TlsServer("--appendonly", "yes", "--appendfsync", "always") as server, \
            Tool(CA_FILE=CA) as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        server.kill()
        server.start()
        equal(tool.ok("get", "k"), "v")


def tls_refuses_a_certificate_of_another_signer():
    with TlsServer() as server, Tool(CA_FILE=path("stranger.pem")) as tool:
        line = tool.fails("ECONFIG", "open", server.url())
        contains(line, "the server's certificate is refused")
        contains(line, "'ca_file'")


def tls_trusts_the_system_alone_without_a_ca_file():
    with TlsServer() as server, Tool() as tool:
        contains(tool.fails("ECONFIG", "open", server.url()), "certificate is refused")


def tls_refuses_the_certificate_of_another_host():
    with TlsServer(cert="elsewhere") as server, Tool(CA_FILE=CA) as tool:
        contains(tool.fails("ECONFIG", "open", server.url()), "IP address mismatch")


def need_names():
    if os.environ.get("TENREC_TEST_NO_NAMES"):
        raise Skipped("the C library looks names up on threads that ThreadSanitizer does not know")


def tls_store_is_found_by_the_name_of_its_host():
    need_names()
    with TlsServer() as server, Tool(CA_FILE=CA) as tool:
        tool.ok("open", server.url(host="localhost"))


def tls_refuses_the_certificate_of_another_name():
    need_names()
    with TlsServer(cert="elsewhere") as server, Tool(CA_FILE=CA) as tool:
        contains(tool.fails("ECONFIG", "open", server.url(host="localhost")), "hostname mismatch")


def tls_server_may_ask_for_a_certificate():
    with TlsServer(clients="yes") as server:
        with Tool(CA_FILE=CA) as tool:
            contains(tool.fails("ECONFIG", "open", server.url()),
                     "asks for a certificate: see the options 'cert_file' and 'key_file'")
        with Tool(CA_FILE=CA, CERT_FILE=path("worker.pem"), KEY_FILE=path("worker.key")) as tool:
            tool.ok("open", server.url())
            tool.ok("set", "k", "v")


def tls_names_the_file_that_cannot_be_used():
    with Tool(CA_FILE="/nowhere/ca.pem") as tool:
        contains(tool.fails("ECONFIG", "open", "rediss://127.0.0.1:1"), "/nowhere/ca.pem")
    with Tool(CERT_FILE=path("worker.pem"), KEY_FILE=path("ca.key")) as tool:
        contains(tool.fails("ECONFIG", "open", "rediss://127.0.0.1:1"), path("ca.key"))
    with Tool(CERT_FILE=path("worker.pem")) as tool:
        contains(tool.fails("ECONFIG", "open", "rediss://127.0.0.1:1"),
                 "option 'cert_file' is set, but no 'key_file'")


def tls_and_plain_ports_are_told_apart():
    with Server() as server, Tool() as tool:
        # The plain port waits for the end of a line.
        tool.fails("ETIMEDOUT", "open", server.url().replace("redis:", "rediss:"), 500)
    with TlsServer() as server, Tool() as tool:
        tool.tell("open", server.url().replace("rediss:", "redis:"), 500)
        true(tool.hear().startswith("error "), "a TLS port answered a plain client")


def tls_open_ends_at_its_deadline_when_the_server_is_silent():
    with TlsServer() as server, Tool(CA_FILE=CA) as tool:
        server.stop()
        tool.fails("ETIMEDOUT", "open", server.url(), 300)
        server.go_on()


def password_is_read_from_a_file():
    file = path("password")
    with open(file, "w", encoding="ascii") as f:
        f.write("s3cret\n")
    os.chmod(file, 0o600)
    with TlsServer("--requirepass", "s3cret") as server:
        with Tool(CA_FILE=CA, PASSWORD_FILE=file) as tool:
            tool.ok("open", server.url())
        with Tool(CA_FILE=CA, PASSWORD_FILE=file, USER="default") as tool:
            tool.ok("open", server.url())
        with Tool(CA_FILE=CA, PASSWORD_FILE=file, PASSWORD="other") as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "exclude each other")
        os.chmod(file, 0o640)
        with Tool(CA_FILE=CA, PASSWORD_FILE=file) as tool:
            line = tool.fails("ECONFIG", "open", server.url())
            contains(line, "is open to other users: chmod 600 it")
            true("s3cret" not in line, "the password is printed")
            contains(line, file)
        with Tool(CA_FILE=CA, PASSWORD_FILE=path("nothing")) as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "cannot open 'password_file'")


main(globals(), ("tls_", "password_"))
