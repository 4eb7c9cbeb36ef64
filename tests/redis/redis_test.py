# SPDX-License-Identifier: Apache-2.0
"""redis_test.py STORE_TOOL - the store in a Redis server when that, or the way to it,
fails. Prints TAP; skips without redis-server."""
import signal
import time

from server import LIMIT_S, Server, need_server

need_server()

from cases import contains, equal, main, true, until  # pylint: disable=wrong-import-position
from store_proxy import Proxy  # pylint: disable=wrong-import-position
from tool import Tool  # pylint: disable=wrong-import-position

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def url(port, prefix="test"):
    return f"redis://127.0.0.1:{port}/{prefix}"


def timed(limit_s, action):
    since = time.monotonic()
    got = action()
    took = time.monotonic() - since
    true(took < limit_s, f"took {took:.3f} s, limit {limit_s} s")
    return got


# ---- a server that is stopped -----------------------------------------------------

def redis_goes_on_when_a_server_that_saves_was_restarted():
    with Server(*DURABLE) as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "before")
        tool.ok("add", "n", 3)
        server.kill()
        server.start()
        equal(tool.ok("get", "k"), "before")
        equal(tool.ok("add", "n", 4), "7")


def redis_waits_for_a_server_that_is_restarted():
    with Server(*DURABLE) as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("add", "n", 1)
        server.kill()
        tool.tell("add", "n", 1)
        server.start()
        equal(tool.hear(), "ok 2")


def redis_reports_a_restart_of_a_server_that_does_not_save():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        server.kill()
        server.start()
        for words in (("get", "k"), ("set", "k", "w"), ("add", "n", 1), ("check", "k"),
                      ("wait", "k", 20000), ("count",)):
            contains(tool.fails("EPEER_LOST", *words), "has lost its keys (it was restarted "
                                                       "without persistence")
        # A new start finds an empty store, without remains of the old one.
        tool.ok("close")
        tool.ok("open", server.url())
        equal(tool.ok("check", "k"), "0")


def redis_reports_that_the_server_lost_its_last_change():
    with Server(*DURABLE) as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        for field in server.ask("HKEYS", "test:meta").split():
            if field.startswith("c:"):
                server.ask("HDEL", "test:meta", field)
        contains(tool.fails("EPEER_LOST", "get", "k"), "has lost its keys")


def redis_reports_keys_that_are_flushed_during_a_wait():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.tell("wait", "late", 20000)
        server.until("test/late\n1", "PUBSUB", "NUMSUB", "test/late")
        server.ask("FLUSHALL")
        server.ask("PUBLISH", "test/late", "")
        contains(tool.hear(), "has lost its keys")


def redis_wait_goes_on_through_a_restart():
    with Server(*DURABLE) as server, Tool() as waits, Tool() as sets:
        waits.ok("open", server.url())
        sets.ok("open", server.url())
        waits.tell("get", "late", 20000)
        server.until("test/late\n1", "PUBSUB", "NUMSUB", "test/late")
        server.kill()
        server.start()
        server.until("test/late\n1", "PUBSUB", "NUMSUB", "test/late")
        sets.ok("set", "late", "came")
        equal(waits.hear(), "ok came")


def redis_is_gone_within_the_deadline():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        server.kill()
        contains(timed(15, lambda: tool.fails("EPEER_LOST", "set", "k", "v", 300)),
                 "Connection refused")
        contains(timed(15, lambda: tool.fails("EPEER_LOST", "wait", "k", 300)), "no answer for ")
        timed(15, lambda: tool.ok("close"))


def redis_that_is_silent_ends_at_the_deadline():
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


def redis_open_waits_for_a_server_and_gives_up():
    with Server() as server, Tool() as tool:
        server.kill()
        contains(timed(15, lambda: tool.fails("ECONNECT", "open", server.url(), 300)),
                 f"redis store 127.0.0.1:{server.port}/test: no answer for ")
        tool.tell("open", server.url())
        server.start()
        equal(tool.hear(), "ok ")


# ---- answers that are lost --------------------------------------------------------

