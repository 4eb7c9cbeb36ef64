# SPDX-License-Identifier: Apache-2.0
"""broken_store_test.py TENREC - `tenrec conformance` names the rule that a broken store breaks.

Each fault of broken_store.c has a case that must see it, and the rule that the case must name."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from cases import contains, equal, run_cases
from faults import conformance as run_conformance
from faults import sees

TENREC = sys.argv[1]
# fault: (case, its rule, a part of its text)
FAULTS = {
    "apart": ("clients_see_what_others_have_done", "ST-2", "no key"),
    "large values": ("values_of_all_bytes_and_sizes_are_kept", "ST-2", "has 100000 bytes, expected 1048576"),
    "binary values": ("values_of_all_bytes_and_sizes_are_kept", "ST-2", "has 0 bytes, expected 1"),
    "long keys": ("keys_are_told_apart", "ST-2", "no key"),
    "serial": ("a_waiting_operation_blocks_no_other", "ST-3", "no key"),
    "add is atomic": ("many_threads_lose_nothing", "ST-3", "the sum of the adds of all threads is"),
    "late": ("get_ends_at_its_deadline", "ST-4", "ms after its deadline"),
    "early": ("get_ends_at_its_deadline", "ST-4", "before its deadline"),
    "value error": ("the_error_of_a_value_is_returned", "ST-5", "get returns OK, expected ENOMEM"),
    "slot": ("it_opens_and_closes", "ST-6", "has no operation 'num_keys'"),
    "name": ("the_name_is_of_one_line_and_stays", "ST-7", "is not of one line"),
    "password in the name": ("no_text_tells_a_password", "ST-7", "the name reveals the password"),
    "password in the error": ("no_text_tells_a_password", "ST-7", "the error of opening reveals the password"),
    "password in the log": ("no_text_tells_a_password", "ST-7", "the log reveals the password"),
    "replace": ("set_replaces_the_value", "ST-8", 'is "hello", expected "a longer value"'),
    "set wakes": ("set_wakes_the_waiters", "ST-8", "at its deadline only"),
    "add wakes": ("add_wakes_the_waiters", "ST-9", "at its deadline only"),
    "add from 1": ("add_counts_in_decimal_text", "ST-9", "the sum after add 5 is 6, expected 5"),
    "words": ("add_is_refused_when_the_value_is_no_number", "ST-9", "add returns OK, expected EINVAL"),
    "overflow": ("add_reaches_both_ends_of_64_bits_and_not_beyond", "ST-9", "add returns OK, expected EINVAL"),
    "double": ("add_is_exact", "ST-9", "the sum of 2^53 and 1 is not exact"),
    "swap always": ("compare_set_swaps_only_what_is_expected", "ST-10", 'gives "y", expected "x"'),
    "swap by prefix": ("compare_set_swaps_only_what_is_expected", "ST-10", 'gives "second", expected "first"'),
    "swap when missing": ("compare_set_swaps_only_what_is_expected", "ST-10", 'gives "", expected "first"'),
    "swap is atomic": ("compare_set_elects_one_of_many", "ST-10", "the number of voters elected in round"),
    "swap compares no NUL": ("compare_set_compares_all_bytes", "ST-10", "other bytes"),
    "compare_set wakes": ("compare_set_wakes_the_waiters", "ST-10", "at its deadline only"),
    "values reversed": ("get_gives_each_value_to_its_key", "ST-11", "expected"),
    "values twice": ("get_passes_each_value_once", "ST-11", "the number of times that value 0 is passed is 2, expected 1"),
    "values too early": ("get_passes_each_value_once", "ST-11", "the number of values that are passed, in all, is 4, expected 2"),
    "get tells": ("get_in_vain_tells_which_keys_are_missing", "ST-11", 'key "here1" is missing'),
    "text": ("get_passes_each_value_once", "ST-11", "expected no text"),
    "first key only": ("get_waits_for_the_last_of_its_keys", "ST-11", "get returns OK, expected ETIMEDOUT"),
    "never at its deadline": ("get_looks_when_its_deadline_has_passed", "ST-11", "fails"),
    "busy": ("get_waits_without_using_the_processor", "ST-11", "uses the processor for"),
    "check waits": ("check_tells_which_keys_are_missing", "ST-12", "check of missing keys waits for them"),
    "check of one": ("check_tells_which_keys_are_missing", "ST-12", "is"),
    "remove": ("remove_counts_the_keys_that_existed", "ST-13", "the number of removed keys is 3, expected 2"),
    "remove counts": ("remove_counts_the_keys_that_existed", "ST-13", "is 3, expected 2"),
    "num_keys": ("num_keys_counts_each_key_once", "ST-14", "expected"),
    "slow close": ("it_opens_and_closes", "ST-15", "at most 1000 are allowed"),
    "keys go": ("keys_stay_when_a_client_closes", "ST-15", "no key"),
    "thread": ("it_opens_and_closes", "ST-15", "threads run after the end"),
    "descriptor": ("it_opens_and_closes", "ST-15", "descriptors are open after the end"),
    "address": ("the_address_is_numeric", "ST-16", "localhost:6379"),
    "one at a time": ("many_threads_open_at_once", "ST-17", "another open is under way"),
    "refusal without a text": ("a_refused_url_has_a_reason_and_leaves_nothing", "ST-17", "without a text"),
    "lacks": ("what_a_store_lacks_is_refused", "ST-20", "add returns OK, expected EUNSUPPORTED"),
    "refusal leaks": ("a_refused_url_has_a_reason_and_leaves_nothing", "ST-17", "descriptors are open"),
}
if os.environ.get("TENREC_TEST_SANITIZED") != "1":  # whose allocator does not count; it reports leaks itself
    FAULTS["memory"] = ("close_leaves_nothing", "ST-15", "memory in use grows")


def conformance(breaks, *args):
    return run_conformance(TENREC, "--workers", "1", *args, "drawer://test", env={**os.environ, "TENREC_TEST_BREAKS": breaks})


def conformance_passes_the_store_that_breaks_nothing():
    done = conformance("")
    equal(done.returncode, 0, done.stdout)
    contains(done.stdout, "0 failed")


def conformance_asks_a_late_server_again():
    done = conformance("nothing, late")
    equal(done.returncode, 0, done.stdout)
    contains(done.stdout, "0 failed")


def plugin_alone(breaks):
    path = os.path.join(os.environ["TENREC_PLUGIN_PATH"].split(":")[0], "drawer.so")
    return run_conformance(TENREC, "--workers", "1", path, env={**os.environ, "TENREC_TEST_BREAKS": breaks})


def conformance_opens_a_store_that_is_a_plugin_alone():
    done = plugin_alone("")
    equal(done.returncode, 0, done.stdout + done.stderr)
    contains(done.stdout, "rules checked:     PL-1 ST-2 ")


def conformance_breaks_no_rule_without_a_server():
    done = plugin_alone("server")
    equal(done.returncode, 1, "status")
    equal(done.stdout, "")
    contains(done.stderr, "give its URL in front of the plugin: no server listens")


def no_group_meets_in_a_store_without_compare_set():
    done = subprocess.run([TENREC, "ping", "--store", "drawer://test"], env={**os.environ, "TENREC_TEST_BREAKS": "lacks"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    equal(done.returncode, 1, "status")
    contains(done.stderr, "has no compare_set: no group can meet there")


CASES = [sees(fault, expected, lambda *args, fault=fault: conformance(fault, *args)) for fault, expected in FAULTS.items()]
CASES += [conformance_passes_the_store_that_breaks_nothing, conformance_asks_a_late_server_again,
          conformance_opens_a_store_that_is_a_plugin_alone, conformance_breaks_no_rule_without_a_server,
          no_group_meets_in_a_store_without_compare_set]
sys.exit(1 if run_cases(CASES) else 0)
