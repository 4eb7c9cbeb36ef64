# SPDX-License-Identifier: Apache-2.0
"""metrics_test.py - the metrics of groups that run, as Prometheus reads them."""
import http.client
import os
import re
import signal
import socket
import subprocess

from cases import contains, equal, main, true, until
from crew import Crew, backend, free_port
from metrics_http import read, read_or_none, workers_of


def served(port, workers):
    until(lambda: workers_of(read_or_none(port)) == workers, f"metrics of {workers}")
    return read(port)


def metrics_of_all_workers_of_a_host_have_one_address():
    port = free_port()
    env = backend(TENREC_OBSERVE__METRICS=f"127.0.0.1:{port}", TENREC_OBSERVERS__PROMETHEUS__SERVER_ADDRESS="true")
    with Crew().run(3, env=env) as crew:
        crew.all("init")
        crew.all("call worker1 add 20000 1 2")
        text = served(port, ["worker0", "worker1", "worker2"])
        for worker in ("worker0", "worker2"):
            true(re.search(rf'^rpc_client_call_duration_seconds_count\{{tenrec_worker_name="{worker}",.*rpc_method="add",'
                           r'server_address="worker1"\} 1$', text, re.MULTILINE), f"no call of {worker} in {text}")
        contains(text, "tenrec_metrics_missing_processes 0\n")
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                                 timeout=60, check=False)
        equal((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        crew.leave()


def metrics_go_on_when_the_process_that_serves_dies():
    port = free_port()
    with Crew().run(3, "--elastic", "1:3", env=backend(TENREC_OBSERVE__METRICS=f"127.0.0.1:{port}")) as crew:
        crew.all("init")
        served(port, ["worker0", "worker1", "worker2"])
        listening = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, timeout=20,
                                   check=True).stdout
        server = int(re.search(r"pid=(\d+)", listening)[1])
        dead = next(p for p in crew.puppets.values() if p.pid == server)
        dead.send_signal(signal.SIGKILL)
        left = [f"worker{r}" for r in range(3) if r != dead.rank]
        text = served(port, left)
        contains(text, "tenrec_metrics_missing_processes 0\n")


def metrics_name_a_process_that_does_not_answer():
    port = free_port()
    env = backend(TENREC_OBSERVE__METRICS=f"127.0.0.1:{port}", TENREC_OBSERVERS__PROMETHEUS__TIMEOUT="100ms")
    with Crew().run(2, env=env) as crew:
        crew.all("init")
        served(port, ["worker0", "worker1"])
        listening = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, timeout=20,
                                   check=True).stdout
        other = next(p for p in crew.puppets.values() if f"pid={p.pid}," not in listening)
        other.stop()
        contains(read(port), "tenrec_metrics_missing_processes 1\n")
        other.send_signal(signal.SIGCONT)
        served(port, ["worker0", "worker1"])
        crew.leave()


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def metrics_at_a_unix_socket_are_for_its_user():
    with Crew() as crew:
        path = f"{crew.folder.name}/metrics.sock"
        crew.run(1, env=backend(TENREC_OBSERVE__METRICS=f"unix:{path}"))
        crew.all("init")
        until(lambda: os.path.exists(path), "the socket")
        equal(os.stat(path).st_mode & 0o777, 0o600, "mode")
        link = Local(path)
        link.request("GET", "/metrics")
        contains(link.getresponse().read().decode(), 'tenrec_worker_name="worker0"')
        link.close()
        crew.leave()
        true(not os.path.exists(path), "the socket is still there")


def metrics_serve_nothing_else():
    port = free_port()
    with Crew().run(1, env=backend(TENREC_OBSERVE__METRICS=f"127.0.0.1:{port}")) as crew:
        crew.all("init")
        served(port, ["worker0"])
        for method, path, status in (("GET", "/", 404), ("POST", "/metrics", 405), ("GET", "/metrics/../x", 404), ("HEAD", "/metrics", 200)):
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            link.request(method, path)
            equal(link.getresponse().status, status, f"{method} {path}")
            link.close()
        crew.leave()


def metrics_that_cannot_be_served_stop_no_worker():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with Crew().run(2, env=backend(TENREC_OBSERVE__METRICS=f"127.0.0.1:{taken.getsockname()[1]}", TENREC_LOG="error")) as crew:
            crew.all("init")
            crew.all("call worker1 add 20000 1 2")
            crew.leave()


main(globals(), "metrics_")