def redis_change_is_made_once_when_its_answer_is_lost():
    for first, words, answer, check in (
            ("HINCRBY", ("add", "n", 5), "5", "5"),
            ("HSET', keys, ARGV[5], ARGV[7]", ("swap", "n", "-", "mine"), "mine", "mine"),
            ("HDEL', keys", ("delete", "n"), "1", None)):
        with Server() as server, Proxy(server.port) as proxy, Tool() as tool:
            tool.ok("open", url(proxy.port))
            if words[0] == "delete":
                tool.ok("set", "n", "v")
            proxy.cut = first.encode()
            equal(tool.ok(*words), answer)
            equal(proxy.cut, None, "the answer that was to be cut")
            if check:
                equal(tool.ok("get", "n"), check)
            else:
                equal(tool.ok("check", "n"), "0")


def redis_swap_that_was_made_succeeds_when_its_answer_is_lost():
    with Server() as server, Proxy(server.port) as proxy, Tool() as tool:
        tool.ok("open", url(proxy.port))
        tool.ok("swap", "lock", "-", "mine")
        proxy.cut = b"ARGV[7]"
        tool.tell("swap", "lock", "mine", "free")
        equal(tool.hear(), "ok free")
        equal(server.ask("HGET", "test", "/lock"), "free")


# ---- a server that refuses --------------------------------------------------------

def redis_names_the_password():
    with Server("--requirepass", "s3cret") as server, Tool() as tool:
        contains(tool.fails("ECONFIG", "open", server.url()), "the server requires a password")
        for login in (":wr0ng@", "bob:wr0ng@", ":wr%30ng@"):
            line = timed(15, lambda: tool.fails("ECONFIG", "open", server.url(login=login)))
            contains(line, "refuses the user or the password")
            true("wr" not in line, f"the password is printed: {line}")
        tool.ok("open", server.url(login=":s3cret@"))
        tool.ok("close")
        tool.ok("open", server.url(login="default:s%33cret@"))


def redis_takes_the_password_from_the_environment():
    with Server("--requirepass", "s3cret") as server:
        with Tool(PASSWORD="s3cret") as tool:
            tool.ok("open", server.url())
        with Tool(USER="default", PASSWORD="s3cret") as tool:
            tool.ok("open", server.url())
        with Tool(USER="default") as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "'user' is set, but no 'password'")


RIGHTS = "+eval +hget +hset +hsetnx +hlen +hdel +hexists +hincrby +pexpire +publish " \
    "+subscribe +unsubscribe +ping".split()


def redis_needs_few_rights_and_names_a_missing_right():
    with Server() as server:
        server.ask("ACL", "SETUSER", "bob", "on", ">pw", "~jobs*", "&jobs*", *RIGHTS)
        with Tool() as tool, Tool() as other:
            tool.ok("open", server.url("jobs/1", "bob:pw@"))
            other.ok("open", server.url("jobs/1", "bob:pw@"))
            tool.tell("wait", "k", 20000)
            server.until("jobs/1/k\n1", "PUBSUB", "NUMSUB", "jobs/1/k")
            other.ok("add", "k", 1)
            equal(tool.hear(), "ok ")
        with Tool() as tool:
            contains(tool.fails("ECONFIG", "open", server.url("mine", "bob:pw@")), "lacks a permission")
            server.ask("ACL", "SETUSER", "bob", "resetchannels")
            contains(tool.fails("ECONFIG", "open", server.url("jobs/1", "bob:pw@")),
                     "lacks a permission")


def redis_says_that_no_password_is_needed():
    with Server() as server, Tool() as tool:
        contains(tool.fails("ECONFIG", "open", server.url(login=":pw@")), "the server has no password")


def redis_names_a_read_only_replica():
    with Server() as server, Tool() as tool:
        server.ask("REPLICAOF", "127.0.0.1", "1")
        contains(tool.fails("ECONFIG", "open", server.url()), "read-only replica")


def redis_names_a_full_server():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        server.ask("CONFIG", "SET", "maxmemory", "1")
        contains(tool.fails("ETOOBIG", "set", "k", "w"), "the server is full")
        equal(tool.ok("get", "k"), "v")
        server.ask("CONFIG", "SET", "maxmemory", "0")
        tool.ok("set", "k", "w")


