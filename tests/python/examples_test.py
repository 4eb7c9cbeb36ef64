# SPDX-License-Identifier: Apache-2.0
"""examples_test.py WHY TENREC EMBEDDING ACTORS - the complete examples in C refuse what no worker of theirs sends."""
import os
import sys

from cases import contains, environment, equal, main, run
import workers  # pylint: disable=unused-import  # skips where there is no package

TENREC, EMBEDDING, ACTORS = map(os.path.abspath, sys.argv[2:5])
CALLER = """
import array
import tenrec_rpc as tenrec

tenrec.init_rpc()
for function, *args in [{calls}]:
    try:
        print("answered:", tenrec.call("worker0", function, *args).shape)
    except tenrec.Error as why:
        print("refused:", why)
raise SystemExit(3)
"""


def answers(n, program, *calls):
    """What the program answers to calls of the last of n workers, which then fails, and so ends the run."""
    text = CALLER.format(calls=", ".join(calls))
    done = run(TENREC, "run", "-n", n, "--", "sh", "-c", f'[ $RANK = {n - 1} ] || exec "$0"; exec "$1" -c "$2"', program, sys.executable, text,
               env=environment(PYTHONPATH=os.environ["PYTHONPATH"]))
    return [line.split("] ", 1)[1] for line in done.stdout.splitlines() if line.startswith(f"[{n - 1}]")]


def numbers(kind, n, value=0):
    return f"memoryview(array.array('{kind}', [{value}] * {n}))"


def examples_embedding_gives_rows_of_its_shard_only():
    got = answers(4, EMBEDDING, *(f"('gather', {ids})" for ids in (numbers("q", 2, 3), numbers("q", 1, 1), numbers("q", 1, -3), numbers("q", 1, 1200))))
    equal(got[0], "answered: (2, 16)")
    for line, row in zip(got[1:], (1, -3, 1200), strict=True):
        contains(line, f"refused: EINVAL: server 0 has no row {row}")


def examples_embedding_refuses_other_types_and_too_few_gradients():
    got = answers(4, EMBEDDING, f"('gather', {numbers('d', 1)})", f"('gather', {numbers('q', 1201)})", f"('scatter', {numbers('q', 2)}, {numbers('f', 31)})",
                  f"('scatter', {numbers('q', 1)}, {numbers('d', 16)})")
    equal(len(got), 4)
    contains(got[0], "refused: EINVAL: 'gather': argument 1: the tensor is float64 of [1], expected int64 of [*]")
    contains(got[1], "refused: EINVAL: expected up to 1200 ids")
    contains(got[2], "refused: EINVAL: expected 16 gradients for each id")
    contains(got[3], "refused: EINVAL: 'scatter': argument 2: the tensor is float64 of [16], expected float32")


def examples_learner_refuses_what_is_no_batch():
    got = answers(2, ACTORS, f"('push', {numbers('d', 12)})", f"('push', {numbers('d', 10)}.cast('B').cast('d', [2, 5]))",
                  f"('push', {numbers('f', 12)}.cast('B').cast('f', [2, 6]))")
    equal(len(got), 3)
    for line in got:
        contains(line, "refused: EINVAL: 'push': argument 1: the tensor is ")
        contains(line, ", expected float64 of [*,6]")


if __name__ == "__main__":
    main(globals(), "examples_")
