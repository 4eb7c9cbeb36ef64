# SPDX-License-Identifier: Apache-2.0
"""server.py - a Redis server of a test's own: in its own folder, on a port that no process
else is given, ended with the test."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools"))
from ports import free_port  # pylint: disable=wrong-import-position

LIMIT_S = 20 * float(os.environ.get("TENREC_TEST_SLOW", "1"))


def need_server():
    """Skips the whole program where redis-server is not installed."""
    if not shutil.which("redis-server"):
        print("1..0 # SKIP redis-server is not installed")
        sys.exit(0)


class Server:
    """One server, which can be killed, stopped and started again on its port."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="tenrec-redis-")
        self.options, self.process, self.port = options, None, free_port()
        self.start()

    def start(self):
        """Also again, on the same port."""
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir",
             self.folder.name, "--save", "", "--logfile", "", *self.more()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if "Ready to accept connections" in line:
                return
        self.process.stdout.close()
        self.process.wait(LIMIT_S)
        raise RuntimeError(f"cannot start on port {self.port}")

    def more(self):
        return self.options

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.stdout.close()
        self.process.wait(LIMIT_S)

    def stop(self):
        """It holds its connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)  # its threads stop one after the other

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def url(self, prefix="test", login=""):
        return f"redis://{login}127.0.0.1:{self.port}/{prefix}"

    def ask(self, *words, login=()):
        """What redis-cli prints."""
        done = subprocess.run(["redis-cli", "-p", str(self.port), *login, *words],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return done.stdout.strip()

    def until(self, wanted, *words):
        """Asks until the answer is that."""
        deadline = time.monotonic() + LIMIT_S
        while self.ask(*words) != wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{words}: {self.ask(*words)!r}, expected {wanted!r}")
            threading.Event().wait(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()
