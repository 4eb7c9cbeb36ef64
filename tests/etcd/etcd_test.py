# SPDX-License-Identifier: Apache-2.0
"""etcd_test.py STORE_TOOL - the store in etcd when a server, or the way to it, fails. Prints TAP;
skips without etcd-server."""
import json
import signal
import time

from server import Server, need_server, text, until

need_server()

from cases import contains, equal, main, true  # pylint: disable=wrong-import-position
from store_proxy import Proxy  # pylint: disable=wrong-import-position
from tool import Tool  # pylint: disable=wrong-import-position

LOST = "has lost its keys"


def url(*ports, prefix="test"):
    return f"etcd://{','.join(f'127.0.0.1:{port}' for port in ports)}/{prefix}"


def timed(limit_s, action):
    since = time.monotonic()
    got = action()
    took = time.monotonic() - since
    true(took < limit_s, f"took {took:.3f} s, limit {limit_s} s")
    return got


# ---- a server that is killed or stopped --------------------------------------------

def etcd_goes_on_when_the_server_was_restarted():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "before")
        tool.ok("add", "n", 3)
        server.kill()
        server.start()
        equal(tool.ok("get", "k"), "before")
        equal(tool.ok("add", "n", 4), "7")


def etcd_waits_for_a_server_that_is_restarted():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("add", "n", 1)
        server.kill()
        tool.tell("add", "n", 1)
        contains(tool.hear(tool.process.stderr), "does not answer, and is tried again: ")
        server.start()
        equal(tool.hear(), "ok 2")


def etcd_waits_for_a_server_that_goes_on():
    with Server() as server, Tool() as tool, Tool() as other:
        tool.ok("open", server.url())
        other.ok("open", server.url())
        server.stop()
        tool.tell("add", "n", 1)
        other.tell("wait", "n", 20000)
        contains(tool.hear(tool.process.stderr), "does not answer, and is tried again: ")
        server.go_on()
        equal((tool.hear(), other.hear()), ("ok 1", "ok "))


def etcd_reports_that_the_server_has_lost_its_data():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        server.kill()
        server.forget()
        server.start()
        for words in (("get", "k"), ("set", "k", "w"), ("add", "n", 1), ("check", "k"),
                      ("swap", "k", "-", "w"), ("delete", "k"), ("wait", "k", 20000), ("count",)):
            contains(tool.fails("EPEER_LOST", *words), LOST)
        # A new start finds an empty store, without remains of the old one.
        tool.ok("close")
        tool.ok("open", server.url())
        equal(tool.ok("check", "k"), "0")


def etcd_reports_that_the_server_lost_its_last_change():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        for key in server.keys("test:c/"):
            server.remove(key)
        contains(tool.fails("EPEER_LOST", "get", "k"), LOST)
        contains(tool.fails("EPEER_LOST", "set", "k", "w"), LOST)


def etcd_reports_keys_that_are_removed_during_a_wait():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.tell("wait", "late", 20000)
        server.until_watched()
        server.remove("test:id")
        contains(timed(4, tool.hear), LOST)  # sooner than the next look


def etcd_wait_goes_on_through_a_restart():
    with Server() as server, Tool() as waits, Tool() as sets:
        waits.ok("open", server.url())
        sets.ok("open", server.url())
        waits.tell("get", "late", 20000)
        server.until_watched()
        server.kill()
        server.start()
        server.until_watched()
        sets.ok("set", "late", "came")
        equal(waits.hear(), "ok came")


def etcd_is_gone_within_the_deadline():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        server.kill()
        contains(timed(15, lambda: tool.fails("EPEER_LOST", "set", "k", "v", 300)), "connect")
        contains(timed(15, lambda: tool.fails("EPEER_LOST", "wait", "k", 300)), "no answer for ")
        timed(15, lambda: tool.ok("close"))


def etcd_that_is_silent_ends_at_the_deadline():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        server.stop()
        contains(timed(15, lambda: tool.fails("ETIMEDOUT", "set", "k", "w", 300)),
                 "and the change may have been made: the server does not answer")
        contains(timed(15, lambda: tool.fails("EPEER_LOST", "get", "k", 300)), "does not answer")
        server.go_on()
        tool.ok("set", "k", "x")
        equal(tool.ok("get", "k"), "x")


