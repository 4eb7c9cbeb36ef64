# SPDX-License-Identifier: Apache-2.0
"""server.py - servers of etcd of a test's own: each in its own folder, on ports that no process
else is given, ended with the test."""
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools"))
from ports import free_port  # pylint: disable=wrong-import-position

LIMIT_S = 20 * float(os.environ.get("TENREC_TEST_SLOW", "1"))


def need_server():
    """Skips the whole program where etcd is not installed."""
    if not shutil.which("etcd"):
        print("1..0 # SKIP etcd-server is not installed")
        sys.exit(0)


def text(data):
    """As the gateway has keys and values."""
    return base64.b64encode(data.encode()).decode()


def until(condition, what):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        threading.Event().wait(0.01)


class Member:
    """One server, which can be killed, stopped and started again on its port."""
    scheme, context = "http", None

    def __init__(self, folder, name, ports, options):
        self.folder, self.name, self.options = os.path.join(folder, name), name, options
        self.port, self.peer_port = ports
        self.process = None

    def begin(self, cluster):
        here, peer = f"{self.scheme}://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer_port}"
        with open(f"{self.folder}.log", "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--name", self.name, "--data-dir", self.folder, "--listen-client-urls", here,
                 "--advertise-client-urls", here, "--listen-peer-urls", peer,
                 "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
                 # 8 MiB in base64 and more.
                 "--max-request-bytes", str(16 << 20),
                 "--unsafe-no-fsync", *self.more()],  # what a killed process has written stays
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def more(self):
        return self.options

    def is_ready(self):
        """Whether it serves, with a leader."""
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended")
        return self.ask("kv/range", {"key": text("x"), "count_only": True}) is not None

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(LIMIT_S)

    def stop(self):
        """It holds its connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)  # its threads stop one after the other

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def ask(self, path, request, token=None):
        """The answer as an object; None if there is none, or an error."""
        headers = {"Authorization": token} if token else {}
        r = urllib.request.Request(f"{self.scheme}://127.0.0.1:{self.port}/v3/{path}", json.dumps(request).encode(), headers)
        try:
            with urllib.request.urlopen(r, timeout=LIMIT_S, context=self.context) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError, ValueError):
            return None


class Server:
    """One server, or several that are one cluster."""
    member = Member

    def __init__(self, *options, size=1):
        self.folder = tempfile.TemporaryDirectory(prefix="tenrec-etcd-")
        # A server that starts again waits for a leader as long, one to two seconds by default, before it leads alone.
        alone = [] if size > 1 else ["--heartbeat-interval", "30", "--election-timeout", "300"]
        self.members = [self.member(self.folder.name, f"m{i}", (free_port(), free_port()), [*alone, *options]) for i in range(size)]
        self.cluster = ",".join(f"{m.name}=http://127.0.0.1:{m.peer_port}" for m in self.members)
        self.start()

    def start(self, *members):
        """All, or those, on their ports."""
        for member in members or self.members:
            member.begin(self.cluster)
        for member in members or self.members:
            until(member.is_ready, f"{member.name} to serve")

    def kill(self):
        for member in self.members:
            member.kill()

    @property
    def port(self):
        return self.members[0].port

    def stop(self):
        for member in self.members:
            member.stop()

    def go_on(self):
        for member in self.members:
            member.go_on()

    def forget(self):
        """Its data are lost; it must not run."""
        for member in self.members:
            shutil.rmtree(member.folder)

    def url(self, prefix="test", login=""):
        hosts = ",".join(f"127.0.0.1:{m.port}" for m in self.members)
        return f"etcd://{login}{hosts}/{prefix}"

    def leader(self):
        for member in self.members:
            if member.process.poll() is None:
                status = member.ask("maintenance/status", {})
                if status and status.get("leader") == status["header"]["member_id"]:
                    return member
        raise RuntimeError("no server leads")

    def ask(self, path, request, token=None):
        return self.members[0].ask(path, request, token)

    def keys(self, prefix):
        """All that begin so, with their values."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = self.ask("kv/range", {"key": text(prefix), "range_end": text(end)})
        return {base64.b64decode(kv["key"]).decode(): base64.b64decode(kv.get("value", "")).decode()
                for kv in answer.get("kvs", [])}

    def put(self, key, value):
        self.ask("kv/put", {"key": text(key), "value": text(value)})

    def remove(self, key):
        self.ask("kv/deleterange", {"key": text(key)})

    def watchers(self):
        """Watches that clients have now."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=LIMIT_S) as answer:
                for line in answer.read().decode().splitlines():
                    if line.startswith("etcd_debugging_mvcc_watcher_total "):
                        return float(line.split()[1])
        except OSError:
            pass
        return 0

    def until_watched(self):
        until(lambda: self.watchers() > 0, "a watch")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()
