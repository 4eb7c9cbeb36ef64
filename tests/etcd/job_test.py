# SPDX-License-Identifier: Apache-2.0
"""job_test.py TENREC PUPPET ALL_TO_ALL CONFIG BACKEND - workers that find each other in etcd.
Prints TAP; skips without etcd-server."""
import json

from server import Server, need_server

need_server()

from cases import contains, equal, main, one_line, run, true  # pylint: disable=wrong-import-position
from crew import (CONFIG, LONG_MS, TENREC, Crew, backend, by_hand,  # pylint: disable=wrong-import-position
                  limit)


def method(server, **more):
    return backend(TENREC_INIT_METHOD=server.url("jobs/1"), **more)


def ping(server, worker):
    got = run(TENREC, "ping", worker, "--json", "--timeout", f"{limit(10000)}ms", "--store",
              server.url("jobs/1"), env=backend())
    equal((got.returncode, got.stderr), (0, ""), "status and errors of ping")
    return json.loads(got.stdout)


def exchange(crew, ranks):
    n = len(ranks)
    equal(crew.all("exchange 2", ranks=ranks), [str(2 * 3 * n)] * n, "calls")


def job_meets_by_etcd_when_started_by_run():
    with Server() as server, Crew().run(3, env=method(server)) as crew:
        crew.all("init")
        exchange(crew, (0, 1, 2))
        crew.leave()


def job_meets_again_under_the_same_prefix():
    with Server() as server:
        for _ in range(3):
            with Crew().start(by_hand(2, TENREC_INIT_METHOD=server.url("jobs/1"))) as crew:
                crew.all("init")
                exchange(crew, (0, 1))
                crew.leave()


def job_that_is_dynamic_goes_on_when_rank_0_has_left():
    with Server() as server, Crew() as crew:
        crew.start([method(server, RANK=str(r)) for r in range(3)])
        crew.all("init")
        crew[0].do(f"shutdown graceful {LONG_MS}")
        crew.release(ranks=(0,))
        equal(crew.ended(crew.processes[0]), (0, "", ""), "status and output of rank 0")
        equal(ping(server, "worker2")["id"], 2)
        # A worker that comes later meets the members that are there.
        crew.start([method(server, RANK="3")])
        crew[3].do("init")
        equal(crew[3].do("exchange 2"), str(2 * 3 * 3), "calls")
        for rank in (3, 1, 2):
            crew[rank].do(f"shutdown graceful {LONG_MS}")
        crew.finish()


def job_calls_while_the_server_is_away():
    for dynamic in (False, True):
        with Server() as server, Crew() as crew:
            if dynamic:
                crew.start([method(server, RANK=str(r)) for r in range(3)])
            else:
                crew.start(by_hand(3, TENREC_INIT_METHOD=server.url("jobs/1")))
            crew.all("init")
            exchange(crew, (0, 1, 2))
            server.stop()
            exchange(crew, (0, 1, 2))
            server.go_on()
            server.kill()
            exchange(crew, (0, 1, 2))
            server.start()
            exchange(crew, (0, 1, 2))
            for rank in range(3):
                crew[rank].say(f"shutdown graceful {LONG_MS}")
            for rank in range(3):
                crew[rank].well()
            crew.release()
            for process in crew.processes:
                crew.ended(process)  # it may have said that the server was away


def job_goes_on_without_its_leader():
    with Server(size=3) as servers, Crew() as crew:
        crew.start([method(servers, RANK=str(r)) for r in range(2)])
        crew.all("init")
        servers.leader().kill()
        crew.start([method(servers, RANK="2")])
        crew[2].do("init")
        exchange(crew, (0, 1, 2))
        for rank in range(3):
            crew[rank].do(f"shutdown graceful {LONG_MS}")
        crew.release()
        for process in crew.processes:
            crew.ended(process)


def job_join_waits_for_the_server_and_says_why():
    with Server() as server, Crew() as crew:
        server.kill()
        crew.start([method(server, RANK="0", WORLD_SIZE="1")])
        crew[0].say("init")
        true("tried again" in crew.processes[0].stderr.readline(), "no line says what it waits for")
        server.start()
        crew[0].well()
        crew[0].do(f"shutdown graceful {LONG_MS}")
        crew.release()
        crew.ended(crew.processes[0])


def job_info_and_check_know_the_plugin():
    env = backend(TENREC_STORES__ETCD__PASSWORD="s3cret")
    got = run(TENREC, "info", "--config", f"{CONFIG}/etcd.yaml", env=env)
    equal((got.returncode, got.stderr), (0, ""))
    for part in ("store etcd", "lease", "stores.etcd.options.password", "***"):
        contains(got.stdout, part)
    true("s3cret" not in got.stdout, "the password is printed")
    equal(run(TENREC, "check", f"{CONFIG}/etcd.yaml", env=backend()).returncode, 0)


def job_never_prints_the_password():
    with Server() as server:
        got = run(TENREC, "ping", "--store", server.url("jobs/1", "bob:wr0ng@"), env=backend())
        equal(got.returncode, 1, "status of ping")
        contains(one_line(got.stderr), "the server has no users")
        true("wr0ng" not in got.stderr, got.stderr)


main(globals(), "job_")
