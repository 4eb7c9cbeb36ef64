# SPDX-License-Identifier: Apache-2.0
"""complete_test.py TENREC EMBEDDING - the complete examples (docs/examples.md) learn what they say, and are short."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests/tools"))
from cases import contains, equal, main, run, true  # pylint: disable=wrong-import-position

TENREC, EMBEDDING = (os.path.abspath(path) for path in sys.argv[1:3])
CONFIG = f"{ROOT}/config/default.yaml"


def example(*args):
    """The lines of a run that ends well."""
    got = run(TENREC, "run", *args, limit_s=100)
    equal((got.returncode, got.stderr), (0, ""), got.stdout)
    return got.stdout.splitlines()


def numbers(pattern, lines):
    return [float(m[1]) for m in map(re.compile(pattern).search, lines) if m]


def complete_examples_are_under_300_lines():
    for name in ("embedding",):
        with open(f"{ROOT}/examples/{name}.c", encoding="utf-8") as f:
            lines = len(f.readlines())
        true(lines < 300, f"examples/{name}.c has {lines} lines")


def complete_embedding_equals_one_process():
    lines = example("-n", 5, "--config", CONFIG, "--", EMBEDDING)
    equal(len(numbers(r"server \d: rows are (\S+) from those of one process", lines)), 3, "number of servers")
    for trainer in 3, 4:
        loss = numbers(rf"trainer {trainer}: step \d+, loss (\S+)", lines)
        equal(loss, sorted(loss, reverse=True), "loss")
        true(loss[-1] < loss[0] / 10, f"the loss of trainer {trainer} falls too little: {loss}")


def complete_embedding_without_a_trainer_says_how_many_it_needs():
    got = run(TENREC, "run", "-n", 3, "--config", CONFIG, "--", EMBEDDING)
    equal(got.returncode, 1)
    contains(got.stderr, "embedding: 3 workers, expected 4 to 16")


main(globals(), "complete_")
