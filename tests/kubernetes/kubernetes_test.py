# SPDX-License-Identifier: Apache-2.0
"""kubernetes_test.py STORE_TOOL - the store in a cluster's API, a stub of our own, when it fails.
Prints TAP; TLS skips without openssl."""
import json
import os
import time

from api import Api, until
from cases import contains, equal, main, true
from store_certificates import CA, path
from tool import Tool as ToolOf

LOST = "has lost the store"
LEASE = {"LEASE": "1h"}  # no renewal comes between the requests of a case


class Tool(ToolOf):
    """Without TLS, unless it says more."""

    def __init__(self, **options):
        super().__init__(**{"TLS": "false", **LEASE, **options})


def timed(limit_s, action):
    since = time.monotonic()
    got = action()
    took = time.monotonic() - since
    true(took < limit_s, f"took {took:.3f} s, limit {limit_s} s")
    return got


# ---- a server that is killed or stopped --------------------------------------------

def kubernetes_goes_on_when_the_server_was_restarted():
    with Api() as api, Tool() as tool, Tool() as waits:
        tool.ok("open", api.url())
        waits.ok("open", api.url())
        tool.ok("add", "n", 3)
        waits.tell("get", "late", 20000)
        api.until_watched()
        api.kill()
        tool.tell("add", "n", 4)
        contains(tool.hear(tool.process.stderr), "does not answer, and is tried again: ")
        api.start()
        equal(tool.hear(), "ok 7")
        tool.ok("set", "late", "came")
        equal(waits.hear(), "ok came")


def kubernetes_waits_for_a_server_that_goes_on():
    with Api() as api, Tool() as tool:
        tool.ok("open", api.url())
        api.stop()
        tool.tell("add", "n", 1)
        contains(tool.hear(tool.process.stderr), "does not answer, and is tried again: ")
        api.go_on()
        equal(tool.hear(), "ok 1")


def kubernetes_is_gone_within_the_deadline():
    with Api() as api, Tool() as tool:
        tool.ok("open", api.url())
        api.kill()
        contains(timed(15, lambda: tool.fails("EPEER_LOST", "set", "k", "v", 300)), "connect")
        contains(timed(15, lambda: tool.fails("EPEER_LOST", "wait", "k", 300)), "no answer for ")
        timed(15, lambda: tool.ok("close"))


def kubernetes_open_waits_for_a_server_and_gives_up():
    with Api() as api, Tool() as tool:
        api.kill()
        contains(timed(15, lambda: tool.fails("ECONNECT", "open", api.url(), 300)),
                 f"kubernetes store 127.0.0.1:{api.port}/test: no answer for ")
        tool.tell("open", api.url())
        api.start()
        equal(tool.hear(), "ok ")


def kubernetes_goes_on_when_the_server_is_busy():
    busy = [(429, b"{}"), (500, b"slow"), (503, b""), (504, b'{"message":"etcdserver: request timed out"}')]
    with Api() as api, Tool() as tool:
        tool.ok("open", api.url())
        for code, body in busy:
            for verb in ("GET", "POST"):
                api.fail(verb, "answer", code, body)
            tool.ok("set", f"k{code}", "v")
        equal(tool.ok("count"), str(len(busy)))


def kubernetes_reports_that_the_store_was_removed():
    with Api() as api, Tool() as tool, Tool() as waits:
        tool.ok("open", api.url())
        waits.ok("open", api.url())
        tool.ok("set", "k", "v")
        waits.tell("wait", "late", 20000)
        api.until_watched()
        api.remove("tenrec-test")
        contains(timed(15, waits.hear), LOST)  # sooner than the next look
        equal(api.keys(), {})  # the cluster collects what lost its owner
        for words in (("get", "k"), ("set", "k", "w"), ("add", "n", 1), ("check", "k"), ("swap", "k", "-", "w"), ("delete", "k"), ("count",)):
            contains(tool.fails("EPEER_LOST", *words), LOST)
        tool.ok("close")
        tool.ok("open", api.url())
        equal(tool.ok("check", "k"), "0")


