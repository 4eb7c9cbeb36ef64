# SPDX-License-Identifier: Apache-2.0
"""traces_test.py - spans of groups that run, as an OpenTelemetry collector gets them."""
import http.server
import json
import re
import socket
import threading
import time

from cases import contains, equal, main, true, until
from crew import LONG_MS, SLOW, Crew, backend

KINDS = {2: "server", 3: "client"}


class Collector:
    """An HTTP server that keeps the bodies of requests. The first answers have the statuses of `first`."""

    def __init__(self, first=(), headers=()):
        self.requests, self.first = [], list(first)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(this):  # pylint: disable=no-self-argument
                body = this.rfile.read(int(this.headers["Content-Length"]))
                status = self.first.pop(0) if self.first else 200
                this.send_response(status)
                for name, value in headers:
                    this.send_header(name, value)
                this.send_header("Content-Type", "application/json")
                this.send_header("Content-Length", "2")
                this.end_headers()
                this.wfile.write(b"{}")
                self.requests.append((status, this.path, dict(this.headers), body))

            def log_message(this, *_):  # pylint: disable=no-self-argument,arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def spans(self):
        """All spans that were accepted, each with the worker of its resource."""
        return [span for status, _, _, body in list(self.requests) if status == 200 for span in spans_of(json.loads(body))]


# ---- the fields of ExportTraceServiceRequest, by opentelemetry-proto 1 and its rules for JSON -------

def fields(what, wanted, optional=()):
    true(set(wanted) <= set(what) <= set(wanted) | set(optional), f"fields {sorted(what)}, expected {sorted(wanted)}")


def attributes(listed):
    found = {}
    for each in listed:
        fields(each, ["key", "value"])
        (kind, value), = each["value"].items()
        true(kind in ("stringValue", "intValue") and isinstance(value, str), f"value {each['value']}")
        found[each["key"]] = int(value) if kind == "intValue" else value
    equal(len(found), len(listed), "different keys")
    return found


def check_span(span):
    fields(span, ["traceId", "spanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes",
                  "status"], ["parentSpanId"])
    true(re.fullmatch("[0-9a-f]{32}", span["traceId"]), span["traceId"])
    for key in ("spanId", "parentSpanId"):
        true(re.fullmatch("[0-9a-f]{16}", span.get(key, "0" * 16)), span)
    true(isinstance(span["flags"], int) and span["flags"] & 1, f"flags {span['flags']}")
    times = [span["startTimeUnixNano"], span["endTimeUnixNano"]]
    true(all(isinstance(t, str) and t.isdigit() for t in times), f"times {times}")
    start, end = (int(t) / 1e9 for t in times)
    true(time.time() - 600 < start <= end <= time.time() + 1, f"from {start} to {end}")
    fields(span["status"], [], ["code"])


def spans_of(request):
    fields(request, ["resourceSpans"])
    for of_resource in request["resourceSpans"]:
        fields(of_resource, ["resource", "scopeSpans"])
        fields(of_resource["resource"], ["attributes"])
        resource = attributes(of_resource["resource"]["attributes"])
        for of_scope in of_resource["scopeSpans"]:
            fields(of_scope, ["scope", "spans"])
            fields(of_scope["scope"], ["name", "version"])
            for span in of_scope["spans"]:
                check_span(span)
                yield {**span, "attributes": attributes(span["attributes"]), "resource": resource}


# ---- cases -----------------------------------------------------------------------------------------

def traced(url, ratio="1", **more):
    return backend(TENREC_OBSERVE__TRACES=url, TENREC_OBSERVE__TRACES_RATIO=ratio, **more)


def traces_of_three_workers_form_one_tree():
    with Collector() as collector, Crew() as crew:
        crew.run(3, env=traced(collector.url, TENREC_OBSERVE__TRACES_SERVICE="forest"))
        crew.all("init")
        seen = crew[0].do("call worker1 relay 20000 worker2")
        true(re.search(r"00-[0-9a-f]{32}-[0-9a-f]{16}-03", seen), seen)
        crew.leave()
        spans = [s for s in collector.spans() if s["name"] == "relay"]
        by_id = {s["spanId"]: s for s in spans}
        equal(len(by_id), 4, "spans")
        equal({s["traceId"] for s in spans}, {re.search("00-([0-9a-f]{32})", seen)[1]}, "traces")
        (leaf,) = by_id.keys() - {s.get("parentSpanId") for s in spans}
        way, flags = [], []
        while leaf:
            span = by_id[leaf]
            equal(span["attributes"]["rpc.system.name"], "tenrec")
            equal(span["attributes"]["rpc.method"], "relay")
            equal(span["resource"]["service.name"], "forest")
            equal(span["resource"]["telemetry.sdk.name"], "tenrec")
            true(span["resource"]["process.pid"] in [p.pid for p in crew.puppets.values()], span["resource"])
            way.append((KINDS[span["kind"]], span["resource"]["service.instance.id"],
                        span["attributes"].get("server.address")))
            flags.append(span["flags"] & 0x300)
            leaf = span.get("parentSpanId")
        equal(way, [("server", "worker2", None), ("client", "worker1", "worker2"), ("server", "worker1", None),
                    ("client", "worker0", "worker1")], "way")
        equal(flags, [0x300, 0x100, 0x300, 0])


