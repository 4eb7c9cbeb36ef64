# SPDX-License-Identifier: Apache-2.0
"""job_test.py TENREC PUPPET ALL_TO_ALL CONFIG BACKEND - workers that find each other in ConfigMaps
of a stub of a cluster. Prints TAP."""
from api import Api
from cases import contains, equal, main, run, true
from crew import CONFIG, LONG_MS, TENREC, Crew, backend, by_hand

PLAIN = {"TENREC_STORES__KUBERNETES__TLS": "false"}


def method(api, **more):
    return {**backend(TENREC_INIT_METHOD=api.url("jobs-1"), **more), **PLAIN}


def hands(n, api):
    return [{**env, **PLAIN} for env in by_hand(n, TENREC_INIT_METHOD=api.url("jobs-1"))]


def exchange(crew, ranks):
    n = len(ranks)
    equal(crew.all("exchange 2", ranks=ranks), [str(2 * 3 * n)] * n, "calls")



def job_meets_in_a_cluster_and_again():
    with Api() as api:
        for _ in range(2):
            with Crew().start(hands(3, api)) as crew:
                crew.all("init")
                exchange(crew, (0, 1, 2))
                crew.leave()


def job_that_is_dynamic_goes_on_when_rank_0_has_left():
    with Api() as api, Crew() as crew:
        crew.start([method(api, RANK=str(r)) for r in range(3)])
        crew.all("init")
        crew[0].do(f"shutdown graceful {LONG_MS}")
        crew.release(ranks=(0,))
        equal(crew.ended(crew.processes[0]), (0, "", ""), "status and output of rank 0")
        crew.start([method(api, RANK="3")])
        crew[3].do("init")
        equal(crew[3].do("exchange 2"), str(2 * 3 * 3), "calls")
        for rank in (3, 1, 2):
            crew[rank].do(f"shutdown graceful {LONG_MS}")
        crew.finish()


def job_calls_while_the_server_is_away():
    for dynamic in (False, True):
        with Api() as api, Crew() as crew:
            crew.start([method(api, RANK=str(r)) for r in range(3)] if dynamic else hands(3, api))
            crew.all("init")
            exchange(crew, (0, 1, 2))
            api.stop()
            exchange(crew, (0, 1, 2))
            api.go_on()
            api.kill()
            exchange(crew, (0, 1, 2))
            api.start()
            exchange(crew, (0, 1, 2))
            for rank in range(3):
                crew[rank].say(f"shutdown graceful {LONG_MS}")
            for rank in range(3):
                crew[rank].well()
            crew.release()
            for process in crew.processes:
                crew.ended(process)  # it may have said that the server was away


def job_join_waits_for_the_server_and_says_why():
    with Api() as api, Crew() as crew:
        api.kill()
        crew.start([method(api, RANK="0", WORLD_SIZE="1")])
        crew[0].say("init")
        line = crew.processes[0].stderr.readline()
        contains(line, "tried again")
        api.start()
        crew[0].well()
        crew[0].do(f"shutdown graceful {LONG_MS}")
        crew.release()
        crew.ended(crew.processes[0])


def job_info_and_check_know_the_plugin():
    got = run(TENREC, "info", "--config", f"{CONFIG}/kubernetes.yaml", env=backend())
    equal((got.returncode, got.stderr), (0, ""))
    for part in ("store kubernetes", "lease", "token_file"):
        contains(got.stdout, part)
    true(run(TENREC, "check", f"{CONFIG}/kubernetes.yaml", env=backend()).returncode == 0, "check")


main(globals(), "job_")