# ---- answers that are lost, and others that are faster -------------------------------

def kubernetes_change_is_made_once_when_its_answer_is_lost():
    for words, verb, answer, left in ((("add", "n", 5), "PUT", "6", "6"), (("add", "new", 5), "POST", "5", "5"),
                                      (("swap", "n", "1", "mine"), "PUT", "mine", "mine"),
                                      (("swap", "new", "-", "mine"), "POST", "mine", "mine"),
                                      (("set", "n", "v"), "PUT", "", "v"), (("delete", "n"), "DELETE", "1", None)):
        for fault in ("drop after", "drop before"):
            with Api() as api, Tool() as tool:
                tool.ok("open", api.url())
                tool.ok("add", "n", 1)
                api.fail(verb, fault)
                equal(tool.ok(*words), answer, f"{words} {fault}")
                equal(api.faults, [], "the answer that was to be lost")
                equal(api.keys().get("/" + words[1]), left)


def kubernetes_change_whose_answer_is_lost_is_found_among_later_ones():
    with Api() as api, Tool() as tool, Tool() as other:
        tool.ok("open", api.url())
        other.ok("open", api.url())
        tool.ok("add", "n", 1)
        api.fail("PUT", "drop after")
        api.fail("PUT", "answer", 503, b"")  # its retry is late, too
        tool.tell("add", "n", 10)
        until(lambda: not api.faults, "the request")
        for _ in range(5):
            other.ok("add", "n", 100)
        equal(tool.hear(), "ok 11")
        equal(api.keys()["/n"], "511")


def kubernetes_change_that_cannot_be_found_is_unknown():
    with Api() as api, Tool() as tool:
        tool.ok("open", api.url())
        tool.ok("add", "n", 1)

        def many_changes():
            with api.lock:
                for item in api.objects.values():
                    if "tenrec-changes" in item["metadata"].get("annotations", {}):
                        item["metadata"]["annotations"]["tenrec-changes"] = "".join(f"0123456789abcdef.{i}=9 " for i in range(16))
        api.fail("PUT", "drop after", many_changes)
        contains(tool.fails("EPEER_LOST", "add", "n", 10), "the change may have been made")


def kubernetes_add_goes_on_when_others_are_faster():
    with Api() as api, Tool() as tool:
        tool.ok("open", api.url())
        tool.ok("add", "n", 1)
        for _ in range(4):
            api.fail("PUT", "answer", 409, b'{"kind":"Status","code":409,"reason":"Conflict"}')
        equal(tool.ok("add", "n", 1), "2")
        api.fail("POST", "answer", 409, b"{}")
        tool.ok("set", "k", "v")
        api.fail("DELETE", "answer", 409, b"{}")
        equal(tool.ok("delete", "k"), "1")


def kubernetes_many_add_to_one_key_and_lose_nothing():
    with Api() as api:
        tools = [Tool() for _ in range(6)]
        for tool in tools:
            tool.ok("open", api.url())
        for _ in range(5):
            for tool in tools:
                tool.tell("add", "n", 1)
            for tool in tools:
                true(tool.hear().startswith("ok "), "add")
        equal(api.keys()["/n"], "30")
        for tool in tools:
            with tool:
                tool.ok("close")


# ---- watches -----------------------------------------------------------------------

def kubernetes_watch_that_is_too_old_is_answered_with_a_list():
    with Api() as api, Tool() as waits, Tool() as sets:
        waits.ok("open", api.url())
        sets.ok("open", api.url())
        for gone in (lambda: api.fail("WATCH", "answer", 410, b'{"kind":"Status","code":410,"reason":"Expired"}\n'), lambda: None):
            gone()
            waits.tell("get", "late", 20000)
            api.until_watched()
            api.compact()  # an ERROR with code 410 ends the watch
            sets.ok("set", "late", "came")
            equal(timed(15, waits.hear), "ok came")
            sets.ok("delete", "late")


