# SPDX-License-Identifier: Apache-2.0
"""client_test.py - openssl's s_client at the port of a worker, in the modes tls and mtls."""
import os
import socket

from cases import contains, equal, main, true, until
from foreign import (HOST, SECRET, Client, certified, counter, end, group, make_files, path, port_of, psk)
import proof

make_files()
GARBAGE = b"x" * 300 + b"\n"
TLS13 = "-tls1_3"


def records(client):
    """The records of the proof that the worker has sent."""
    found, at = [], client.said().find(proof.MAGIC)
    while at >= 0 and (one := proof.first(client.said()[at:])):
        found.append(one)
        at = client.said().find(proof.MAGIC, at + len(one[1]))
    return found


def hears(client, n):
    """The n-th record."""
    until(lambda: len(records(client)) >= n, f"record {n} of the worker")
    return records(client)[n - 1]


def refused(crew, *options, alert=None):
    """s_client gets no connection: the worker refuses it before the proof, and counts it."""
    before = counter(crew, "proofs_refused")
    with Client(port_of(crew, 0), *options) as client:
        text = client.ends()
        true("Keying material: " not in text, text)
        if alert:
            contains(text, alert)
    until(lambda: counter(crew, "proofs_refused") == before + 1, "the count of a refusal")
    equal((counter(crew, "proofs"), counter(crew, "hellos")), (0, 0), "proofs and hellos of strangers")


def proves(client, secret, update=lambda _: None):
    """The whole proof, with a change of keys before each record."""
    dialler = proof.Dialler(secret, b"worker0", client.connected())
    update(b"k")
    client.send(dialler.hello)
    kind, challenge = hears(client, 1)
    equal(kind, proof.CHALLENGE, "the first record")
    true(dialler.checks(b"tenrec proof: right listener", challenge), "the worker's mac is another")
    update(b"K")
    client.send(dialler.answer())
    kind, accepted = hears(client, 2)
    equal(kind, proof.ACCEPTED, "the second record")
    true(dialler.checks(b"tenrec proof: accepted", accepted), "the mac of the acceptance is another")
    contains(accepted, b"worker0")


def one_proof(crew):
    until(lambda: counter(crew, "proofs") == 1, "the count of a proof")
    equal((counter(crew, "proofs_refused"), counter(crew, "hellos")), (0, 0), "refusals and hellos")


# ---- by the group secret ------------------------------------------------------------

def client_shakes_hands_by_the_documented_key_and_proves_the_secret():
    with group("tls") as crew, Client(port_of(crew, 0), TLS13, *psk()) as client:
        proves(client, SECRET)
        said = client.said()
        contains(said, b"no peer certificate available")
        contains(said, b"Reused, TLSv1.3, Cipher is")  # so it calls a handshake by a key
        one_proof(crew)
        end(crew)


def client_is_met_with_either_cipher_of_a_128_bit_key_or_chacha():
    with group("tls") as crew:
        for cipher in (b"TLS_AES_128_GCM_SHA256", b"TLS_CHACHA20_POLY1305_SHA256"):
            with Client(port_of(crew, 0), TLS13, "-ciphersuites", cipher.decode(), *psk()) as client:
                client.connected()
                contains(client.said(), b"TLSv1.3, Cipher is " + cipher + b"\n")
        refused(crew, TLS13, "-ciphersuites", "TLS_AES_256_GCM_SHA384", *psk(), alert="alert")
        end(crew, "gave no proof of the group secret")


def client_with_another_key_is_refused():
    with group("tls") as crew:
        refused(crew, TLS13, *psk(key="00" * 32), alert="alert")
        end(crew, "has another group secret")


def client_with_the_secret_itself_as_key_is_refused():
    with group("tls") as crew:
        refused(crew, TLS13, *psk(key=SECRET.hex()), alert="alert")
        end(crew, "has another group secret")


def client_of_another_identity_is_refused():
    with group("tls") as crew:
        refused(crew, TLS13, *psk(identity="tenrec 2"), alert="alert")
        end(crew, "gave no proof of the group secret")


def client_without_a_key_is_refused():
    with group("tls") as crew:
        refused(crew, TLS13, alert="alert")
        end(crew, "gave no proof of the group secret")


def client_with_a_certificate_is_refused_where_the_secret_is_asked_for():
    with group("tls") as crew:
        refused(crew, TLS13, *certified("worker1"), alert="alert")
        end(crew, "gave no proof of the group secret")


def client_of_tls_1_2_is_refused():
    with group("tls") as crew:
        refused(crew, "-tls1_2", *psk(), alert="alert protocol version")
        end(crew, "unsupported protocol")


def garbage(crew, *options):
    """Behind a handshake that went well, in place of the proof."""
    before = counter(crew, "proofs_refused")
    with Client(port_of(crew, 0), TLS13, *options) as client:
        client.connected()
        client.send(GARBAGE)
        client.ends()
    until(lambda: counter(crew, "proofs_refused") == before + 1, "the count of a refusal")
    equal((counter(crew, "proofs"), counter(crew, "hellos")), (0, 0), "proofs and hellos of strangers")


def client_that_sends_garbage_in_place_of_a_proof_is_refused():
    with group("tls") as crew:
        garbage(crew, *psk())
        end(crew, "the other side began no proof")


def client_that_sends_garbage_behind_its_proof_is_closed():
    with group("tls") as crew, Client(port_of(crew, 0), TLS13, *psk()) as client:
        proves(client, SECRET)
        client.send(GARBAGE)
        client.ends()
        one_proof(crew)
        end(crew, "a hello of 8680820740569200760 bytes")


