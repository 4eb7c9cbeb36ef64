# SPDX-License-Identifier: Apache-2.0
"""broken_test.py TENREC - `tenrec conformance` names the rule that a broken plugin breaks, and lives on.

Each fault of broken.c has a case that must see it, and the rule that the case must name."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from cases import contains, equal, run_cases, true
from faults import LIMIT, sees
from faults import conformance as run_conformance
from faults import with_config as run_with_config

TENREC = sys.argv[1]
# fault: (case, its rule, a part of its text)
FAULTS = {
    "type": ("types_and_ids_are_untouched", "AG-10", "the type of request 0 is"),
    "id": ("types_and_ids_are_untouched", "AG-10", "the id of request 0 is 1, expected 0"),
    "straying": ("its_file_exports_no_other_symbol", "PL-1", "exports the symbol 'helper_of_mine', expected tenrec_plugin"),
    "key": ("key_and_deadline_are_kept_or_dropped", "AG-10", "key_len of the request that is sent inwards is 0, expected 4"),
    "deadline": ("key_and_deadline_are_kept_or_dropped", "AG-10", "deadline_ns of the request that is sent inwards is 0, expected"),
    "payload": ("payloads_of_all_sizes_arrive", "AG-10", "payload 1 has other bytes than were sent, from byte 0 of 1 on"),
    "length": ("payloads_of_all_sizes_arrive", "AG-10", "the length of payload 1 is 0, expected 1"),
    "route": ("an_answer_without_a_way_back_is_dropped", "AG-10", "the id of the next answer is 1, expected 3"),
    "shape": ("tensors_keep_all_their_fields", "AG-10", "shape[0] of tensor 0 is"),
    "flags": ("tensors_keep_all_their_fields", "AG-10", "'flags' of tensor 0 is"),
    "offset": ("tensors_keep_all_their_fields", "AG-10", "'byte_offset' of tensor 0 is"),
    "crash": ("send_delivers_both_ways", "AG-10", "killed by signal 6"),
    "exit": ("send_delivers_both_ways", "AG-10", "ended with exit status 0"),
    "hang": ("send_delivers_both_ways", "AG-10", "did not end within"),
    "peer": ("send_delivers_both_ways", "AG-10", "worker1 has received 0 messages after"),
    "done twice": ("done_and_release_come_exactly_once", "AG-4", "the number of sends that succeeded is 1000, expected 500"),
    "done never": ("done_and_release_come_exactly_once", "AG-4", "the number of sends that succeeded is 0, expected 500"),
    "log": ("a_send_to_oneself_arrives", "AG-10", "something is wrong"),
    "unknown peer": ("an_unknown_peer_is_an_error", "AG-4", "the send to an unknown peer has not failed, after"),
    "lost": ("many_threads_may_send_at_once", "AG-2", "has received"),
    "kept": ("done_and_release_come_exactly_once", "AG-10", "worker1 has received 0 of 500 messages, after"),
    "sender": ("send_delivers_both_ways", "AG-10", "the sender, as deliver names it, is 9, expected 0"),
    "order": ("types_and_ids_are_untouched", "AG-10", "the type of request 0 is"),
    "answer": ("an_answer_finds_its_way_back", "AG-10", "worker0 has received 0 messages after"),
    "poll": ("poll_brings_the_answer_or_is_unsupported", "AG-13", "poll ends before its deadline"),
    "disconnect": ("a_send_after_disconnect_connects_again", "AG-15", "not today"),
    "refusal": ("an_address_without_a_listener_refuses", "AG-37", "os_errno of the failed send (expected ECONNREFUSED) is 0"),
    "drain": ("done_and_release_come_exactly_once", "AG-16", "never done"),
    "start": ("it_starts_and_ends", "AG-8", "no line"),
    "debug twice": ("debug_info_names_its_link", "AG-19", "is listed twice"),
    "debug null": ("debug_info_names_its_link", "AG-19", "the value of 'broken.key' is NULL"),
    "shutdown crashes": ("it_starts_and_ends", "AG-17", "killed by signal 6"),
    "shutdown hangs": ("it_starts_and_ends", "AG-17", "did not end within"),
    "resume": ("requests_wait_while_the_user_takes_no_request", "AG-14", "worker1 has received 1 messages after"),
    "accepts": ("requests_wait_while_the_user_takes_no_request", "AG-27", "while the user takes no request (expected the answer, TENREC_MSG_RET) is 258, expected 515"),
    "foreign": ("send_delivers_both_ways", "AG-24", "host->msg_new did not make"),
    "place": ("large_tensors_land_where_the_receiver_says", "AG-26", "the tensor does not arrive in the memory that place gave"),
    "released early": ("memory_of_a_released_message_is_not_read", "AG-40", "changed by its sender when it was released"),
    "written late": ("memory_of_a_delivered_message_is_not_written", "AG-41", "the memory of the delivered tensor"),
    "placed twice": ("large_tensors_land_where_the_receiver_says", "AG-26", "place was called 2 times"),
    "lost twice": ("a_send_after_disconnect_connects_again", "AG-28", "the number of calls of peer_lost is 2, expected 1"),
    "caller lost": ("a_caller_that_shuts_down_is_lost", "AG-29", "the number of calls of caller_lost before the end of the caller is 1, expected 0"),
    "thread": ("it_starts_and_ends", "AG-17", "threads run after the end"),
    "descriptor": ("it_starts_and_ends", "AG-18", "descriptors are open after the end"),
    "destroy": ("it_starts_and_ends", "AG-18", "killed by signal 6"),
}
if os.environ.get("TENREC_TEST_SANITIZED") != "1":  # whose allocator does not count; it reports leaks itself
    FAULTS["memory"] = ("destroy_leaves_nothing", "AG-18", "memory in use grows")


def conformance(*args):
    return run_conformance(TENREC, *args)


def with_config(breaks, *args):
    plugin = "straying" if breaks == "straying" else "broken"
    return run_with_config(TENREC, "backend: broken\nbackends:\n  inproc: { plugin: inproc }\n"
                           f"  broken: {{ plugin: {plugin}, wraps: inproc, options: {{ breaks: '{breaks}' }} }}\n", *args)


def conformance_passes_the_wrapper_that_breaks_nothing():
    done = with_config("")
    equal(done.returncode, 0, done.stdout)
    contains(done.stdout, "0 failed")


def conformance_stops_at_a_backend_that_does_not_start():
    done = with_config("start", "--limit", LIMIT)
    equal(done.returncode, 1, "status")
    contains(done.stdout, "the other cases were not run")
    contains(done.stdout, "0 passed, 1 failed")


def conformance_breaks_no_rule_without_a_backend():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "none.yaml")
        for text, said in (("backend: x\nbackends: { x: { plugin: no_such_plugin } }\n", "no plugin 'no_such_plugin'"),
                           ("backend: x\nbackends: { x: { plugin: inproc, options: { nme: 1 } } }\n", "has no option 'nme'"),
                           ("backend: x\nbackends: { x: { plugin: broken } }\n", "wraps")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            done = conformance(path)
            equal(done.returncode, 1, "status")
            equal(done.stdout, "")
            contains(done.stderr, said)


def conformance_goes_on_after_a_crash():
    done = with_config("crash", "--limit", LIMIT)
    equal(done.returncode, 1, "status")
    true("killed by signal 6" in done.stdout and "ok          it_starts_and_ends" in done.stdout, done.stdout)
    contains(done.stdout, "rules broken:")


def conformance_explains_a_case_by_its_rules_and_its_source():
    done = conformance("--explain", "a_send_after_disconnect_connects_again")
    equal(done.returncode, 0, done.stderr)
    for part in ("  AG-15\n    Drop the connection to `peer`", "    Calls to a worker that left wait until their timeout.", "lose.c:",
                 '\n    CASE_OF_TWO(a_send_after_disconnect_connects_again, "AG-15 AG-28")\n    {\n'):
        contains(done.stdout, part)
    true(done.stdout.endswith("\n    }\n"), done.stdout)
    equal(done.stdout.count("CASE_OF_TWO"), 1)
    contains(conformance("--explain", "a_send_after_disconnect_connect").stderr, "did you mean 'a_send_after_disconnect_connects_again'?")


def conformance_says_what_is_wrong_with_its_arguments():
    for args, text in ((["--case", "it_starts_and_end", "x.yaml"], "did you mean 'it_starts_and_ends'?"),
                       ([], "expected a configuration, a plugin or the URL of a store"),
                       (["a.yaml", "b.yaml"], "expected one configuration or plugin"),
                       (["memory://x", "a.yaml", "tcp://y"], "two URLs: expected one configuration or plugin, and at most one URL"),
                       (["--case", "it_starts_and_ends", "memory://x"], "is of agents"),
                       (["--case", "it_opens_and_closes", "x.yaml"], "is of stores: give the URL of one"),
                       (["--workers", "1", "--case", "processes_see_what_others_have_done", "memory://x"], "needs two processes"),
                       (["--security", "secret", "memory://x"], "--security is for backends"),
                       (["nowhere://x"], "no plugin 'nowhere'"),
                       (["file:///no/such/folder/store"], "/no/such/folder/store"),
                       (["--around", "echo", "memory://x"], "--around is for a plugin"),
                       (["--around", "echo", "x.yaml"], "--around is for a plugin"),
                       (["none.so"], "cannot read none.so"),
                       (["none.yaml"], "cannot read the configuration 'none.yaml'")):
        done = conformance(*args)
        true(done.returncode != 0, args)
        contains(done.stderr, text)


CASES = [sees(fault, expected, lambda *args, fault=fault: with_config(fault, *args)) for fault, expected in FAULTS.items()]
CASES += [conformance_passes_the_wrapper_that_breaks_nothing, conformance_stops_at_a_backend_that_does_not_start, conformance_breaks_no_rule_without_a_backend,
          conformance_goes_on_after_a_crash, conformance_explains_a_case_by_its_rules_and_its_source,
          conformance_says_what_is_wrong_with_its_arguments]
sys.exit(1 if run_cases(CASES) else 0)
