# SPDX-License-Identifier: Apache-2.0
"""tls_test.py - whole groups in mode tls: elastic runs, lanes, and the tools that read them."""
import json
import os
import signal
import tempfile

from cases import contains, equal, main, one_line, run, true, until
from crew import LONG_MS, TENREC, Crew, backend, limit, store_of

LIMIT = f"{limit(10000)}ms"
TLS = {"TENREC_SECURITY__MODE": "tls"}
QUICK = {"TENREC_WORKER__HEARTBEAT": f"{limit(200)}ms", "TENREC_WORKER__HEARTBEAT_MISSES": "20"}
NUMBERS = 4000000  # of a tensor: 16 MB


def works(crew):
    """Each calls all, and there are as many as it should be."""
    n = len(crew.puppets)
    until(lambda: set(crew.all("exchange 1")) == {str(3 * n)}, f"a group of {n}")


def goes_by_tls(crew, a, b):
    equal(crew[a].do(f"way {b}").split()[0], "tls", f"the way from {a} to {b}")


def tls_group_survives_the_kill_of_a_worker():
    with Crew().run(3, "--elastic", "1:4", on_term="handle", env=backend(**TLS, **QUICK)) as crew:
        crew.all("init")
        works(crew)
        goes_by_tls(crew, 0, 1)
        crew[1].send_signal(signal.SIGKILL)
        for _ in range(20):
            equal(crew[0].do(f"call worker2 echo {LONG_MS} x"), "x")
        crew.puppets[1].link.close()
        crew.puppets[1] = crew.meet()
        equal(crew[1].do("init"), "worker1")
        works(crew)
        goes_by_tls(crew, 0, 1)
        for rank in list(crew.puppets):
            crew[rank].do(f"shutdown graceful {LONG_MS}")
            crew.release([rank])
        status, out, errors = crew.ended()
        equal((status, out), (0, ""), errors)
        contains(errors, "3 of 3 slots succeeded; 1 restart")


def tls_tensors_are_spread_over_lanes():
    with Crew().run(2, env=backend(**TLS, TENREC_BACKENDS__TENSORPIPE__LANES="4")) as crew:
        crew.all("init")
        for a, b in ((0, 1), (1, 0)):
            equal(crew[a].do(f"tensor worker{b} {LONG_MS} {NUMBERS}"), str(NUMBERS))
            equal(crew[a].do(f"way {b}"), "tls tenrec_lanes")
        works(crew)
        crew.leave()


def look(crew, *args, mode="tls"):
    return run(TENREC, *args, "--store", store_of(crew[0]), "--timeout", LIMIT,
               env=backend(TENREC_SECURITY__MODE=mode))


def tls_group_is_seen_by_the_tools():
    with Crew().run(2, env=backend(**TLS)) as crew:
        crew.all("init")
        got = look(crew, "ping", "worker1", "--json", "--count", "5")
        equal((got.returncode, got.stderr), (0, ""), "status and errors")
        found = json.loads(got.stdout)
        equal((found["worker"], found["transport"], found["calls"]), ("worker1", "tls", 5))
        got = look(crew, "info", "--worker", "worker1")
        equal((got.returncode, got.stderr), (0, ""), "status and errors")
        for part in ("tensorpipe.security", "tls"):
            contains(got.stdout, part)
        crew.leave()


def tls_group_is_not_seen_by_a_tool_in_mode_secret():
    with Crew().run(1, env=backend(**TLS)) as crew:
        crew.all("init")
        for args in (["ping", "worker0"], ["info", "--worker", "worker0"]):
            got = look(crew, *args, mode="secret")
            equal((got.returncode, got.stdout), (1, ""), "status and output")
            contains(one_line(got.stderr), "tls")
        crew.all(f"shutdown graceful {LONG_MS}")
        crew.release()
        status, out, errors = crew.ended()
        equal((status, out), (0, ""), "status and output")
        contains(errors, "this store is in security mode 'tls'")


def tls_group_is_not_seen_by_a_tool_with_another_secret():
    with tempfile.TemporaryDirectory() as folder, Crew().run(1, env=backend(**TLS)) as crew:
        crew.all("init")
        other = os.path.join(folder, "other.key")
        equal(run(TENREC, "secret", "new", other).returncode, 0, "exit status")
        got = look(crew, "ping", "worker0", "--secret-file", other)
        equal((got.returncode, got.stdout), (1, ""), "status and output")
        contains(one_line(got.stderr), "secret")
        true(int(crew[0].do("info tensorpipe.hellos")) == 0, "a hello of a stranger was read")
        crew.all(f"shutdown graceful {LONG_MS}")
        crew.release()
        equal(crew.ended()[:2], (0, ""), "status and output")


main(globals(), "tls_")