def client_whose_proof_is_of_another_connection_is_refused():
    """The same bytes with the binding of another connection, as a process between two others has it."""
    with group("tls") as crew, Client(port_of(crew, 0), TLS13, *psk()) as client:
        client.connected()
        dialler = proof.Dialler(SECRET, b"worker0", os.urandom(32))
        client.send(dialler.hello)
        _, challenge = hears(client, 1)
        true(not dialler.checks(b"tenrec proof: right listener", challenge), "the worker's mac is bound to nothing")
        client.send(dialler.answer())
        equal(hears(client, 2)[0], proof.REFUSED, "the second record")
        client.ends()
        equal((counter(crew, "proofs"), counter(crew, "hellos")), (0, 0), "proofs and hellos")
        end(crew, "has another group secret")


def client_that_changes_keys_during_its_proof_is_accepted():
    with group("tls") as crew, Client(port_of(crew, 0), TLS13, *psk()) as client:
        proves(client, SECRET, client.change_keys)
        one_proof(crew)
        end(crew)


# ---- by certificates ----------------------------------------------------------------

def client_with_a_certificate_proves_itself():
    with group("mtls") as crew, Client(port_of(crew, 0), TLS13, *certified("worker1")) as client:
        proves(client, client.connected(), client.change_keys)
        contains(client.said(), b"Verify return code: 0 (ok)")
        one_proof(crew)
        end(crew)


def refused_certificate(name, told, alert):
    with group("mtls") as crew:
        # A client's handshake of TLS 1.3 is over before the listener has read its certificate.
        before = counter(crew, "proofs_refused")
        with Client(port_of(crew, 0), TLS13, *(certified(name) if name else ["-CAfile", path("ours.pem")])) as client:
            contains(client.ends(), alert)
        until(lambda: counter(crew, "proofs_refused") == before + 1, "the count of a refusal")
        equal((counter(crew, "proofs"), counter(crew, "hellos")), (0, 0), "proofs and hellos of strangers")
        end(crew, told)


def client_with_an_expired_certificate_is_refused():
    refused_certificate("expired", "certificate is refused: certificate has expired", "alert certificate expired")


def client_with_a_certificate_of_another_authority_is_refused():
    refused_certificate("stranger", "certificate is refused: unable to get local issuer certificate",
                        "alert unknown ca")


def client_without_a_certificate_is_refused():
    refused_certificate(None, "gave no certificate", "alert certificate required")


def client_with_the_group_secret_is_refused_where_certificates_are_asked_for():
    with group("mtls") as crew:
        before = counter(crew, "proofs_refused")
        with Client(port_of(crew, 0), TLS13, *psk()) as client:
            client.ends()
        until(lambda: counter(crew, "proofs_refused") == before + 1, "the count of a refusal")
        end(crew, "gave no certificate")


def client_with_a_certificate_that_sends_garbage_is_refused():
    with group("mtls") as crew:
        garbage(crew, *certified("worker1"))
        end(crew, "the other side began no proof")


# ---- bytes that no TLS has --------------------------------------------------------------
# A renegotiation cannot be tried: TLS 1.3 has none, and nothing older is spoken here.

def closed(crew, data, told):
    before = counter(crew, "proofs_refused")
    with socket.create_connection((HOST, port_of(crew, 0)), 60) as s:
        s.sendall(data)
        try:
            while s.recv(4096):
                pass
        except ConnectionError:
            pass
    until(lambda: counter(crew, "proofs_refused") == before + 1, "the count of a refusal")
    equal(counter(crew, "hellos"), 0, "hellos of strangers")
    end(crew, told)


def client_whose_record_is_longer_than_allowed_is_closed():
    with group("tls") as crew:
        closed(crew, b"\x16\x03\x01\xff\xff" + bytes(65535), "speaks no TLS as expected")


def client_that_sends_the_hello_of_a_server_is_closed():
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x13\x01" + b"\x00" + b"\x00\x06" + b"\x00\x2b\x00\x02\x03\x04"
    message = b"\x02" + len(body).to_bytes(3, "big") + body
    with group("tls") as crew:
        closed(crew, b"\x16\x03\x03" + len(message).to_bytes(2, "big") + message, "speaks no TLS as expected")


def client_that_sends_empty_records_is_closed():
    with group("tls") as crew:
        closed(crew, b"\x16\x03\x01\x00\x00" * 1000, "speaks no TLS as expected")


def client_that_stops_in_its_handshake_disturbs_no_member():
    """Ten of them stay, at a tenth of the first flight each and with more behind it."""
    with group("tls", TENREC_BACKENDS__TENSORPIPE__HELLO_TIMEOUT="1h") as crew:
        port = port_of(crew, 0)
        hello = first_flight()
        stopped = [socket.create_connection((HOST, port), 60) for _ in range(10)]
        for i, s in enumerate(stopped):
            s.sendall(hello[:len(hello) * (i + 1) // 10])
        for _ in range(3):
            equal(set(crew.all("exchange 2")), {"12"}, "calls")
        true(stopped[-1].recv(1) == b"\x16", "the worker does not answer a whole flight")
        for s in stopped[:-1]:
            s.setblocking(False)
            try:
                true(s.recv(1) == b"never", "a connection has ended")
            except BlockingIOError:
                pass
        equal(counter(crew, "hellos"), int(crew[0].do("info tensorpipe.proofs")), "hellos of strangers")
        for s in stopped:
            s.close()
        end(crew)


def first_flight():
    """The bytes with which s_client begins."""
    with socket.create_server((HOST, 0)) as listener:
        with Client(listener.getsockname()[1], TLS13, *psk()):
            s, _ = listener.accept()
            with s:
                head = s.recv(5, socket.MSG_WAITALL)
                return head + s.recv(int.from_bytes(head[3:], "big"), socket.MSG_WAITALL)


main(globals(), "client_")
