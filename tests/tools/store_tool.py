# SPDX-License-Identifier: Apache-2.0
"""store_tool.py - the store tool of a test of a store plugin, the first argument of its program."""
import os
import select
import subprocess
import sys

from cases import environment, equal, true

TOOL = sys.argv[1]
LIMIT_S = 20 * float(os.environ.get("TENREC_TEST_SLOW", "1"))


class Tool:
    """A process that has a store open and executes orders."""
    plugin = ""  # in capitals
    logs = ("cannot renew the lease",)  # each line that it may log has one of them

    def __init__(self, **options):
        env = environment(**{f"TENREC_STORES__{self.plugin}__{k}": v for k, v in options.items()})
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env)

    def tell(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()

    def hear(self, stream=None):
        """The next line, of the answers or of stderr."""
        stream = stream or self.process.stdout
        true(select.select([stream], [], [], LIMIT_S)[0], f"no line within {LIMIT_S} s")
        return stream.readline().rstrip("\n")

    def ask(self, *words):
        self.tell(*words)
        return self.hear()

    def ok(self, *words):
        line = self.ask(*words)
        true(line.startswith("ok "), f"{words}: {line}")
        return line[3:]

    def fails(self, code, *words):
        line = self.ask(*words)
        true(line.startswith(f"error {code}: "), f"{words}: {line}, expected {code}")
        return line

    def spent(self):
        """Processor time in seconds, of the threads that run. That of /proc/PID/stat is counted in ticks, of which a short run may get a whole one."""
        spent_ns = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat", encoding="ascii") as f:
                spent_ns += int(f.read().split()[0])
        return spent_ns / 1e9

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
        _, errors = self.process.communicate(timeout=LIMIT_S)
        if not kind and self.process.returncode >= 0:
            equal(self.process.returncode, 0, "status of the tool")
            for line in errors.splitlines():
                true(any(part in line for part in self.logs), line)
