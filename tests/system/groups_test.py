# SPDX-License-Identifier: Apache-2.0
"""groups_test.py - a dynamic group of real processes: they join, leave, are killed and stopped."""
import signal
import time

from cases import contains, equal, main, true, until
from crew import LIMIT_S, LONG_MS, SLOW, Crew, at, backend, free_port, limit, used, within

STORE = 0  # the puppet that serves the store and is no worker
# Quick, but 4 s: a busy machine keeps a process from running for more than a second.
QUICK = {"TENREC_WORKER__HEARTBEAT": f"{limit(200)}ms", "TENREC_WORKER__HEARTBEAT_MISSES": "20",
         "TENREC_WORKER__GROUP_LEASE": f"{limit(3000)}ms"}


class Group(Crew):
    """A crew of which the first serves the store; the others are workers without a world size."""

    def __init__(self):
        super().__init__()
        self.start([backend()], on_term="ignore")
        self.port = free_port()
        self[STORE].do(f"serve {self.port}")

    def add(self, rank=None, init=True, **more):
        """One more worker, which wishes for that id."""
        env = backend(TORCHELASTIC_USE_AGENT_STORE="True", **at(self.port), **{**QUICK, **more})
        if rank is not None:
            env["RANK"] = str(rank)
        number = len(self.puppets)
        self.start([env], on_term="ignore")
        if init:
            self[number].do("init")
        return self[number]


def call(a, name):
    equal(a.do(f"call {name} add {LONG_MS} 20 22"), "42", f"what {name} answers")


def until_view(puppet, names):
    until(lambda: puppet.do("view") == names, f"the view '{names}'")


def leave(*puppets):
    for puppet in puppets:
        puppet.do(f"shutdown graceful {LONG_MS}")


def system_joins_and_leaves_while_the_others_go_on():
    with Group() as crew:
        a, b = crew.add(), crew.add()
        call(a, "worker1")
        c = crew.add(rank=5)
        for puppet in (a, b):
            equal(puppet.event("joined")[1].split()[:2][1], "worker1" if puppet is a else "worker5")
            call(puppet, "worker5")
            call(c, f"worker{0 if puppet is a else 1}")
        leave(b)
        equal(a.do("view"), "worker0 worker5")
        code, _, text = a.fails(f"call worker1 add {LONG_MS} 1 1")
        equal(code, "EPEER_UNKNOWN")
        contains(text, "has left the group")
        contains(a.event("left")[1], "worker1 OK")
        d = crew.add()
        call(d, "worker5")
        call(a, "worker1")
        leave(c, d, a)


def system_removes_a_killed_member_and_uses_its_id_and_name_again():
    with Group() as crew:
        a, b, c = crew.add(), crew.add(), crew.add()
        call(a, "worker1")
        a.do(f"start worker1 hold {LONG_MS}")
        b.until_held()
        since = time.monotonic()
        b.send_signal(signal.SIGKILL)
        equal(a.fails("await")[0], "EPEER_LOST")
        for puppet in (a, c):
            when, text = puppet.event("left")
            contains(text, "worker1 EPEER_LOST")
            within(since, when, 6, "finding it dead")
        again = crew.add(rank=1)
        for puppet in (a, c):
            call(puppet, "worker1")
        call(again, "worker2")
        leave(again, c, a)


def system_admits_a_worker_at_once_when_its_former_life_was_killed():
    slow = {"TENREC_WORKER__HEARTBEAT": "60s"}
    with Group() as crew:
        b = crew.add(rank=1, **slow)
        b.send_signal(signal.SIGKILL)
        crew.processes[-1].wait(LIMIT_S)
        since = time.monotonic()
        again = crew.add(rank=1, **slow)
        within(since, time.monotonic(), 20, "joining")
        equal(again.do("view"), "worker1")
        leave(again)


