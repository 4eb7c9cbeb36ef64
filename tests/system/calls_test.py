# SPDX-License-Identifier: Apache-2.0
"""calls_test.py - whole groups of processes call each other and leave together."""
import os

from cases import equal, has_ucx, main, run, true, until
from crew import ALL_TO_ALL, CONFIG, LONG_MS, TENREC, WRAPPER, Crew, at, backend, by_hand, free_port


def all_to_all(n, rounds=2):
    got = run(TENREC, "run", "-n", n, "--", *WRAPPER, ALL_TO_ALL, rounds, env=backend())
    equal((got.returncode, got.stderr), (0, ""), "status and errors")
    equal(sorted(got.stdout.splitlines()),
          [f"[{r}] worker{r} of {n}: {3 * n * rounds} calls" for r in range(n)])


def system_calls_from_all_to_all_when_there_are_2():
    all_to_all(2, 20)


def system_calls_from_all_to_all_when_there_are_4():
    all_to_all(4, 10)


def system_calls_from_all_to_all_when_there_are_8():
    all_to_all(8, 3)


def system_calls_itself_when_alone_without_launcher():
    got = run(*WRAPPER, ALL_TO_ALL, 2, env=backend())
    equal((got.returncode, got.stderr), (0, ""), "status and errors")
    equal(got.stdout, "worker0 of 1: 6 calls\n")


def exchange_and_leave(crew, *settings):
    crew.all(" ".join(("init", *settings)))
    n = len(crew.puppets)
    equal(crew.all("exchange 3"), [str(3 * 3 * n)] * n, "calls")
    crew.leave()


def system_meets_by_env_when_run_serves_the_store():
    with Crew().run(3) as crew:
        exchange_and_leave(crew)


def system_meets_by_env_when_rank_0_serves_the_store():
    with Crew().start(by_hand(3, **at(free_port()))) as crew:
        exchange_and_leave(crew)


def system_meets_by_env_when_an_agent_serves_the_store():
    with Crew().start([backend()]) as agent, Crew() as crew:
        port = free_port()
        agent[0].do(f"serve {port}")
        crew.start(by_hand(3, **at(port), TORCHELASTIC_USE_AGENT_STORE="True"))
        exchange_and_leave(crew)
        agent.finish()


def connections_to(port):
    """How many TCP connections clients of this network namespace have to a port."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(int(row[2].split(":")[1], 16) == port and row[3] == "01" for row in rows)


def system_rests_from_the_store_between_meeting_and_leave():
    with Crew().start([backend()]) as agent, Crew() as crew:
        port = free_port()
        agent[0].do(f"serve {port}")
        crew.start(by_hand(3, **at(port), TORCHELASTIC_USE_AGENT_STORE="True"))
        crew.all("init")
        true(connections_to(port) >= 3, "the workers have no connections to the store")
        until(lambda: connections_to(port) == 0, "the end of the connections to the store")
        equal(crew.all("exchange 3"), ["27"] * 3, "calls")
        crew.leave()
        agent.finish()


def system_meets_by_tcp_when_rank_0_serves_the_store():
    with Crew().start(by_hand(3)) as crew:
        exchange_and_leave(crew, f"init_method=tcp://127.0.0.1:{free_port()}")


def system_meets_by_tcp_when_the_url_tells_ranks():
    with Crew().start([backend()] * 2) as crew:
        url = f"tcp://localhost:{free_port()}"
        for rank in range(2):
            crew[rank].say(f"init init_method={url}?rank={rank}&world_size=2")
        equal([crew[r].well() for r in range(2)], ["worker0", "worker1"])
        crew.all("exchange 1")
        crew.leave()


def system_meets_by_file_when_the_path_is_new():
    with Crew().start(by_hand(3)) as crew:
        exchange_and_leave(crew, f"init_method=file://{crew.folder.name}/store")


def system_serves_at_once_when_rank_0_comes_last():
    with Crew().start(by_hand(3, **at(free_port()))) as crew:
        for rank in (2, 1, 0):
            crew[rank].say("init")
        equal([crew[r].well() for r in range(3)], ["worker0", "worker1", "worker2"])
        crew.all("exchange 1")
        crew.leave()


def system_keeps_groups_of_one_store_apart():
    with Crew().start([backend()]) as agent, Crew() as crew:
        port = free_port()
        agent[0].do(f"serve {port}")
        env = by_hand(2, **at(port), TORCHELASTIC_USE_AGENT_STORE="True")
        crew.start(env).start(env)
        for rank in range(4):
            crew[rank].say(f"init worker.group={'left' if rank < 2 else 'right'} "
                           f"worker.name={'left' if rank < 2 else 'right'}{{rank}}")
        equal([crew[r].well() for r in range(4)], ["left0", "left1", "right0", "right1"])
        equal(crew.all("exchange 5"), ["30"] * 4, "calls")
        code, _, text = crew[0].fails("call right1 echo 1000 x")
        equal(code, "EPEER_UNKNOWN")
        true("right1" in text, text)
        crew.leave()
        agent.finish()


def system_keeps_groups_apart_when_two_run_at_once():
    with Crew().run(2) as one, Crew().run(2) as other:
        for crew in (one, other):
            for rank in range(2):
                crew[rank].say("init")
        for crew in (one, other):
            equal([crew[r].well() for r in range(2)], ["worker0", "worker1"])
            crew.all("exchange 2")
        # The end of one is nothing to the other.
        one.leave()
        equal(other.all("exchange 2"), ["12"] * 2, "calls")
        other.leave()


def system_refuses_a_taken_rank():
    with Crew().run(2) as crew, Crew() as stranger:
        crew.all("init")
        with open(f"/proc/{crew[1].pid}/environ", encoding="utf-8") as f:
            env = dict(v.split("=", 1) for v in f.read().split("\0") if v)
        stranger.start([env])
        code, _, text = stranger[0].fails("init")
        equal(code, "EGROUP")
        true("rank 1" in text and "worker1" in text and str(crew[1].pid) in text, text)
        crew.all("exchange 1")
        crew.leave()
        stranger.finish()


def system_calls_on_each_shipped_config():
    absent = {"etcd.yaml", "kubernetes.yaml", "redis.yaml"}  # the tests of these plugins have servers for them
    if not has_ucx():
        absent.add("ucx.yaml")
    for name in sorted(set(os.listdir(CONFIG)) - absent):
        env = backend(TENREC_CONFIG=f"{CONFIG}/{name}")
        del env["TENREC_BACKEND"]
        with Crew().run(2, env=env) as crew:
            crew.all("init")
            retried(crew[0], f"call worker1 add {LONG_MS} 40 2", "42")
            crew.all(f"shutdown graceful {LONG_MS}")
            crew.release()
            status, out, errors = crew.ended()
            equal((status, out), (0, ""), "status and output")
            # Rules that hit nothing are warned about.
            equal([e for e in errors.splitlines() if " tenrec: warn: " not in e], [])


def retried(puppet, line, wanted):
    """A shipped config may have the first few calls fail; that is what it is for."""
    for _ in range(20):
        puppet.say(line)
        answer = puppet.answer()
        if not answer.startswith("fail EINJECTED "):
            break
    equal(answer, f"ok {wanted}")


main(globals(), "system_")
