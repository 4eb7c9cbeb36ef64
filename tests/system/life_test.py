# SPDX-License-Identifier: Apache-2.0
"""life_test.py - how processes join, rest, leave, come back and fork."""
import os
import signal
import time

from cases import alive, contains, equal, main, one_line, run, true, until
from crew import (ALL_TO_ALL, BACKEND, LONG_MS, TENREC, WRAPPER, Crew, at, backend, by_hand,
                  free_port, limit, threads, used, within)


# ---- those that do not come together ----------------------------------------

def system_names_the_missing_rank_when_a_member_never_comes():
    with Crew() as crew:
        crew.start(by_hand(4)[:2])
        since = time.monotonic()
        for code, _, text in crew.all_fail(
                f"init worker.init_timeout={limit(2000)}ms init_method=file://{crew.folder.name}/store"):
            equal(code, "ETIMEDOUT")
            contains(text, "ranks 2, 3")
        within(since, time.monotonic(), 2 + 6, "init with a limit of 2 s")
        crew.finish()


def system_names_the_missing_rank_when_run_serves_the_store():
    with Crew().run(3) as crew:
        for code, _, text in crew.all_fail(f"init worker.init_timeout={limit(2000)}ms", ranks=(0, 2)):
            equal(code, "ETIMEDOUT")
            contains(text, "rank 1 ")
        crew.finish()


def system_names_the_store_when_rank_0_never_comes():
    port = free_port()
    with Crew().start(by_hand(2, **at(port))[1:]) as crew:
        since = time.monotonic()
        _, _, text = crew[0].fails(f"init worker.init_timeout={limit(500)}ms")
        within(since, time.monotonic(), 0.5 + 8, "init with a limit of 0.5 s")
        contains(text, f"127.0.0.1:{port}")
        crew.finish()


def system_joins_when_a_failed_init_is_repeated_with_all():
    with Crew().run(2) as crew:
        crew[0].fails(f"init worker.init_timeout={limit(300)}ms")  # a busy store may be why, too
        crew.all("init")
        crew.all("exchange 1")
        crew.leave()


def system_tells_all_workers_when_two_have_one_name():
    with Crew().run(3) as crew:
        for rank, name in enumerate(("same", "same", "other")):
            crew[rank].say(f"init worker.name={name}")
        for rank in range(3):
            code, _, text = crew[rank].badly()
            equal(code, "EGROUP")
            contains(text, '"same" is used by ranks 0 and 1')
        crew.finish()


def system_tells_all_workers_when_world_sizes_differ():
    with Crew() as crew:
        crew.start([backend(RANK="0", WORLD_SIZE="2"), backend(RANK="1", WORLD_SIZE="3")])
        for code, _, text in crew.all_fail(f"init init_method=file://{crew.folder.name}/store"):
            equal(code, "EGROUP")
            true("2" in text and "3" in text, text)
        crew.finish()


def system_says_where_when_the_config_is_wrong():
    with Crew() as crew:
        path = f"{crew.folder.name}/wrong.yaml"
        with open(path, "w", encoding="ascii") as f:
            f.write("worker:\n  rpc_timout: 60s\nbackend: tensorpipe\n")
        env = backend()
        del env["TENREC_BACKEND"]
        since = time.monotonic()
        got = run(TENREC, "run", "-n", 3, "--config", path, "--", *WRAPPER, ALL_TO_ALL, env=env)
        within(since, time.monotonic(), 10, "the end of all")
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), f"{path}:2:3: ")  # of the launcher, not of each worker
        contains(got.stderr, "rpc_timeout")  # the nearest name


def system_says_where_when_a_variable_is_wrong():
    env = backend(TENREC_WORKER__NUM_WORKER_THREADS="many")
    got = run(TENREC, "run", "-n", 2, "--", *WRAPPER, ALL_TO_ALL, env=env)
    equal((got.returncode, got.stdout), (1, ""))
    contains(got.stderr, "TENREC_WORKER__NUM_WORKER_THREADS")
    contains(got.stderr, "'many'")