def system_removes_a_stopped_member_and_lets_the_worker_join_anew():
    with Group() as crew:
        a, b, c = crew.add(), crew.add(), crew.add()
        call(b, "worker0")
        call(a, "worker1")
        b.stop()
        contains(a.event("left")[1], "worker1 EPEER_LOST")
        contains(c.event("left")[1], "worker1 EPEER_LOST")
        b.send_signal(signal.SIGCONT)
        contains(b.event("left")[1], "worker1 EGROUP")
        code, _, text = b.fails(f"call worker0 add {LONG_MS} 1 1")
        equal(code, "EGROUP")
        contains(text, "was removed from group")
        equal(b.fails("view")[0], "EGROUP")
        b.say(f"shutdown graceful {LONG_MS}")
        b.answer()
        b.do("again")
        call(b, "worker0")
        call(a, "worker1")
        call(c, "worker1")
        leave(b, c, a)


def system_keeps_a_member_that_was_stopped_for_less_than_the_looks():
    with Group() as crew:
        patient = {"TENREC_WORKER__HEARTBEAT_MISSES": "100"}
        a, b = crew.add(**patient), crew.add(**patient)
        call(a, "worker1")
        b.stop()
        a.say(f"call worker1 add {LONG_MS} 20 22")
        b.send_signal(signal.SIGCONT)
        equal(a.well(), "42")
        equal(a.do("view"), "worker0 worker1")
        equal(a.told and [t for _, t in a.told if t.startswith("left")], [])
        leave(b, a)


def system_joins_after_other_joiners_were_killed():
    with Group() as crew:
        a = crew.add()
        for delay_ms in range(0, 60, 10):
            x = crew.add(init=False)
            x.say("init")
            x.read(time.monotonic() + delay_ms / 1000)  # each somewhere else on its way, or there
            x.send_signal(signal.SIGKILL)
        last = crew.add()
        name = last.do("view").split()
        until(lambda: len(a.do("view").split()) == 2, "removal of all that were killed")
        true("worker0" in name, f"the first is not in {name}")
        call(last, "worker0")
        leave(last, a)


def system_fails_a_gather_when_a_participant_is_killed():
    with Group() as crew:
        a, b, c = crew.add(), crew.add(), crew.add()
        crew.all(f"barrier {LONG_MS}", ranks=(1, 2, 3))
        # By name: a member that begins after the loss means the same set.
        a.say(f"barrier {LONG_MS} worker0 worker1 worker2")
        b.say(f"barrier {LONG_MS} worker0 worker1 worker2")
        c.send_signal(signal.SIGKILL)
        for puppet in (a, b):
            contains(puppet.badly()[2], "worker2")
        until_view(a, "worker0 worker1")
        until_view(b, "worker0 worker1")
        crew.all(f"barrier {LONG_MS}", ranks=(1, 2))
        leave(b, a)


def system_continues_without_the_store_but_admits_no_joiner():
    with Group() as crew:
        a, b = crew.add(), crew.add()
        call(a, "worker1")
        crew[STORE].send_signal(signal.SIGKILL)
        crew.processes[0].wait(LIMIT_S)
        for _ in range(5):
            call(a, "worker1")
            call(b, "worker0")
        x = crew.add(init=False, TENREC_WORKER__INIT_TIMEOUT=f"{limit(300)}ms")
        true(x.fails("init")[0] in ("ECONNECT", "ETIMEDOUT"), "joining without a store")
        since = time.monotonic()
        for puppet in (b, a):
            puppet.say(f"shutdown graceful {limit(1000)}")
            puppet.answer()
        within(since, time.monotonic(), 10, "leaving without a store")


def system_uses_no_cpu_at_rest():
    with Group() as crew:
        puppets = [crew.add(TENREC_WORKER__HEARTBEAT=f"{limit(1000)}ms") for _ in range(3)]
        until_view(puppets[0], "worker0 worker1 worker2")
        for puppet, ticks in zip(puppets, used([p.pid for p in puppets], 2 * SLOW)):
            true(ticks <= 5 * SLOW, f"{puppet} used {ticks} ticks in {2 * SLOW} seconds")
        leave(*reversed(puppets))


main(globals(), "system_")