def redis_does_not_touch_keys_of_others():
    with Server() as server, Tool() as tool:
        server.ask("SET", "test", "precious")
        contains(tool.fails("ECONFIG", "open", server.url()), "choose another prefix")
        equal(server.ask("GET", "test"), "precious")


def redis_waits_while_the_server_loads():
    with Server() as server, Proxy(server.port) as proxy, Tool() as tool:
        proxy.greeting = [b"-LOADING Redis is loading the dataset in memory\r\n"] * 3
        tool.ok("open", url(proxy.port))
        true(proxy.n > 3, "nothing was tried again")
        with Tool() as other:
            proxy.greeting = [b"-LOADING Redis is loading the dataset in memory\r\n"] * 1000
            contains(other.fails("EPEER_LOST", "open", url(proxy.port), 300), "still loading")


def redis_names_a_port_that_is_something_else():
    with Server() as server, Proxy(server.port) as proxy, Tool() as tool:
        proxy.greeting = [b"HTTP/1.1 400 Bad Request\r\n\r\n"]
        contains(timed(15, lambda: tool.fails("EPROTOCOL", "open", url(proxy.port))),
                 "the reply is not from a Redis server without TLS")
        proxy.greeting = [b"-MOVED 3999 127.0.0.1:6381\r\n"]
        contains(tool.fails("EUNSUPPORTED", "open", url(proxy.port)), "Redis Cluster")


def redis_uses_the_database_that_the_options_name():
    with Server() as server:
        with Tool(DATABASE="3") as tool:
            tool.ok("open", server.url())
            tool.ok("set", "k", "v")
            equal(server.ask("-n", "3", "HGET", "test", "/k"), "v")
        with Tool(DATABASE="16") as tool:
            contains(tool.fails("ECONFIG", "open", server.url()), "no such database")


# ---- the lease --------------------------------------------------------------------

def redis_keys_stay_while_a_process_lives_and_expire_afterwards():
    with Server() as server:
        tool, other = Tool(LEASE="3s"), Tool(LEASE="3s")
        tool.ok("open", server.url())
        other.ok("open", server.url())
        tool.ok("set", "k", "v")
        tool.process.send_signal(signal.SIGKILL)
        tool.process.communicate()
        renewed, last = 0, 0

        def renewals():
            """A time to live that grows was renewed by the one that lives."""
            nonlocal renewed, last
            now = int(server.ask("PTTL", "test"))
            true(now > 0, "the keys are gone while a process lives")
            renewed += now > last
            last = now
            return renewed > 3
        until(renewals, "renewal of the lease")
        equal(other.ok("get", "k"), "v")
        other.process.send_signal(signal.SIGKILL)
        other.process.communicate()
        server.until("0", "EXISTS", "test", "test:meta")


def redis_lease_none_keeps_the_keys():
    with Server() as server, Tool(LEASE="none") as tool:
        tool.ok("open", server.url())
        tool.ok("set", "k", "v")
        equal(server.ask("PTTL", "test"), "-1")


def redis_lease_of_the_first_counts():
    with Server() as server, Tool(LEASE="1h") as first, Tool(LEASE="none") as second:
        first.ok("open", server.url())
        second.tell("open", server.url())
        contains(second.hear(second.process.stderr), "exists with a lease of 3600000 ms (0: none), which overrides")
        second.hear()
        second.ok("set", "k", "v")
        true(int(server.ask("PTTL", "test")) > 3500000, "the lease is not that of the first")


def redis_close_leaves_nothing_of_a_client():
    with Server() as server:
        with Tool() as tool:
            tool.ok("open", server.url())
            tool.ok("set", "k", "v")
            equal(server.ask("HLEN", "test:meta"), "3")
        equal(sorted(server.ask("HKEYS", "test:meta").split()), ["id", "lease"])


def redis_wait_costs_no_processor_time():
    with Server() as server, Tool() as tool:
        tool.ok("open", server.url())
        before = tool.spent()
        tool.fails("ETIMEDOUT", "wait", "nobody", 1500)
        spent_s = tool.spent() - before
        true(spent_s <= 0.05 * 1.5, f"it was busy for {spent_s:.3f} s")


main(globals(), "redis_")
