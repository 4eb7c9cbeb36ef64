# SPDX-License-Identifier: Apache-2.0
"""look_test.py - `tenrec ping` and `tenrec info --worker` on groups that run."""
import json
import signal
import socket
import tempfile
import time

from cases import contains, equal, main, one_line, run, true, until
from crew import BACKEND, TENREC, Crew, at, backend, by_hand, free_port, limit, store_of, within

LIMIT = f"{limit(10000)}ms"


def look(*args, **env):
    return run(TENREC, *args, env=backend(**env))


def well(*args, **env):
    got = look(*args, **env)
    true(got.returncode == 0, f"{args}: exit status {got.returncode}, {got.stderr}")
    return got.stdout


def ping(*args, **env):
    return json.loads(well("ping", "--json", "--timeout", LIMIT, *args, **env))


def fails(*args, timeout=LIMIT):
    got = look(*args, "--timeout", timeout)
    equal((got.returncode, got.stdout), (1, ""), "status and output")
    return one_line(got.stderr)


# ---- a group that runs ----------------------------------------------------------

def look_ping_finds_a_worker_that_run_started():
    with Crew().run(2) as crew:
        crew.all("init")
        got = ping("worker1", "--store", store_of(crew[0]), "--count", "5")
        equal((got["worker"], got["id"], got["workers"], got["group"]), ("worker1", 1, 2, "default"))
        equal((got["transport"], got["channel"], got["calls"]), ("tenrec_ring", "tenrec_host", 5))
        true(got["way"] == "read from the sender's memory (cma)" or got["way"].startswith("ring, copied twice: "), f"way is {got}")
        true(0 < got["min_us"] <= got["median_us"] <= got["max_us"], f"times are {got}")
        crew.leave()


def look_ping_says_why_better_ways_are_not_used():
    plain = {"TENREC_SECURITY__MODE": "none"}
    with Crew().run(1, env=backend(TENREC_TRANSPORTS="uv", **plain)) as crew:
        crew.all("init")
        got = {(n["kind"], n["name"]): n["reason"] for n in
               ping("worker0", "--store", store_of(crew[0]), **plain)["not_used"]}
        contains(got["transport", "tenrec_ring"], "the peer does not offer it")
        text = well("ping", "worker0", "--store", store_of(crew[0]), **plain)
        basic = ping("worker0", "--store", store_of(crew[0]), TENREC_BACKENDS__TENSORPIPE__CHANNELS="basic", **plain)
        true(basic["way"].startswith("TCP: ") and len(basic["way"]) > len("TCP: "), f"way is {basic}")
        for part in ("worker0 (id 0)", "round trip", "transport   uv", "not tenrec_ring: the peer",
                     "channel     tenrec_lanes"):
            contains(text, part)
        crew.leave()


def look_ping_lists_the_members_when_no_member_is_named():
    with Crew().run(2) as crew:
        crew.all("init")
        got = ping("--store", store_of(crew[0]))
        equal([(m["name"], m["id"], "absent" in m) for m in got["members"]],
              [("worker0", 0, False), ("worker1", 1, False)])
        contains(well("ping", "--store", store_of(crew[0])), "worker1")
        crew.leave()


def look_ping_finds_a_group_in_a_file():
    with Crew().start(by_hand(2)) as crew:
        store = f"file://{crew.folder.name}/store"
        crew.all(f"init init_method={store} worker.group=mine")
        equal(ping("worker0", "--store", store, "--group", "mine")["worker"], "worker0")
        crew.leave()


def look_ping_takes_store_and_group_from_the_config():
    with Crew().start(by_hand(1)) as crew, tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        store = f"file://{crew.folder.name}/store"
        f.write(f"worker: {{ group: mine }}\ninit_method: {store}\n"
                "backend: tensorpipe\nbackends: { tensorpipe: { plugin: tensorpipe }, "
                "faulty: { plugin: faulty, wraps: tensorpipe } }\n")
        f.flush()
        crew.all(f"init init_method={store} worker.group=mine")
        equal(ping("worker0", "--config", f.name)["group"], "mine")
        crew.leave()


def look_ping_finds_the_second_life_of_a_group():
    with Crew().run(2) as crew:
        crew.all("init")
        crew.all("shutdown graceful 10000")
        crew.all("again")
        equal(ping("worker1", "--store", store_of(crew[0]))["worker"], "worker1")
        crew.leave()


def look_run_says_where_the_store_is_when_verbose():
    with Crew().run(1, "--verbose") as crew:
        line = crew.processes[0].stderr.readline()
        crew.all("init")
        equal(line, f"tenrec run: store {store_of(crew[0])}\n")
        equal(ping("worker0", "--store", line.split()[-1])["worker"], "worker0")
        crew.leave()


def look_info_shows_the_debug_info_of_a_worker():
    with Crew().run(2) as crew:
        crew.all("init")
        store = store_of(crew[0])
        got = json.loads(well("info", "--worker", "worker1", "--store", store, "--json"))
        equal(got["worker"], "worker1")
        info = got["debug_info"]
        equal((info["worker.name"], info["worker.id"], info["group.size"]), ("worker1", 1, 2))
        true(info["agent.thread_pool_size"] > 0, f"debug info is {info}")
        contains(info["tensorpipe.address"], "://127.0.0.1:")
        contains(info["tensorpipe.callers"], "anonymous at ")
        contains(well("info", "--worker", "worker1", "--store", store), "agent.server_active_calls")
        crew.leave()


