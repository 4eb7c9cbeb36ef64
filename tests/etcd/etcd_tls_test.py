# SPDX-License-Identifier: Apache-2.0
"""etcd_tls_test.py STORE_TOOL - etcds://. Prints TAP; skips without etcd-server or openssl."""
import ssl

from server import Member, Server, need_server

need_server()

from cases import contains, equal, main, true  # pylint: disable=wrong-import-position
from store_certificates import CA, path  # pylint: disable=wrong-import-position
from tool import Tool  # pylint: disable=wrong-import-position


class TlsServer(Server):
    """A server whose clients speak TLS."""

    def __init__(self, cert="server", clients=False):
        context = ssl.create_default_context(cafile=CA)
        context.check_hostname = False
        context.load_cert_chain(path("worker.pem"), path("worker.key"))
        asks = ["--client-cert-auth", "--trusted-ca-file", CA] if clients else []

        class TlsMember(Member):
            scheme = "https"

            def more(self):
                return ["--cert-file", path(f"{cert}.pem"), "--key-file", path(f"{cert}.key"), *asks]

        TlsMember.context = context
        self.member = TlsMember
        super().__init__()

    def url(self, prefix="test", login="", host="127.0.0.1"):
        return f"etcds://{login}{host}:{self.port}/{prefix}"


def tls_store_is_used_as_any_other():
    with TlsServer() as server, Tool(CA_FILE=CA) as tool, Tool(CA_FILE=CA) as other:
        tool.ok("open", server.url())
        other.ok("open", server.url())
        tool.ok("set", "k", "v" * 300)
        equal(other.ok("get", "k"), "v" * 300)
        tool.tell("wait", "late", 20000)
        other.ok("set", "late", "x")
        equal(tool.hear(), "ok ")
        server.kill()
        server.start()
        equal(other.ok("get", "k"), "v" * 300)


def tls_trusts_the_system_alone_without_a_ca_file():
    with TlsServer() as server, Tool() as tool:
        contains(tool.fails("ECONFIG", "open", server.url()), "certificate is refused")


def tls_refuses_the_certificate_of_another_host():
    with TlsServer(cert="elsewhere") as server, Tool(CA_FILE=CA) as tool:
        contains(tool.fails("ECONFIG", "open", server.url()), "certificate is refused")


def tls_server_may_ask_for_a_certificate():
    with TlsServer(clients=True) as server:
        with Tool(CA_FILE=CA) as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "see the options 'cert_file' and 'key_file'")
        with Tool(CA_FILE=CA, CERT_FILE=path("worker.pem"), KEY_FILE=path("worker.key")) as tool:
            tool.ok("open", server.url())
            tool.ok("set", "k", "v")


def tls_names_the_file_that_cannot_be_used():
    with TlsServer() as server:
        with Tool(CA_FILE="/nowhere/ca.pem") as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "/nowhere/ca.pem")
        with Tool(CA_FILE=CA, CERT_FILE=path("worker.pem"), KEY_FILE=path("ca.key")) as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "'key_file'")
        with Tool(CERT_FILE=path("worker.pem")) as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "option 'cert_file' is set, but no 'key_file'")


def tls_and_plain_ports_are_told_apart():
    with Server() as server, Tool() as tool:
        # The plain port waits for the end of a line, or closes the connection.
        line = tool.ask("open", server.url().replace("etcd:", "etcds:"), 500)
        true(line.startswith(("error ETIMEDOUT: ", "error EPEER_LOST: ")), line)
    with TlsServer() as server, Tool() as tool:
        line = tool.ask("open", server.url().replace("etcds:", "etcd:"), 500)
        true(line.startswith("error "), "a TLS port answered a plain client")


main(globals(), "tls_")