# ---- leaving and coming back ------------------------------------------------

def system_leaves_together_when_all_workers_get_sigterm():
    with Crew().run(3, on_term="handle") as crew:
        crew.all("init")
        crew.all("exchange 1")
        crew.processes[0].send_signal(signal.SIGTERM)
        equal(crew.ended(), (0, "", ""), "status and output")


def system_ends_its_wait_first_when_sigterm_comes_in_a_call():
    with Crew().run(2, on_term="handle") as crew:
        crew.all("init")
        crew[0].say(f"call worker1 hold {LONG_MS}")
        crew[1].until_held()
        crew[0].send_signal(signal.SIGTERM)
        # A worker with the order waits for the call, and the other has no order yet.
        equal(crew[1].do("release"), "1")
        equal(crew[0].well(), "nil")
        crew[1].send_signal(signal.SIGTERM)
        equal(crew.ended(), (0, "", ""), "status and output")


def system_waits_for_calls_of_others_at_shutdown():
    with Crew().run(3) as crew:
        crew.all("init")
        crew[0].do(f"start worker1 hold {LONG_MS}")
        crew[1].until_held()
        for rank in (0, 2):
            crew[rank].say(f"shutdown graceful {LONG_MS}")
        equal(crew[1].do("release"), "1")
        crew[1].do(f"shutdown graceful {LONG_MS}")
        for rank in (0, 2):
            crew[rank].well()
        equal(crew[0].do("await"), "nil")
        crew.finish()


def system_names_the_late_when_a_shutdown_is_not_graceful_in_time():
    with Crew().run(3) as crew:
        crew.all("init")
        since = time.monotonic()
        errors = crew.all_fail("shutdown graceful 2000", ranks=(0, 2))
        late = [text for code, _, text in errors if code == "ETIMEDOUT"]
        true(late and all("worker1" in text for text in late), errors)
        # The second to give up may see first that the other has gone.
        true(all(code in ("ETIMEDOUT", "EPEER_LOST") for code, _, _ in errors), errors)
        within(since, time.monotonic(), 2 + 6, "shutdown with a limit of 2 s")
        crew[1].do("shutdown immediate 0")
        crew.finish()


def system_comes_back_when_all_workers_init_again():
    with Crew().run(3) as crew:
        for _ in range(3):
            crew.all("init")
            equal(crew.all("exchange 2"), ["18"] * 3, "calls")
            crew.all(f"shutdown graceful {LONG_MS}")
            crew.all("drop")
        crew.finish()


def system_comes_back_when_the_same_worker_is_started_again():
    with Crew().run(3) as crew:
        crew.all("init")
        for _ in range(3):
            crew.all("exchange 1")
            crew.all(f"shutdown graceful {LONG_MS}")
            crew.all("again")
        crew.all("exchange 1")
        crew.leave()


def system_comes_back_when_rank_0_serves_the_store_again():
    with Crew().start(by_hand(3, **at(free_port()))) as crew:
        for _ in range(3):
            crew.all("init")
            crew.all("exchange 1")
            crew.all(f"shutdown graceful {LONG_MS}")
            crew.all("drop")
        crew.finish()


def system_comes_back_in_a_new_process_after_a_kill():
    with Crew() as crew:
        settings = f"init init_method=file://{crew.folder.name}/store"
        crew.start(by_hand(2)).all(settings)
        crew[1].send_signal(signal.SIGKILL)
        until(lambda: not alive(crew[1].pid), "the end of worker1")
        crew[0].do("shutdown immediate 0")
        crew[0].do("drop")
        crew.start(by_hand(2)[1:])  # rank 1 once more, as puppet 2
        equal(crew.all(settings, ranks=(0, 2)), ["worker0", "worker1"])
        equal(crew.all("exchange 1", ranks=(0, 2)), ["6"] * 2, "calls")
        crew.all(f"shutdown graceful {LONG_MS}", ranks=(0, 2))