def etcd_open_waits_for_a_server_and_gives_up():
    with Server() as server, Tool() as tool:
        server.kill()
        contains(timed(15, lambda: tool.fails("ECONNECT", "open", server.url(), 300)),
                 f"etcd store 127.0.0.1:{server.port}/test: no answer for ")
        tool.tell("open", server.url())
        server.start()
        equal(tool.hear(), "ok ")


# ---- several servers ---------------------------------------------------------------

def etcd_goes_on_when_the_leader_is_killed():
    with Server(size=3) as servers, Tool() as tool, Tool() as waits:
        tool.ok("open", servers.url())
        waits.ok("open", servers.url())
        for n in range(1, 4):
            equal(tool.ok("add", "n", 1), str(n))
        waits.tell("get", "late", 20000)
        leader = servers.leader()
        leader.kill()
        for n in range(4, 7):
            equal(tool.ok("add", "n", 1), str(n))
        servers.start(leader)
        tool.ok("set", "late", "came")
        equal(waits.hear(), "ok came")
        equal(tool.ok("add", "n", 1), "7")


def etcd_goes_on_when_each_server_is_stopped_in_turn():
    with Server(size=3) as servers, Tool() as tool, Tool() as waits:
        tool.ok("open", servers.url())
        waits.ok("open", servers.url())
        tool.ok("set", "n", "0")
        for i, member in enumerate(servers.members):
            waits.tell("get", f"late{i}", 20000)
            member.stop()
            equal(tool.ok("add", "n", 1), str(i + 1))
            tool.ok("set", f"late{i}", "came")
            equal(waits.hear(), "ok came")
            member.go_on()


def etcd_names_the_server_when_most_are_lost():
    with Server(size=3) as servers, Tool() as tool:
        tool.ok("open", servers.url())
        tool.ok("set", "k", "v")
        for member in servers.members[1:]:
            member.kill()
        line = timed(15, lambda: tool.ask("set", "k", "w", 1000))
        true(line.startswith(("error ETIMEDOUT: ", "error EPEER_LOST: ")), line)
        contains(line, "127.0.0.1:")
        servers.start(*servers.members[1:])
        tool.ok("set", "k", "x")
        equal(tool.ok("get", "k"), "x")


# ---- answers that are lost ---------------------------------------------------------

def etcd_change_is_made_once_when_its_answer_is_lost():
    for words, answer, key, left in ((("add", "n", 5), "5", "n", "5"),
                                     (("swap", "n", "-", "mine"), "mine", "n", "mine"),
                                     (("set", "n", "v"), "", "n", "v"),
                                     (("delete", "old"), "1", "old", None)):
        with Server() as server, Proxy(server.port) as proxy, Tool() as tool:
            tool.ok("open", url(proxy.port))
            tool.ok("set", "old", "v")
            proxy.cut = b"success\":[{\"request_"
            equal(tool.ok(*words), answer)
            equal(proxy.cut, None, "the answer that was to be cut")
            equal(server.keys("test:/").get(f"test:/{key}"), left)


def etcd_swap_that_was_made_succeeds_when_its_answer_is_lost():
    with Server() as server, Proxy(server.port) as proxy, Tool() as tool:
        tool.ok("open", url(proxy.port))
        tool.ok("swap", "lock", "-", "mine")
        proxy.cut = text("free").encode()
        equal(tool.ok("swap", "lock", "mine", "free"), "free")
        equal(server.keys("test:/")["test:/lock"], "free")


def etcd_change_that_was_refused_is_not_made_later():
    with Server() as server, Proxy(server.port) as proxy, Tool() as tool, Tool() as other:
        tool.ok("open", url(proxy.port, server.port))
        other.ok("open", server.url())
        proxy.hold = text("mine").encode()
        tool.tell("swap", "lock", "-", "mine")
        true(proxy.held.wait(20), "the request did not come")
        other.ok("set", "lock", "theirs")
        equal(tool.hear(), "ok theirs")  # by the other endpoint
        other.ok("delete", "lock")
        proxy.released.set()
        true(proxy.passed.wait(20), "the late request was not answered")
        equal(other.ok("check", "lock"), "0")
        equal(tool.ok("swap", "lock", "-", "mine"), "mine")


# ---- watches -----------------------------------------------------------------------

def etcd_watch_sees_what_was_set_before_it_began():
    with Server() as server, Proxy(server.port) as proxy, Tool() as waits, Tool() as sets:
        waits.ok("open", url(proxy.port))
        sets.ok("open", server.url())
        proxy.hold = b"/v3/watch"
        waits.tell("get", "late", 20000)
        true(proxy.held.wait(20), "no watch came")
        sets.ok("set", "late", "came")
        proxy.released.set()
        equal(timed(4, waits.hear), "ok came")  # sooner than the next look


