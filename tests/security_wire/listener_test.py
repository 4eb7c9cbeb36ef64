# SPDX-License-Identifier: Apache-2.0
"""listener_test.py - openssl's s_server at the address of a member, in the modes tls and mtls: the worker
that calls this member fails with a text, and waits for nothing."""
import contextlib
import signal
import socket
import time

from cases import contains, equal, main, true
from crew import LONG_MS, limit, within
from foreign import (HOST, Server, certified, group, make_files, port_of, psk)

make_files()
GARBAGE = b"x" * 300 + b"\n"
TLS13 = "-tls1_3"
MUTUAL = ["-Verify", "1"]
WAIT = {"TENREC_BACKENDS__TENSORPIPE__HANDSHAKE_TIMEOUT": f"{limit(700)}ms"}


@contextlib.contextmanager
def abandoned(mode, **more):
    """A group of which member 1 is dead, and the port in its record."""
    with group(mode, **more) as crew:
        port = port_of(crew, 1)
        crew[1].send_signal(signal.SIGKILL)
        crew.ended(crew.processes[1])
        yield crew, port


def call_fails(crew, code, told):
    got, worker, text = crew[0].fails(f"call worker1 echo {LONG_MS} x")
    equal((got, worker), (code, "worker1"), text)
    contains(text, told)
    equal(crew[0].do(f"call worker0 echo {LONG_MS} x"), "x")


def fails_at(mode, options, code, told):
    with abandoned(mode) as (crew, port), Server(port, TLS13, *options):
        call_fails(crew, code, told)
        call_fails(crew, code, told)  # no other way is tried the second time


# ---- by the group secret ------------------------------------------------------------

def listener_with_another_key_is_refused():
    fails_at("tls", ["-nocert", *psk(key="00" * 32)], "EPERM", "has another group secret")


def listener_without_a_key_is_refused():
    fails_at("tls", ["-nocert"], "EPERM", "speaks no TLS 1.3")


def listener_with_a_certificate_is_refused_where_the_secret_is_asked_for():
    fails_at("tls", certified("worker1"), "EPERM", "the other side")


def listener_of_tls_1_2_is_refused():
    with abandoned("tls") as (crew, port), Server(port, "-tls1_2", "-nocert", *psk()):
        call_fails(crew, "EPERM", "speaks no TLS 1.3")


def listener_that_sends_garbage_in_place_of_a_proof_is_refused():
    with abandoned("tls") as (crew, port), Server(port, TLS13, "-nocert", *psk()) as server:
        crew[0].say(f"call worker1 echo {LONG_MS} x")
        server.has_said(b"TNRP")  # the record in which the worker says its name
        server.send(GARBAGE)
        code, _, text = crew[0].badly()
        equal(code, "EPROTOCOL", text)
        contains(text, "malformed proof")


def listener_that_changes_keys_and_then_sends_garbage_is_refused():
    with abandoned("tls") as (crew, port), Server(port, TLS13, "-nocert", *psk()) as server:
        crew[0].say(f"call worker1 echo {LONG_MS} x")
        server.has_said(b"TNRP")
        server.send(b"K\n")
        server.send(GARBAGE)
        code, _, text = crew[0].badly()
        equal(code, "EPROTOCOL", text)


def listener_that_changes_keys_for_ever_is_given_up():
    """The worker serves others in between."""
    with abandoned("tls", n=3) as (crew, port), Server(port, TLS13, "-naccept", "1", "-nocert", *psk()) as server:
        crew[0].do(f"start worker1 echo {LONG_MS} x")
        server.has_said(b"TNRP")
        changes = 0
        while server.process.poll() is None:
            server.send(b"k\n")
            changes += 1
            if changes % 500 == 0:
                equal(crew[2].do(f"call worker0 echo {LONG_MS} x"), "x")
        true(changes > 1000, f"it ended after {changes} changes")
        code, _, text = crew[0].fails("await")
        equal(code, "EPERM", text)
        contains(text, "bytes of TLS without data")


def listener_that_ends_in_place_of_a_proof_is_a_lost_connection():
    with abandoned("tls") as (crew, port), Server(port, TLS13, "-nocert", *psk()) as server:
        crew[0].say(f"call worker1 echo {LONG_MS} x")
        server.has_said(b"TNRP")
        server.send(b"Q\n")
        code, worker, text = crew[0].badly()
        equal((code, worker), ("ECONNECT", "worker1"), text)


def listener_that_proves_nothing_is_waited_for_no_longer_than_the_limit():
    with abandoned("tls", **WAIT) as (crew, port), Server(port, TLS13, "-nocert", *psk()) as server:
        since = time.monotonic()
        crew[0].say(f"call worker1 echo {LONG_MS} x")
        server.has_said(b"TNRP")
        code, worker, text = crew[0].badly()
        within(since, time.monotonic(), 10, "a call")
        equal((code, worker), ("ECONNECT", "worker1"), text)


def listener_that_never_answers_the_handshake_is_waited_for_no_longer_than_the_limit():
    with abandoned("tls", **WAIT) as (crew, port), socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((HOST, port))
        s.listen()
        since = time.monotonic()
        code, worker, text = crew[0].fails(f"call worker1 echo {LONG_MS} x")
        within(since, time.monotonic(), 10, "a call")
        equal((code, worker), ("ECONNECT", "worker1"), text)


# ---- by certificates ----------------------------------------------------------------

def listener_of_another_authority_is_refused():
    fails_at("mtls", certified("stranger"), "EPERM", "the other side's certificate is refused")


def listener_with_an_expired_certificate_is_refused():
    fails_at("mtls", certified("expired"), "EPERM", "certificate has expired")


def listener_with_the_certificate_of_another_name_is_refused():
    fails_at("mtls", certified("another"), "EPERM", "is for 'worker7', not for 'worker1'")


def listener_that_asks_for_no_certificate_learns_nothing():
    with abandoned("mtls") as (crew, port), Server(port, TLS13, *certified("another")) as server:
        call_fails(crew, "EPERM", "not for 'worker1'")
        for told in (b"TNRP", b"worker0"):
            equal(server.said().count(told), 0, f"{told} at the listener")


def listener_with_the_group_secret_is_refused_where_certificates_are_asked_for():
    fails_at("mtls", ["-nocert", *psk()], "EPERM", "the other side demands another certificate")


def listener_with_a_certificate_that_sends_garbage_is_refused():
    with abandoned("mtls") as (crew, port), Server(port, TLS13, *certified("worker1"), *MUTUAL) as server:
        crew[0].say(f"call worker1 echo {LONG_MS} x")
        server.has_said(b"TNRP")
        contains(server.said(), b"CN = worker0")
        server.send(GARBAGE)
        code, _, text = crew[0].badly()
        equal(code, "EPROTOCOL", text)


main(globals(), "listener_")