# ---- fork -------------------------------------------------------------------

def forked(crew, parent):
    """The child of a puppet, a puppet too."""
    pid = int(parent.do("fork"))
    child = crew.meet()
    equal(child.pid, pid)
    crew.puppets[len(crew.puppets)] = child
    return child


def system_gives_a_forked_child_a_worker_of_its_own():
    with Crew().run(2) as crew:
        crew.all("init")
        crew.all("exchange 1")
        children = [forked(crew, crew[rank]) for rank in range(2)]
        for rank in range(2):
            children[rank].say("init worker.group=children worker.name=child{rank}")
        equal([c.well() for c in children], ["child0", "child1"])
        for puppet in crew.puppets.values():
            puppet.say("exchange 3")
        equal([p.well() for p in crew.puppets.values()], ["18"] * 4, "calls")
        for child in children:
            child.say(f"shutdown graceful {LONG_MS}")
        for child in children:
            child.well()
            child.link.close()
            until(lambda pid=child.pid: not alive(pid), "the end of the child")
        crew.all("exchange 1", ranks=(0, 1))
        crew.all(f"shutdown graceful {LONG_MS}", ranks=(0, 1))
        crew.finish()


def system_refuses_a_worker_of_a_forked_child():
    with Crew().run(2) as crew:
        crew.all("init")
        child = forked(crew, crew[0])
        code, _, text = child.fails("init worker.group=children worker.name=child0")
        equal(code, "EUNSUPPORTED")
        contains(text, "when it forked this one")
        child.link.close()
        until(lambda: not alive(child.pid), "the end of the child")
        crew.all("exchange 1", ranks=(0, 1))
        crew.all(f"shutdown graceful {LONG_MS}", ranks=(0, 1))
        crew.finish()


# UCX does not work in the child of a process that uses it.
if BACKEND == "ucx":
    del system_gives_a_forked_child_a_worker_of_its_own
else:
    del system_refuses_a_worker_of_a_forked_child


def system_end_of_a_worker_is_noticed_when_its_child_lives_on():
    with Crew().run(2) as crew:
        crew.all("init")
        crew.all("exchange 1")
        forked(crew, crew[1])  # holds what its parent had open
        since = time.monotonic()
        crew[1].do("shutdown immediate 0")
        when, text = crew[0].event("lost")
        within(since, when, 3, "news of the end")
        contains(text, "worker1")
        crew[0].do("shutdown immediate 0")
        crew.finish()


# ---- threads ----------------------------------------------------------------

def system_leaves_signals_to_the_program():
    with Crew().run(2) as crew:
        crew.all("init")
        crew.all("exchange 2")
        for pid in (crew[0].pid, crew[1].pid):
            masks = [blocked(pid, tid) for tid in threads(pid) if int(tid) != pid]
            true(len(masks) >= 2, f"{len(masks)} threads beside the program's")
            for mask in masks:
                true(all(mask >> (sig - 1) & 1 for sig in (signal.SIGTERM, signal.SIGINT,
                                                           signal.SIGUSR1)), f"{mask:x}")
        crew.leave()


def blocked(pid, tid):
    """The signals that a thread has blocked; all when it has just ended."""
    try:
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
            return next(int(line.split()[1], 16) for line in f if line.startswith("SigBlk:"))
    except OSError:
        return ~0


def system_is_idle_without_calls():
    with Crew().run(2) as crew:
        crew.all("init")
        crew.all("exchange 5")
        pids = [crew[r].pid for r in range(2)]
        # Pool threads go when they have had no work for a while. ThreadSanitizer has one of its own.
        most = 4 + ("TSAN_OPTIONS" in os.environ)
        until(lambda: all(len(threads(pid)) <= most for pid in pids), f"at most {most} threads")
        until(lambda: all(n <= 1 for n in used(pids, 0.4)), "no use of the processor")
        crew.all("exchange 1")
        crew.leave()


main(globals(), "system_")