def kubernetes_watch_that_is_closed_begins_again():
    with Api() as api, Tool() as waits, Tool() as sets:
        waits.ok("open", api.url())
        sets.ok("open", api.url())
        waits.tell("get", "late", 20000)
        for _ in range(3):
            api.until_watched()
            seen = api.watched
            api.break_watches()
            until(lambda seen=seen: api.watched > seen, "another watch")
        sets.ok("set", "late", "came")
        equal(waits.hear(), "ok came")


def kubernetes_watch_survives_lines_that_are_malformed():
    lines = [b"\n", b"{}\n", b"3\n", b"[]\n", b"{\n", b'{"type":7}\n', b'{"type":"ADDED"}\n', b'{"type":"ADDED","object":[]}\n',
             b'{"type":"ADDED","object":{"metadata":{"labels":{"tenrec-key":7}}}}\n', b'{"type":"ERROR","object":3}\n',
             b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}\n', b"\xff\xfe\n", b"[" * 5000 + b"\n"]
    with Api() as api, Tool() as waits, Tool() as sets:
        waits.ok("open", api.url())
        sets.ok("open", api.url())
        waits.tell("get", "late", 20000)
        for line in lines:
            api.noise.append(line)
        with api.changed:
            api.changed.notify_all()
        until(lambda: not api.noise, "the lines to be sent")
        sets.ok("set", "late", "came")
        equal(waits.hear(), "ok came")


def kubernetes_wait_costs_no_processor_time():
    with Api() as api, Tool() as tool:
        tool.ok("open", api.url())
        before = tool.spent()
        tool.fails("ETIMEDOUT", "wait", "nobody", 1500)
        spent_s = tool.spent() - before
        true(spent_s <= 0.05 * 1.5, f"it was busy for {spent_s:.3f} s")


def kubernetes_waits_for_more_keys_than_a_selector_names():
    with Api() as api, Tool() as waits, Tool() as sets:
        waits.ok("open", api.url())
        sets.ok("open", api.url())
        keys = [f"k{i}" for i in range(70)]
        for key in keys[1:]:
            sets.ok("set", key, "v")
        equal(waits.ok("check", *keys[1:]), "1")
        waits.tell("wait", ",".join(keys[:1]), 20000)
        api.until_watched()
        sets.ok("set", keys[0], "v")
        equal(waits.hear(), "ok ")
        equal(waits.ok("count"), "70")


# ---- what it refuses, and what is hostile ---------------------------------------------

def kubernetes_survives_answers_that_are_malformed():
    value = {"metadata": {"labels": {"tenrec-key": "owner"}, "uid": "x"}, "binaryData": {"value": "!"}}
    answers = (b"", b"hello", b"{}", b"[]", b"3", b'{"items":3}', b'{"items":[3,[],{}],"metadata":{"resourceVersion":"1"}}',
               b'{"items":[],"metadata":{"resourceVersion":"../x"}}', b'{"items":[],"metadata":{"resourceVersion":7}}', b"[" * 100000,
               json.dumps({"items": [value], "metadata": {"resourceVersion": "1"}}).encode(), b'{"data":{"id":"../../etc/passwd"}}',
               b'{"data":{"id":7},"metadata":[]}', b'{"data":{"id":"0123456789abcdef"},"metadata":{"uid":"' + b"u" * 4000 + b'"}}')
    for answer in answers:
        with Api() as api, Tool() as tool:
            for _ in range(50):
                api.fail("GET", "answer", 200, answer)
            true(timed(15, lambda: tool.ask("open", api.url(), 300)).startswith("error "), f"{answer}")
            api.faults.clear()
            tool.ok("open", api.url())
            tool.ok("set", "k", "v")
            for verb in ("GET", "PUT"):
                api.fail(verb, "answer", 200, answer)
            timed(15, lambda: tool.ask("set", "k", "w", 300))
            api.faults.clear()
            tool.ok("set", "k", "x")
            equal(tool.ok("get", "k"), "x")