# ---- what may be wrong ------------------------------------------------------------

def look_names_the_nearest_when_there_is_no_such_worker():
    with Crew().run(2) as crew:
        crew.all("init")
        for command in (("ping", "worker_1"), ("info", "--worker", "worker_1")):
            contains(fails(*command, "--store", store_of(crew[0])), "did you mean 'worker")
        crew.leave()


def look_names_the_groups_when_there_is_no_such_group():
    with Crew().run(1) as crew:
        crew.all("init worker.group=trainers")
        for group, part in (("trainer", "did you mean 'trainers'"), ("x", 'its groups are "trainers"')):
            contains(fails("ping", "--store", store_of(crew[0]), "--group", group), part)
        crew.leave()


def look_reports_a_store_without_group():
    with Crew().run(1) as crew:
        contains(fails("ping", "--store", store_of(crew[0])), "has no group of workers")
        crew.finish()


def look_reports_a_store_without_a_server():
    since = time.monotonic()
    contains(fails("ping", "worker0", "--store", f"tcp://127.0.0.1:{free_port()}"), "cannot reach tcp store")
    within(since, time.monotonic(), 8, "a ping of nobody")
    contains(fails("ping", "worker0", "--store", "file:///nowhere/store"), "no store at")
    contains(fails("ping", "worker0", "--store", "http://x"), "no plugin 'http'")


def look_ends_at_its_limit_when_the_store_says_nothing():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(8)
        since = time.monotonic()
        text = fails("ping", "worker0", "--store", f"tcp://127.0.0.1:{mute.getsockname()[1]}",
                     timeout=f"{limit(500)}ms")
        within(since, time.monotonic(), 5, "a ping with a limit of 0.5 s")
        contains(text, "accepts connections but does not answer")


def look_names_the_option_when_the_store_is_unknown():
    contains(fails("ping", "worker0"), "--store")


def look_names_the_missing_rank_when_the_group_is_not_complete():
    with Crew().run(2) as crew:
        crew[0].say("init")
        # Rank 0 is on its way: first there is no group, then one of which both miss.
        until(lambda: "rank 1 of 2 did not join" in
              fails("ping", "worker0", "--store", store_of(crew[0]), timeout=f"{limit(300)}ms"),
              "the word of who is missing")
        crew[1].do("init")
        crew[0].well()
        crew.leave()


def look_reports_a_worker_that_was_killed():
    with Crew().start(by_hand(2, **at(free_port()))) as crew:
        crew.all("init")
        crew[1].send_signal(signal.SIGKILL)
        crew.ended(crew.processes[1])
        store = store_of(crew[0])
        text = fails("ping", "worker1", "--store", store)
        contains(text, "'worker1' does not answer")
        contains(text, f"its process {crew[1].pid} does not run any more")
        members = ping("--store", store)["members"]
        true("absent" not in members[0], "worker0 is there")
        contains(members[1]["absent"], "does not run any more")
        equal(ping("worker0", "--store", store)["worker"], "worker0")
        crew[0].do("shutdown immediate 1000")
        crew.release([0])


def look_reports_a_worker_that_has_left():
    with Crew().start(by_hand(2)) as crew:
        store = f"file://{crew.folder.name}/store"
        crew.all(f"init init_method={store}")
        crew[1].do("shutdown immediate 1000")
        contains(fails("ping", "worker1", "--store", store), "it has left the group")
        crew[0].do("shutdown immediate 1000")
        crew.finish()


def look_ends_at_its_limit_when_the_worker_stands_still():
    with Crew().run(2) as crew:
        crew.all("init")
        crew[1].stop()
        since = time.monotonic()
        text = fails("ping", "worker1", "--store", store_of(crew[0]), timeout=f"{limit(2000)}ms")
        within(since, time.monotonic(), 2 + 6, "a ping with a limit of 2 s")
        # The limit of a handshake may run out first where all limits are stretched.
        true("within its timeout" in text or "handshake not finished within" in text, text)
        crew[1].send_signal(signal.SIGCONT)
        crew.leave()


def look_ping_shows_the_answers_when_the_limit_expires():
    with Crew().run(2) as crew:
        crew.all("init")
        got = run(TENREC, "ping", "worker1", "--store", store_of(crew[0]), "--json", "--count", "1000000",
                  "--timeout", f"{limit(2000)}ms", env={**backend(), "TENREC_TRANSPORTS": "uv"})
        equal((got.returncode, got.stderr), (0, ""), "status and stderr")
        told = json.loads(got.stdout)
        equal(told["calls_asked"], 1000000)
        true(0 < told["calls"] < 1000000, f"{told['calls']} calls were answered")
        crew.leave()


def look_refuses_command_lines_that_make_no_sense():
    for args, part in ((("ping", "a", "b"), "takes one worker"), (("ping", "-N", "0"), "--count is '0'"),
                       (("ping", "--timeout", "5"), "--timeout"), (("ping", "--nothing"), "unknown option"),
                       (("info", "--group", "g"), "requires --worker")):
        got = look(*args)
        equal((got.returncode, got.stdout), (2, ""), f"status and output of {args}")
        contains(one_line(got.stderr), part)


main(globals(), "look_", f"system_look_{BACKEND}")
