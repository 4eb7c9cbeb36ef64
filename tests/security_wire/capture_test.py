# SPDX-License-Identifier: Apache-2.0
"""capture_test.py - what a stranger with a tap on the wire can read of calls and tensors, in each mode."""
import struct

from cases import equal, main, true
from capture import Capture
from crew import LONG_MS
from foreign import counter, end, group, make_files, port_of

make_files()
MARKER = "tigerbeetle-4711"
NUMBERS = 300000  # beyond what goes with the message itself
PART = struct.pack("<6f", *(float(i * 7) for i in range(1000, 1006)))  # of the tensor of a puppet
ANSWER = struct.pack("<6f", *(float(i * 14) for i in range(1000, 1006)))
NAMES = [b"worker0", b"worker1", b"echo", b"scale"]
HANDSHAKE, ALERT, DATA, CHANGE_CIPHER = 22, 21, 23, 20


def captured(mode, **more):
    """What goes over the wire while two workers exchange the markers, from the first byte of their connections to
    the last."""
    with group(mode, **more) as crew:
        with Capture(port_of(crew, 0), port_of(crew, 1)) as capture:
            for a, b in ((0, 1), (1, 0)):
                equal(crew[a].do(f"call worker{b} echo {LONG_MS} {MARKER}"), MARKER)
                equal(crew[a].do(f"tensor worker{b} {LONG_MS} {NUMBERS}"), str(NUMBERS))
            end(crew)
    true(len(capture.all()) > 2 * 2 * 4 * NUMBERS, f"only {len(capture.all())} bytes were captured")
    return capture


def reads(mode):
    capture = captured(mode)
    for what in (MARKER.encode(), PART, ANSWER, *NAMES):
        true(what in capture.all(), f"{what} is not in the bytes of mode {mode}")


def reads_nothing(mode, **more):
    capture = captured(mode, **more)
    for what in (MARKER.encode(), PART, ANSWER, *NAMES, b"TNRP"):
        true(what not in capture.all(), f"{what} is in the bytes of mode {mode}")
    for stream in capture.streams:
        kinds = list(records(stream))
        equal(kinds[0], HANDSHAKE, "the first record")
        true(set(kinds) <= {HANDSHAKE, CHANGE_CIPHER, DATA}, f"records are of the kinds {set(kinds)}")
        # The hello of each side, and with it all that is not encrypted, is one record.
        equal(kinds.count(HANDSHAKE), 1, "records before the encryption")


def records(stream):
    """The kinds of its records, which must be all that there is."""
    at = 0
    while at < len(stream):
        kind, version, size = struct.unpack_from("!BHH", stream, at)
        true(version in (0x0301, 0x0303) and size <= (1 << 14) + 256 and at + 5 + size <= len(stream),
             f"no record of TLS at byte {at} of {len(stream)}: {stream[at:at + 5].hex()}")
        yield kind
        at += 5 + size


def capture_reads_calls_and_tensors_in_mode_none():
    reads("none")


def capture_reads_calls_and_tensors_in_mode_secret_which_encrypts_nothing():
    reads("secret")


def capture_reads_nothing_in_mode_tls():
    reads_nothing("tls")


def capture_reads_nothing_of_tensors_over_lanes_in_mode_tls():
    reads_nothing("tls", TENREC_BACKENDS__TENSORPIPE__LANES="4")


def capture_reads_nothing_in_mode_mtls():
    reads_nothing("mtls")


main(globals(), "capture_")