def kubernetes_survives_an_object_of_another():
    with Api() as api, Tool() as tool:
        tool.ok("open", api.url())
        tool.ok("set", "k", "v")
        for (_, name), item in api.objects.items():
            if name != "tenrec-test":
                item["binaryData"] = {"value": "!!"}
                item["metadata"]["annotations"] = {"tenrec-changes": "x" * 5000}
        contains(tool.fails("EPROTOCOL", "get", "k"), "malformed value")
        contains(tool.fails("EPROTOCOL", "set", "k", "w"), "malformed value")
        equal(tool.ok("delete", "k"), "1")


def kubernetes_names_a_missing_right():
    with Api() as api, Tool() as tool:
        api.forbidden = {"GET"}
        contains(timed(15, lambda: tool.fails("ECONFIG", "open", api.url())), "lacks a right: configmaps is forbidden")
        api.forbidden = {"WATCH"}
        tool.ok("open", api.url())
        contains(timed(15, lambda: tool.fails("ECONFIG", "wait", "late", 20000)), "cannot watch")


def kubernetes_names_what_is_wrong():
    with Api() as api, Tool() as tool:
        contains(tool.fails("EINVAL", "open", "kubernetes:///test"), "this process runs in no pod")
        contains(tool.fails("EINVAL", "open", api.url("jobs/1")), "has other characters than")
        contains(tool.fails("EINVAL", "open", f"kubernetes://bob:x@127.0.0.1:{api.port}/test"), "see 'token_file'")
        api.do("POST", "/api/v1/namespaces/default/configmaps", {}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tenrec-mine"}}, "")
        contains(tool.fails("ECONFIG", "open", api.url("mine")), "choose another name")
        with Tool(NAMESPACE="nowhere") as other:
            contains(other.fails("ECONFIG", "open", api.url()), "no namespace of that name")
        with Tool(NAMESPACE="../x") as other:
            contains(other.fails("ECONFIG", "open", api.url()), "is no name of a namespace")
        with Tool(TLS="true") as other:
            true(other.ask("open", api.url(), 300).startswith("error "), "TLS to a port without it")
        tool.ok("open", api.url())


def kubernetes_keeps_the_stores_of_two_names_apart():
    with Api() as api, Tool() as tool, Tool() as other, Tool(NAMESPACE="jobs") as third:
        for one, name in ((tool, "a"), (other, "b"), (third, "a")):
            one.ok("open", api.url(name))
        tool.ok("set", "k", "v")
        equal((other.ok("check", "k"), third.ok("check", "k")), ("0", "0"))
        equal((tool.ok("count"), other.ok("count"), third.ok("count")), ("1", "0", "0"))


# ---- tokens --------------------------------------------------------------------------

def write(name, text):
    with open(path(name) + ".new", "w", encoding="ascii") as f:
        f.write(text)
    os.replace(path(name) + ".new", path(name))  # as the kubelet does


def kubernetes_reads_the_token_again():
    with Api(certificate=(path("server.pem"), path("server.key"))) as api:
        write("token", "first\n")
        api.tokens = {"first"}
        with Tool(TLS="true", CA_FILE=CA, TOKEN_FILE=path("token")) as tool:
            tool.ok("open", api.url())
            tool.ok("set", "k", "v")
            api.tokens = {"first", "second"}
            write("token", "second\n")
            equal(tool.ok("get", "k"), "v")
            # It expires before the file has the next one: the operation waits.
            api.tokens = {"third"}
            tool.tell("add", "n", 1)
            until(lambda: sum(verb == "GET" for verb, _ in api.asked) > 6, "requests with the old token")
            write("token", "third\n")
            equal(tool.hear(), "ok 1")
            tool.tell("wait", "late", 20000)
            api.until_watched()
            api.tokens = {"fourth"}
            api.break_watches()
            write("token", "fourth\n")
            tool2 = Tool(TLS="true", CA_FILE=CA, TOKEN_FILE=path("token"))
            with tool2:
                tool2.ok("open", api.url())
                tool2.ok("set", "late", "x")
            equal(tool.hear(), "ok ")


def kubernetes_refuses_a_wrong_token_at_once_and_never_prints_it():
    with Api(certificate=(path("server.pem"), path("server.key"))) as api:
        write("wrong", "s3cret\n")
        api.tokens = {"right"}
        with Tool(TLS="true", CA_FILE=CA, TOKEN_FILE=path("wrong")) as tool:
            line = timed(15, lambda: tool.fails("ECONFIG", "open", api.url()))
            contains(line, "refuses the token of")
            true("s3cret" not in line, line)
        with Tool(TLS="true", TOKEN_FILE=path("wrong")) as tool:
            contains(timed(15, lambda: tool.fails("ECONFIG", "open", api.url())), "certificate is refused")
        with Tool(TLS="true", CA_FILE=CA, TOKEN_FILE=path("nothing")) as tool:
            contains(tool.fails("ECONFIG", "open", api.url()), "cannot read 'token_file'")
        with Tool(TLS="true", CA_FILE=CA, TOKEN_FILE=path("empty")) as tool:
            write("empty", "\n")
            contains(tool.fails("ECONFIG", "open", api.url()), "has no token")


def kubernetes_sends_no_token_without_tls():
    with Api() as api, Tool(TOKEN_FILE=path("token")) as tool:
        write("token", "first\n")
        api.authorize = lambda header, *_: true(header is None, "a token was sent")
        tool.ok("open", api.url())


# ---- owners and leases ----------------------------------------------------------------

def kubernetes_store_is_owned_by_the_owner_of_the_pod():
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1-2-3", "controller": True, "blockOwnerDeletion": True}
    with Api() as api:
        api.pods["train-0"] = {"metadata": {"name": "train-0", "ownerReferences": [job]}}
        os.environ.update(KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(api.port), HOSTNAME="train-0")
        try:
            tool = Tool()
        finally:
            for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HOSTNAME"):
                os.environ.pop(name, None)
        with tool:
            tool.ok("open", "kubernetes:///test")
            tool.ok("set", "k", "v")
            equal([o["name"] for o in api.objects["default", "tenrec-test"]["metadata"]["ownerReferences"]], ["train"])
            with api.lock:
                del api.pods["train-0"]
                api.collect()
            equal(api.objects, {})
            contains(tool.fails("EPEER_LOST", "get", "k"), LOST)


def kubernetes_keys_stay_while_a_process_lives_and_expire_afterwards():
    with Api() as api:
        with Tool(LEASE="3s") as tool:
            tool.ok("open", api.url())
            tool.ok("set", "k", "v")
            renewed = api.objects["default", "tenrec-test"]["metadata"]["annotations"]["tenrec-renewed"]
            until(lambda: int(api.objects["default", "tenrec-test"]["metadata"]["annotations"]["tenrec-renewed"]) > int(renewed) + 2000, "renewals")
            with Tool(LEASE="3s") as other:
                other.ok("open", api.url())
                equal(other.ok("get", "k"), "v")
        api.objects["default", "tenrec-test"]["metadata"]["annotations"]["tenrec-renewed"] = "0"
        with Tool(LEASE="3s") as tool:
            tool.ok("open", api.url())
            equal(tool.ok("check", "k"), "0")
            equal(api.keys(), {})


def kubernetes_lease_of_the_first_counts():
    with Api() as api, Tool(LEASE="1h") as first, Tool(LEASE="none") as second:
        first.ok("open", api.url())
        second.tell("open", api.url())
        contains(second.hear(second.process.stderr), "exists with a lease of 3600000 ms (0: none), which overrides")
        second.hear()


def kubernetes_many_open_a_store_that_has_expired():
    with Api() as api:
        with Tool(LEASE="1h") as tool:
            tool.ok("open", api.url())
            tool.ok("set", "k", "v")
        api.objects["default", "tenrec-test"]["metadata"]["annotations"]["tenrec-renewed"] = "0"
        tools = [Tool(LEASE="1h") for _ in range(6)]
        for tool in tools:
            tool.tell("open", api.url())
        for tool in tools:
            equal(tool.hear(), "ok ")
        for tool in tools:
            tool.ok("add", "n", 1)
        equal(api.keys(), {"/n": "6"})
        for tool in tools:
            with tool:
                tool.ok("close")


main(globals(), "kubernetes_")