def traces_name_the_error_and_carry_the_headers():
    headers = "{x-key: only-for-the-collector}"
    with Collector() as collector, Crew() as crew:
        crew.run(2, env=traced(f"{collector.url}/otlp?tenant=7", TENREC_OBSERVERS__OTLP__HEADERS=headers))
        crew.all("init")
        equal(crew[0].fails("call worker1 missing 20000")[0], "ENOFUNCTION")
        until(lambda: [s for s in collector.spans() if s["name"] == "missing"], "span")
        (span,) = [s for s in collector.spans() if s["name"] == "missing"]
        equal(span["status"], {"code": 2})
        equal(span["attributes"]["error.type"], "ENOFUNCTION")
        _, path, sent, _ = collector.requests[0]
        equal((path, sent["x-key"], sent["Content-Type"]), ("/otlp?tenant=7", "only-for-the-collector", "application/json"))
        crew.leave()


def traces_are_sent_again_to_a_busy_collector():
    with Collector(first=[503]) as collector, Crew() as crew:
        crew.run(1, env=traced(collector.url))
        crew.all("init")
        crew[0].do("call worker0 echo 20000 1")
        until(collector.spans, "spans")
        equal(collector.requests[0][0], 503)
        equal(collector.requests[0][3], collector.requests[1][3])
        warned = shut_down(crew)
        contains(warned, "is busy (HTTP 503)")


def shut_down(crew):
    """Ends it; within the second of the last try. The warnings of the workers."""
    before = time.monotonic()
    crew.all(f"shutdown graceful {LONG_MS}")
    took = time.monotonic() - before
    true(took < 2.5 * SLOW, f"shutdown took {took:.2f} s")
    crew.release()
    status, out, errors = crew.ended()
    equal((status, out), (0, ""))
    return errors


def traces_to_this_host_ask_no_proxy():
    nobody = "http://127.0.0.1:9"
    with Collector() as collector, Crew() as crew:
        crew.run(1, env=traced(collector.url, http_proxy=nobody, ALL_PROXY=nobody))
        crew.all("init")
        crew[0].do("call worker0 echo 20000 1")
        until(collector.spans, "spans")
        crew.leave()


def traces_warn_of_another_host_whose_name_begins_as_an_address_of_this():
    with Crew().run(1, env=traced("http://127.evil.invalid:4318", TENREC_OBSERVERS__OTLP__HEADERS="{x-key: secret}")) as crew:
        crew.all("init")
        contains(shut_down(crew), "spans and secret headers go to http://127.evil.invalid:4318/v1/traces without TLS")


def traces_follow_no_redirect():
    with Collector() as other, Collector(first=[307], headers=[("Location", f"{other.url}/v1/traces")]) as collector, \
            Crew() as crew:
        crew.run(1, env=traced(collector.url))
        crew.all("init")
        crew[0].do("call worker0 echo 20000 1")
        contains(shut_down(crew), "redirects (HTTP 307), which is not followed")
        equal(other.requests, [])


def traces_delay_no_end_with_a_silent_collector():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with Crew().run(2, env=traced(f"http://127.0.0.1:{silent.getsockname()[1]}")) as crew:
            crew.all("init")
            for _ in range(20):
                crew[0].do("call worker1 add 20000 1 2")
            lines = [line for line in shut_down(crew).splitlines() if "the collector did not accept spans" in line]
            equal(len(lines), 2, "a line of each worker")


def traces_with_a_wrong_address_stop_no_worker():
    with Crew().run(1, env=traced("ftp://127.0.0.1/")) as crew:
        crew.all("init")
        crew[0].do("call worker0 echo 20000 1")
        contains(shut_down(crew), "spans are not exported: observer 'otlp': 'ftp://127.0.0.1/': expected http:// or https://")


main(globals(), "traces_")
