# SPDX-License-Identifier: Apache-2.0
"""api.py - a stub of the API server of a cluster, as far as a store uses it: ConfigMaps with
resourceVersions, label selectors, watches, conditions and garbage collection, and a pod. It checks
what a real one checks, and fails on order."""
import base64
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools"))
from ports import free_port  # pylint: disable=wrong-import-position

LIMIT_S = 20 * float(os.environ.get("TENREC_TEST_SLOW", "1"))
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def until(condition, what):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        threading.Event().wait(0.01)


def selects(selector, labels):
    """Of "a=b" and "a in (b,c)", with commas between them."""
    for key, equal, values in re.findall(r"([\w-]+)(?:=([\w.-]*)| in \(([\w.,-]*)\))", selector):
        if labels.get(key) not in ([equal] if equal else values.split(",")):
            return False
    return True


class Refused(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code = code
        self.body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else an answer's body waits until the client acknowledges its head, 40 ms each time

    def log_message(self, *_):
        pass

    def answer(self, code, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode() + b"\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def serve(self):
        api = self.server.api
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
        url = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        api.asked.append((self.command, self.path))
        fault = api.fault(self.command, query)
        try:
            api.running.wait()
            if api.closed:
                self.close_connection = True
                return
            if fault and fault[0] == "answer":
                self.answer(fault[1], fault[2])
                return
            api.authorize(self.headers.get("Authorization"), self.command, query, url.path)
            if fault and fault[0] == "drop before":
                self.close_connection = True
                return
            if "watch" in query:
                self.watch(api, query)
                return
            code, got = api.do(self.command, url.path, query, body, self.headers.get("Content-Type"))
            if fault and fault[0] == "drop after":
                for then in fault[1:]:
                    then()
                self.close_connection = True
                return
            self.answer(code, got)
        except Refused as refused:
            self.answer(refused.code, refused.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def watch(self, api, query):
        since, end = int(query["resourceVersion"]), time.monotonic() + float(query.get("timeoutSeconds", 60))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def say(event):
            data = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        number = api.watch_begins()
        try:
            while time.monotonic() < end and number > api.broken:
                with api.lock:
                    if since < api.compacted:
                        events = [{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}]
                    else:
                        events = [e for v, e in api.events if v > since and selects(query["labelSelector"], e["object"]["metadata"]["labels"])]
                        since = api.version
                    if api.noise:
                        events, api.noise = [api.noise.pop(0)], api.noise
                for event in events:
                    say(event)
                    if event != b"" and isinstance(event, dict) and event["type"] == "ERROR":
                        return
                with api.changed:
                    if api.version <= since and number > api.broken and not api.noise:
                        api.changed.wait(0.2)
            if number > api.broken:
                say(b"")  # the end
        finally:
            api.watch_ends()
            self.close_connection = True


class Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass

    def get_request(self):
        link, address = super().get_request()
        if self.api.context:
            link.settimeout(LIMIT_S)
            link = self.api.context.wrap_socket(link, server_side=True)
            link.settimeout(None)
        self.api.links.add(link)
        return link, address


class Api:
    """The cluster; started on a port that it keeps."""

    def __init__(self, certificate=None):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.running = threading.Event()
        self.running.set()
        self.objects, self.version, self.events, self.compacted = {}, 100, [], 0
        self.faults, self.noise, self.asked = [], [], []
        self.tokens, self.forbidden, self.rights = None, set(), {}
        self.watching, self.watched, self.broken = 0, 0, 0
        self.links, self.closed, self.context = set(), False, None
        self.pods = {}
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.port = free_port()
        self.start()

    # ---- its process ----

    def start(self):
        self.closed = False
        self.http = Http(("127.0.0.1", self.port), Handler, bind_and_activate=False)
        self.http.api = self
        self.http.allow_reuse_address = True
        self.http.server_bind()
        self.http.server_activate()
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def kill(self):
        """Its port refuses, its connections end. What it keeps stays, as in etcd."""
        self.closed = True
        self.break_watches()
        self.http.shutdown()
        self.http.server_close()
        self.running.set()
        for link in list(self.links):
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.links.clear()

    def stop(self):
        """It takes connections and answers nothing."""
        self.running.clear()
        self.break_watches()

    def go_on(self):
        self.running.set()

    def break_watches(self):
        with self.changed:
            self.broken = self.watched
            self.changed.notify_all()

    def watch_begins(self):
        with self.lock:
            self.watching += 1
            self.watched += 1
            return self.watched

    def watch_ends(self):
        with self.lock:
            self.watching -= 1

    def until_watched(self):
        until(lambda: self.watching > 0, "a watch")

    # ---- faults ----

    def fail(self, verb, *fault):
        """The next request with that verb: ("answer", code, body), ("drop before",), ("drop after",),
        with a function that is called then, or without."""
        self.faults.append((verb, fault))

    def fault(self, verb, query):
        verb = "WATCH" if "watch" in query else verb
        with self.lock:
            for i, (wanted, fault) in enumerate(self.faults):
                if wanted == verb:
                    del self.faults[i]
                    return fault
        return None

    def authorize(self, header, verb, query, url):
        if self.tokens is not None and header not in [f"Bearer {t}" for t in self.tokens]:
            raise Refused(401, "Unauthorized", "Unauthorized")
        verb = "WATCH" if "watch" in query else verb
        words = {"WATCH": "watch", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
                 "GET": "list" if "labelSelector" in query else "get"}
        self.rights.setdefault("pods" if "/pods/" in url else "configmaps", set()).add(words[verb])
        if verb in self.forbidden:
            raise Refused(403, "Forbidden", f'configmaps is forbidden: User "system:serviceaccount:jobs:default" cannot {verb.lower()}')

    def compact(self):
        """Older versions can be watched no longer."""
        with self.changed:
            self.version += 1
            self.compacted = self.version
            self.events.clear()
            self.changed.notify_all()

    # ---- what it keeps ----

    def event(self, kind, item):
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, {"type": kind, "object": json.loads(json.dumps(item))}))
        self.changed.notify_all()

    def collect(self):
        """Garbage: what lost its owner."""
        uids = {o["metadata"]["uid"] for o in self.objects.values()} | {p["metadata"]["ownerReferences"][0]["uid"] for p in self.pods.values()}
        lost = [key for key, item in self.objects.items() if item["metadata"].get("ownerReferences")
                and not any(o["uid"] in uids for o in item["metadata"]["ownerReferences"])]
        for key in lost:
            self.event("DELETED", self.objects.pop(key))
        if lost:
            self.collect()  # what these owned

    @staticmethod
    def check(item, name_space):
        meta = item.get("metadata", {})
        if item.get("kind") != "ConfigMap" or item.get("apiVersion") != "v1":
            raise Refused(400, "BadRequest", "no ConfigMap")
        if not NAME.fullmatch(meta.get("name", "")):
            raise Refused(422, "Invalid", "metadata.name: Invalid value")
        if meta.get("namespace", name_space) != name_space or not all(LABEL.fullmatch(v) for v in meta.get("labels", {}).values()):
            raise Refused(422, "Invalid", "metadata: Invalid value")
        for owner in meta.get("ownerReferences", []):
            if not all(owner.get(k) for k in ("apiVersion", "kind", "name", "uid")):
                raise Refused(422, "Invalid", "metadata.ownerReferences: Required value")
        size = sum(len(base64.b64decode(v, validate=True)) for v in item.get("binaryData", {}).values())
        size += sum(len(v.encode()) for v in item.get("data", {}).values())
        if size > 1 << 20:
            raise Refused(422, "Invalid", "[]: Too long: must have at most 1048576 bytes")

    def do(self, verb, path, query, body, kind):
        match = re.fullmatch(r"/api/v1/namespaces/([a-z0-9-]+)/(configmaps|pods)(?:/([a-z0-9.-]+))?", path)
        if not match:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        space, sort, name = match.groups()
        with self.lock:
            if sort == "pods":
                if name not in self.pods:
                    raise Refused(404, "NotFound", "no pod")
                return 200, self.pods[name]
            return getattr(self, "do_" + verb.lower())(space, name, query, body, kind)

    def find(self, space, name):
        if (space, name) not in self.objects:
            raise Refused(404, "NotFound", f'configmaps "{name}" not found')
        return self.objects[space, name]

    def do_get(self, space, name, query, *_):
        if name:
            return 200, self.find(space, name)
        items = [o for (s, _), o in self.objects.items() if s == space and selects(query.get("labelSelector", ""), o["metadata"].get("labels", {}))]
        return 200, {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": str(self.version)}, "items": items}

    def do_post(self, space, _, query, body, kind):
        self.check(body, space)
        name = body["metadata"]["name"]
        if (space, name) in self.objects:
            raise Refused(409, "AlreadyExists", f'configmaps "{name}" already exists')
        if space == "nowhere":
            raise Refused(404, "NotFound", f'namespaces "{space}" not found')
        body["metadata"].update(uid=str(uuid.uuid4()), namespace=space)
        self.objects[space, name] = body
        self.event("ADDED", body)
        return 201, body

    def do_put(self, space, name, query, body, kind):
        self.check(body, space)
        old = self.find(space, name)
        if body["metadata"].get("resourceVersion", "") not in ("", old["metadata"]["resourceVersion"]):
            raise Refused(409, "Conflict", "the object has been modified")
        body["metadata"].update(uid=old["metadata"]["uid"], namespace=space)
        self.objects[space, name] = body
        self.event("MODIFIED", body)
        return 200, body

    def do_patch(self, space, name, query, body, kind):
        item = self.find(space, name)
        if kind != "application/merge-patch+json":
            raise Refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
        if body["metadata"].get("uid", item["metadata"]["uid"]) != item["metadata"]["uid"]:
            raise Refused(409, "Conflict", "Precondition failed: UID in precondition")
        item["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations", {}))
        self.event("MODIFIED", item)
        return 200, item

    def do_delete(self, space, name, query, body, kind):
        item = self.find(space, name)
        for field, wanted in ((body or {}).get("preconditions") or {}).items():
            if item["metadata"][field] != wanted:
                raise Refused(409, "Conflict", f"Precondition failed: {field}")
        self.event("DELETED", self.objects.pop((space, name)))
        self.collect()
        return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    # ---- for tests ----

    def remove(self, name, space="default"):
        with self.lock:
            self.event("DELETED", self.objects.pop((space, name)))
            self.collect()

    def keys(self, space="default"):
        """{key: value} of all stores."""
        with self.lock:
            return {base64.b64decode(o["binaryData"]["key"]).decode(): base64.b64decode(o["binaryData"]["value"]).decode()
                    for (s, _), o in self.objects.items() if s == space and "binaryData" in o}

    def url(self, name="test"):
        return f"kubernetes://127.0.0.1:{self.port}/{name}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.closed:
            self.kill()