def etcd_watch_of_a_revision_that_was_compacted_is_answered_with_a_read():
    with Server() as server, Proxy(server.port) as proxy, Tool() as waits, Tool() as sets:
        waits.ok("open", url(proxy.port))
        sets.ok("open", server.url())
        proxy.hold = b"/v3/watch"
        waits.tell("get", "late", 20000)
        true(proxy.held.wait(20), "no watch came")
        sets.ok("set", "late", "came")
        for i in range(5):
            sets.ok("set", "other", i)
        revision = server.ask("kv/range", {"key": text("x")})["header"]["revision"]
        server.ask("kv/compaction", {"revision": revision, "physical": True})
        proxy.released.set()
        equal(timed(4, waits.hear), "ok came")
        contains(proxy.answers.decode(errors="replace"), "compact_revision")


def etcd_wait_costs_no_processor_time():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        before = tool.spent()
        tool.fails("ETIMEDOUT", "wait", "nobody", 1500)
        spent_s = tool.spent() - before
        true(spent_s <= 0.05 * 1.5, f"it was busy for {spent_s:.3f} s")


# ---- a server that refuses ---------------------------------------------------------

def secure(server, **users):
    """Users with their passwords; each may use what begins with jobs/."""
    server.ask("auth/role/add", {"name": "jobs"})
    server.ask("auth/role/grant", {"name": "jobs", "perm": {
        "permType": "READWRITE", "key": text("jobs/"), "range_end": text("jobs0")}})
    for name, password in {"root": "r00t", **users}.items():
        server.ask("auth/user/add", {"name": name, "password": password})
        server.ask("auth/user/grant", {"user": name, "role": "root" if name == "root" else "jobs"})
    server.ask("auth/enable", {})


def etcd_names_the_password():
    with Server() as server, Tool() as tool:
        contains(tool.fails("ECONFIG", "open", server.url(login="bob:s3cret@")), "the server has no users")
        secure(server, bob="s3cret")
        contains(tool.fails("ECONFIG", "open", server.url()), "the server requires a user and a password")
        contains(tool.fails("ECONFIG", "open", server.url(login=":s3cret@")), "but no user")
        for login in ("bob:wr0ng@", "eve:wr0ng@", "bob:wr%30ng@"):
            line = timed(15, lambda: tool.fails("ECONFIG", "open", server.url(login=login)))
            contains(line, "refuses the user or the password")
            true("wr" not in line, f"the password is printed: {line}")
        tool.ok("open", server.url("jobs/1", login="bob:s%33cret@"))
        tool.ok("close")
    with Tool(USER="bob") as tool:
        contains(tool.fails("ECONFIG", "open", "etcd://127.0.0.1:1"), "'user' is set, but no 'password'")


def etcd_logs_in_again_when_the_login_is_forgotten():
    with Server() as server, Tool(USER="bob", PASSWORD="s3cret") as tool:
        secure(server, bob="s3cret")
        tool.ok("open", server.url("jobs/1"))
        tool.ok("set", "k", "v")
        server.kill()
        server.members[0].begin(server.cluster)  # it knows no token
        equal(tool.ok("get", "k"), "v")
        equal(tool.ok("add", "n", 1), "1")
        tool.tell("wait", "late", 20000)
        server.until_watched()
        with Tool(USER="bob", PASSWORD="s3cret") as other:
            other.ok("open", server.url("jobs/1"))
            other.ok("set", "late", "x")
            equal(tool.hear(), "ok ")


def etcd_names_a_missing_permission():
    with Server() as server, Tool(USER="bob", PASSWORD="s3cret") as tool:
        secure(server, bob="s3cret")
        contains(tool.fails("ECONFIG", "open", server.url("mine")), "lacks a permission")


def etcd_names_a_value_that_is_too_large():
    with Server("--max-request-bytes", "600") as server, Tool() as tool:
        tool.ok("open", server.url())
        contains(tool.fails("ETOOBIG", "set", "k", "v" * 450), "larger than the server takes")
        tool.ok("set", "k", "v")


