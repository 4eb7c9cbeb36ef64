# SPDX-License-Identifier: Apache-2.0
"""elastic_test.py - `tenrec run --elastic` with workers of a dynamic group."""
import signal

from cases import contains, equal, main, true, until
from crew import LONG_MS, TENREC, Crew, backend, limit

# Quick, but 4 s: a busy machine keeps a process from running for more than a second.
QUICK = {"TENREC_WORKER__HEARTBEAT": f"{limit(200)}ms", "TENREC_WORKER__HEARTBEAT_MISSES": "20"}


def elastic(n, *options):
    crew = Crew().run(n, "--elastic", "1:4", *options, on_term="handle", env=backend(**QUICK))
    crew.all("init")
    return crew


def again(crew, rank):
    """The next life of a slot, joined."""
    crew.puppets[rank].link.close()
    crew.puppets[rank] = crew.meet()
    equal(crew[rank].rank, rank, "RANK")
    equal(crew[rank].do("init"), f"worker{rank}")


def works(crew):
    """Each calls all, and there are as many as it should be."""
    n = len(crew.puppets)
    until(lambda: set(crew.all("exchange 1")) == {str(3 * n)}, f"a group of {n}")


def ends(crew, *restarts):
    """All leave, one after the other, and the run ends well."""
    for rank in list(crew.puppets):
        crew[rank].do(f"shutdown graceful {LONG_MS}")
        crew.release([rank])
    status, out, errors = crew.ended()
    equal((status, out), (0, ""), f"status and output ({errors})")
    for text in restarts:
        contains(errors, text)


def system_starts_a_killed_worker_again_while_the_others_go_on():
    with elastic(3) as crew:
        works(crew)
        crew[1].send_signal(signal.SIGKILL)
        for _ in range(20):
            equal(crew[0].do(f"call worker2 echo {LONG_MS} x"), "x")
        again(crew, 1)
        works(crew)
        equal(crew[0].do(f"call worker1 add {LONG_MS} 2 3"), "5")
        ends(crew, "slot 1 failed: killed by SIGKILL; restart 1 of 3", "3 of 3 slots succeeded; 1 restart")


def system_starts_the_same_worker_again_and_again():
    with elastic(2) as crew:
        for life in range(3):
            crew[1].send_signal(signal.SIGKILL if life % 2 else signal.SIGABRT)
            again(crew, 1)
            works(crew)
        ends(crew, "restart 3 of 3")


def system_starts_rank_0_again_as_well():
    with elastic(3) as crew:
        crew[0].send_signal(signal.SIGKILL)
        equal(crew[1].do(f"call worker2 echo {LONG_MS} x"), "x")
        again(crew, 0)
        works(crew)
        ends(crew)


def system_adds_a_worker_when_told_to():
    with elastic(2) as crew:
        works(crew)
        crew.processes[0].send_signal(signal.SIGUSR1)
        crew.puppets[2] = crew.meet()
        equal(crew[2].do("init"), "worker2")
        works(crew)
        ends(crew)


def system_goes_on_when_a_worker_leaves():
    with elastic(3) as crew:
        works(crew)
        crew[2].do(f"shutdown graceful {LONG_MS}")
        crew.release([2])
        del crew.puppets[2]
        works(crew)
        code, _, text = crew[0].fails(f"call worker2 echo {LONG_MS} x")
        true(code == "EPEER_UNKNOWN", f"{code}: {text}")
        ends(crew)


def system_lets_another_run_join():
    with elastic(2) as crew, Crew() as more:
        more._start([TENREC, "run", "--elastic", "1:2", "-n", "2", "--join", f"tcp://127.0.0.1:{crew.port}", "--",
                     crew.processes[0].args[-3], more.path, "handle"], backend(**QUICK))
        for name in ("worker2", "worker3"):
            puppet = more.meet()
            equal(puppet.do("init"), name)
            puppet.rank = int(name[-1])
            more.puppets[puppet.rank] = puppet
        equal(more[3].do("exchange 2"), "24")
        equal(crew[0].do("exchange 2"), "24")
        equal(crew[0].do(f"call worker3 echo {LONG_MS} x"), "x")
        ends(more)
        works(crew)
        ends(crew)


main(globals(), "system_")
