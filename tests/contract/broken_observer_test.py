# SPDX-License-Identifier: Apache-2.0
"""broken_observer_test.py TENREC PLUGIN - `tenrec conformance` names the rule that a broken observer breaks.

Each fault of broken_observer.c has a case that must see it, and the rule that the case must name."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from cases import contains, equal, run_cases
from faults import conformance as run_conformance
from faults import sees

TENREC, PLUGIN = sys.argv[1:]
# fault: (case, its rule, a part of its text)
FAULTS = {
    "slow close": ("an_observer_opens_and_closes", "OB-3", "at most 1000 are allowed"),
    "thread": ("an_observer_opens_and_closes", "OB-3", "threads run after the end"),
    "descriptor": ("an_observer_opens_and_closes", "OB-3", "descriptors are open after the end"),
    "span lost": ("each_span_is_done_once", "OB-4", "the number of spans that are done at the end is 80, expected 160"),
    "slow leave": ("a_worker_that_leaves_is_forgotten_within_a_second", "OB-5", "at most 1000 are allowed"),
    "worker kept": ("a_worker_that_leaves_is_forgotten_within_a_second", "OB-5", "the number of spans that name a worker which has left is 1"),
    "refusal without a text": ("a_refused_address_has_a_reason_and_leaves_nothing", "OB-9", "without a text"),
    "refusal leaks": ("a_refused_address_has_a_reason_and_leaves_nothing", "OB-9", "descriptors are open"),
}


def conformance(breaks, *args):
    with tempfile.TemporaryDirectory() as folder:
        # The last limit counts: operations that are too slow end before the case does.
        return run_conformance(TENREC, *args, "--limit", "3s", "--address", os.path.join(folder, "spans"), PLUGIN, env={**os.environ, "TENREC_TEST_BREAKS": breaks})


def conformance_passes_the_observer_that_breaks_nothing():
    done = conformance("")
    equal(done.returncode, 0, done.stdout + done.stderr)
    contains(done.stdout, "0 failed")


def conformance_refuses_an_address_for_a_configuration():
    done = run_conformance(TENREC, "--address", "x", "some.yaml")
    equal(done.returncode, 2, "status")
    contains(done.stderr, "--address is for one observer, PLUGIN.so")


CASES = [sees(fault, expected, lambda *args, fault=fault: conformance(fault, *args)) for fault, expected in FAULTS.items()]
CASES += [conformance_passes_the_observer_that_breaks_nothing, conformance_refuses_an_address_for_a_configuration]
sys.exit(1 if run_cases(CASES) else 0)