def etcd_names_a_full_server():
    with Server("--quota-backend-bytes", "500000") as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        for i in range(4):
            server.put(f"fill{i}", "v" * 200000)
        # It sees its size when it has written what came.
        until(lambda: tool.ask("set", "k", "v").startswith("error ETOOBIG: "), "the server to be full")
        contains(tool.fails("ETOOBIG", "set", "k", "w"), "the server is full")
        equal(tool.ok("get", "k"), "v")


def etcd_does_not_touch_keys_of_others():
    with Server() as server, Tool() as tool:
        server.put("test:id", "precious")
        contains(tool.fails("ECONFIG", "open", server.url()), "choose another prefix")
        equal(server.keys("test"), {"test:id": "precious"})
        contains(tool.fails("EINVAL", "open", server.url("a:b")), "a prefix has no colon")


def etcd_names_a_port_that_is_something_else():
    with Server() as server, Proxy(server.port) as proxy, Tool() as tool:
        for greeting, code, why in (
                (b"+PONG\r\n", "EPROTOCOL", "not from etcd"),
                (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "EPROTOCOL", "not from etcd"),
                (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "EUNSUPPORTED", "no JSON gateway")):
            proxy.greeting = [greeting]
            contains(timed(15, lambda: tool.fails(code, "open", url(proxy.port))), why)


def etcd_survives_answers_that_are_malformed():
    answers = ({}, {"kvs": 3}, {"kvs": [{"value": "!"}]}, {"kvs": [{"value": 7}]}, {"kvs": [{"value": "AAA="}]}, [], 3)
    with Server() as server, Proxy(server.port) as proxy:
        for answer in answers:
            body = json.dumps(answer).encode()
            with Tool() as tool:
                proxy.greeting = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body] * 1000
                true(timed(15, lambda: tool.ask("open", url(proxy.port), 300)).startswith("error "), f"{answer}")
        proxy.greeting = []


# ---- many keys ---------------------------------------------------------------------

def etcd_keeps_the_stores_of_two_prefixes_apart():
    with Server() as server, Tool() as tool, Tool() as other:
        tool.ok("open", server.url("jobs"))
        other.ok("open", server.url("jobs/1"))
        tool.ok("set", "1/k", "v")
        equal(other.ok("check", "k"), "0")
        other.ok("set", "k", "w")
        equal((tool.ok("count"), other.ok("count")), ("1", "1"))


# ---- the lease ---------------------------------------------------------------------

def etcd_keys_stay_while_a_process_lives_and_expire_afterwards():
    with Server() as server:
        tool, other = Tool(LEASE="6s"), Tool(LEASE="6s")
        tool.ok("open", server.url())
        other.ok("open", server.url())
        tool.ok("set", "k", "v")
        lease = server.keys("test:id")["test:id"].split()[1]
        tool.process.send_signal(signal.SIGKILL)
        tool.process.communicate()
        renewed, last = 0, 0

        def renewals():
            """A time to live that grows was renewed by the process that lives."""
            nonlocal renewed, last
            now = int(server.ask("lease/timetolive", {"ID": lease}).get("TTL", "0"))
            true(now > 0, "the lease is gone while a process lives")
            renewed += now > last
            last = now
            return renewed > 2
        until(renewals, "renewal of the lease")
        equal(other.ok("get", "k"), "v")
        other.process.send_signal(signal.SIGKILL)
        other.process.communicate()
        until(lambda: not server.keys("test"), "the end of the keys")


def etcd_lease_none_keeps_the_keys():
    with Server() as server, Tool(LEASE="none") as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        true(all("lease" not in kv for kv in server.ask("kv/range", {"key": text("test"), "range_end": text("tesu")})["kvs"]),
             "a key has a lease")


def etcd_lease_of_the_first_counts():
    with Server() as server, Tool(LEASE="1h") as first, Tool(LEASE="none") as second:
        first.ok("open", server.url())
        second.tell("open", server.url())
        contains(second.hear(second.process.stderr), "exists with a lease of 3600000 ms (0: none), which overrides")
        second.hear()
        second.ok("set", "k", "v")
        true(all(kv.get("lease") for kv in server.ask("kv/range", {"key": text("test"), "range_end": text("tesu")})["kvs"]),
             "a key has no lease")


def etcd_close_leaves_nothing_of_a_client():
    with Server() as server:
        with Tool() as tool:
            tool.ok("open", server.url())
            tool.ok("set", "k", "v")
            equal(len(server.keys("test")), 3)
        equal(sorted(server.keys("test")), ["test:/k", "test:id"])


main(globals(), "etcd_")
