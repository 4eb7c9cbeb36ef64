# SPDX-License-Identifier: Apache-2.0
"""set_test.py - `tenrec set` on groups that run."""
import json

from cases import contains, equal, main, one_line, run, true
from crew import BACKEND, TENREC, Crew, backend, limit, store_of

LIMIT = f"{limit(10000)}ms"


def change(crew, *words):
    return run(TENREC, "set", *words, "--store", store_of(crew[0]), "--timeout", LIMIT, env=backend())


def well(crew, *words):
    got = change(crew, *words)
    equal((got.returncode, got.stdout, got.stderr), (0, "", ""))


def fails(crew, *words):
    got = change(crew, *words)
    equal((got.returncode, got.stdout), (1, ""))
    return one_line(got.stderr)


def info(crew, worker):
    got = run(TENREC, "info", "--worker", worker, "--store", store_of(crew[0]), "--timeout", LIMIT, "--json", env=backend())
    equal(got.returncode, 0, got.stderr)
    return json.loads(got.stdout)["debug_info"]


def set_changes_a_worker_that_runs():
    with Crew().run(2) as crew:
        crew.all("init")
        well(crew, "worker1", "log_level=error")
        well(crew, "worker1", "worker.rpc_timeout=12s")
        if BACKEND == "faulty":
            well(crew, "worker1", "backends.faulty.options.rules=[{do: delay, by: 1ms, on: [RET], name: late}]")
            true("faulty.rules.late.matched" in info(crew, "worker1"), "worker1 has no rule 'late'")
            true("faulty.rules.late.matched" not in info(crew, "worker0"), "worker0 has it, too")
            well(crew, "worker1", "backends.faulty.options.rules=[]")
            true("faulty.rules.late.matched" not in info(crew, "worker1"), "the rule is still there")
        crew.leave()


def set_says_what_is_wrong():
    with Crew().run(1) as crew:
        crew.all("init")
        for word, part in (("log_level=loud", "expected error, warn, info, debug or trace, found 'loud'"),
                           ("worker.name=x", "'worker.name' cannot change while the worker runs"),
                           ("backends.tensorpip.options.lanes=2", "did you mean 'tensorpipe'?"),
                           ("backends.tensorpipe.options.lanes=2", "backend 'tensorpipe' cannot change while the worker runs")):
            contains(fails(crew, "worker0", word), part)
        contains(fails(crew, "worker_0", "log_level=info"), "did you mean 'worker0'?")
        crew.leave()


def set_is_refused_in_a_group_without_a_secret():
    with Crew().run(1, "--insecure") as crew:
        crew.all("init")
        contains(fails(crew, "worker0", "log_level=debug"), "settings change for callers that have proved the group secret")
        crew.leave()


def set_refuses_words_that_are_no_settings():
    for words, part in ((["worker0"], "expected a worker and a setting, got 1 word"),
                        (["worker0", "log_level"], "'log_level' is no setting, expected KEY=VALUE"),
                        (["worker0", "=x"], "'=x' is no setting"), ([], "got 0 words")):
        got = run(TENREC, "set", *words, env=backend())
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), part)


main(globals(), "set_")
