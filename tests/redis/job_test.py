# SPDX-License-Identifier: Apache-2.0
"""job_test.py TENREC PUPPET ALL_TO_ALL CONFIG BACKEND - workers that find each other
through a Redis server. Prints TAP; skips without redis-server."""
import json

from server import Server, need_server

need_server()

from cases import contains, equal, main, one_line, run, true  # pylint: disable=wrong-import-position
from crew import (CONFIG, LONG_MS, TENREC, Crew, backend, by_hand,  # pylint: disable=wrong-import-position
                  limit)

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


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


def job_meets_by_redis_when_started_by_run():
    with Server() as server, Crew().run(3, env=method(server)) as crew:
        crew.all("init")
        exchange(crew, (0, 1, 2))
        true(int(server.ask("PTTL", "jobs/1")) > 0, "the keys of a job have no lease")
        crew.leave()


def job_calls_on_the_shipped_config():
    with Server() as server:
        env = method(server, TENREC_CONFIG=f"{CONFIG}/redis.yaml")
        with Crew().run(2, env=env) as crew:
            crew.all("init")
            exchange(crew, (0, 1))
            crew.leave()


def job_meets_again_under_the_same_prefix():
    with Server() as server:
        for _ in range(3):
            with Crew().start(by_hand(2, TENREC_INIT_METHOD=server.url("jobs/1"))) as crew:
                crew.all("init")
                exchange(crew, (0, 1))
                crew.leave()


def job_goes_on_when_rank_0_has_left():
    with Server() as server, Crew() as crew:
        crew.start([method(server, RANK=str(r)) for r in range(3)])
        crew.all("init")
        crew[0].do(f"shutdown graceful {LONG_MS}")
        crew.release(ranks=(0,))
        equal(crew.ended(crew.processes[0]), (0, "", ""), "status and output of rank 0")
        equal(ping(server, "worker2")["id"], 2)
        # One that comes later meets those that are there.
        crew.start([method(server, RANK="3")])
        crew[3].do("init")
        equal(crew[3].do("exchange 2"), str(2 * 3 * 3), "calls")
        for rank in (3, 1, 2):
            crew[rank].do(f"shutdown graceful {LONG_MS}")
        crew.finish()


def job_goes_on_when_the_server_is_restarted():
    with Server(*DURABLE) as server, Crew() as crew:
        crew.start(by_hand(3, TENREC_INIT_METHOD=server.url("jobs/1")))
        crew.all("init")
        exchange(crew, (0, 1, 2))
        server.kill()
        exchange(crew, (0, 1, 2))  # calls do not need it
        for rank in range(3):
            crew[rank].say(f"shutdown graceful {LONG_MS}")
        server.start()
        for rank in range(3):
            crew[rank].well()
        crew.finish()


def job_reports_that_the_server_has_lost_its_keys():
    with Server() as server, Crew() as crew:
        crew.start(by_hand(2, TENREC_INIT_METHOD=server.url("jobs/1")))
        crew.all("init")
        server.kill()
        server.start()
        for code, _, text in crew.all_fail(f"shutdown graceful {LONG_MS}"):
            equal(code, "EPEER_LOST")
            contains(text, "has lost its keys")
        crew.finish()


def job_info_and_check_know_the_plugin():
    env = backend(TENREC_STORES__REDIS__PASSWORD="s3cret")
    got = run(TENREC, "info", "--config", f"{CONFIG}/redis.yaml", env=env)
    equal((got.returncode, got.stderr), (0, ""))
    for part in ("store redis", "lease", "stores.redis.options.password", "***"):
        contains(got.stdout, part)
    true("s3cret" not in got.stdout, "the password is printed")
    equal(run(TENREC, "check", f"{CONFIG}/redis.yaml", env=backend()).returncode, 0)


def job_never_prints_the_password():
    with Server("--requirepass", "s3cret") as server:
        env = backend(TENREC_INIT_METHOD=server.url("jobs/1?rank=0&world_size=1", ":wr0ng@"))
        with Crew().start([env]) as crew:
            code, _, text = crew[0].fails("init")
            equal(code, "ECONFIG")
            contains(text, "refuses the user or the password")
            true("wr0ng" not in text, text)
            crew.finish()
        got = run(TENREC, "ping", "--store", server.url("jobs/1", ":wr0ng@"), env=backend())
        equal(got.returncode, 1, "status of ping")
        contains(one_line(got.stderr), "refuses the user or the password")
        true("wr0ng" not in got.stderr, got.stderr)


main(globals(), "job_")
