# SPDX-License-Identifier: Apache-2.0
"""complete_test.py TENREC EMBEDDING WEIGHTS ACTORS FUTURES BATCH KEYVALUE - the complete examples (docs/examples.md) learn what they
say, and are short; the small ones do what they say."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests/tools"))
from cases import contains, equal, main, run, true  # pylint: disable=wrong-import-position

TENREC, EMBEDDING, WEIGHTS, ACTORS, FUTURES, BATCH, KEYVALUE = (os.path.abspath(path) for path in sys.argv[1:8])
CONFIG = f"{ROOT}/config/default.yaml"


def example(*args):
    """The lines of a run that ends well."""
    got = run(TENREC, "run", *args, limit_s=100)
    equal(got.returncode, 0, got.stderr)
    return got.stdout.splitlines()


def numbers(pattern, lines):
    return [float(m[1]) for m in map(re.compile(pattern).search, lines) if m]


def complete_examples_are_under_300_lines():
    for name in "embedding", "weights", "actors":
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


def complete_weights_reach_a_generator_that_was_killed():
    got = run(TENREC, "run", "--elastic", "4:4", "--restarts", 1, "--config", CONFIG, "--", WEIGHTS, 30, 2)
    equal(got.returncode, 0, got.stderr)
    contains(got.stderr, "slot 2 failed: killed by SIGKILL; restart 1 of 1")
    lines = got.stdout.splitlines()
    killed, = numbers(r"trainer: lost at version (\d+): worker 'worker2'", lines)
    back, = numbers(r"trainer: worker2 is back at version (\d+)", lines)
    first, = numbers(r"\[2.1\] generator 2: begins with version (\d+)", lines)
    true(10 <= killed <= back <= first, f"killed at {killed}, back at {back}, begins with {first}")
    said = [line.split(", ")[1] for line in lines if " says " in line]
    equal(len(said), 3, "number of generators that speak")
    equal(set(said), {said[0]}, "what the generators say")
    contains(said[0], "number 30 says ")


def complete_weights_outside_of_an_elastic_run_say_how_to_start_them():
    got = run(TENREC, "run", "-n", 1, "--config", CONFIG, "--", WEIGHTS)
    equal(got.returncode, 1)
    contains(got.stderr, "weights: expected tenrec run --elastic N:N")


def complete_actors_are_rewarded_more_and_more_and_the_same_in_each_run():
    runs = [[line for line in example("-n", 4, "--config", CONFIG, "--", ACTORS) if "learner: " in line] for _ in range(2)]
    equal(runs[0], runs[1], "a second run")
    reward = numbers(r"version \d+, mean reward (\S+)", runs[0])
    equal((len(reward), reward), (7, sorted(reward)), "rewards")
    true(reward[-1] > 4 * reward[0], f"the reward rises too little: {reward}")


def complete_futures_takes_the_first_answer_and_cancels_the_others():
    equal(example("-n", 4, "--config", CONFIG, "--", FUTURES), ["[0] worker1 was first, 2 calls were canceled"])


def complete_batch_serves_all_requests():
    lines = example("-n", 3, "--config", CONFIG, "--", BATCH)
    equal(sorted(lines), ["[0] 80 requests in fewer batches", "[1] the mean answer is 195.0", "[2] the mean answer is 195.0"])


def complete_keyvalue_finds_what_the_others_have_put():
    equal(sorted(example("-n", 3, "--config", CONFIG, "--", KEYVALUE)), [f"[{i}] the sum of all is 3000" for i in range(3)])


main(globals(), "complete_")
