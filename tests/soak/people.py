# SPDX-License-Identifier: Apache-2.0
"""people.py - the workers of a soak as processes, and the store they meet in."""
import os
import select
import shlex
import signal
import subprocess
import sys
import time

SLOW = float(os.environ.get("TENREC_TEST_SLOW", "1"))
WRAPPER = shlex.split(os.environ.get("TENREC_TEST_WRAPPER", ""))
LIMIT_S = {"ready": 30, "pause": 30, "resume": 10, "stats": 10, "gather": 10, "leave": 25}


class Broken(Exception):
    """Something that must hold does not."""


class Store:
    def __init__(self, actor, folder):
        with open(f"{folder}/store.err", "w", encoding="ascii") as errors:
            self.process = subprocess.Popen([actor, "--store"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, text=True)
        self.port = self.process.stdout.readline().strip()
        if not self.port:
            raise Broken("the store did not start")

    def close(self):
        if self.process.stdin.closed:
            return
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=30)


def listening_ports(pid):
    """TCP ports of a process that anybody on this host may connect to."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}").removeprefix("socket:[").rstrip("]"))
        except OSError:
            pass  # closed meanwhile
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes]


class Stranger:
    """A hostile process (stranger.py) that gets the addresses of the others."""

    def __init__(self, folder, seed):
        with open(f"{folder}/stranger.err", "w", encoding="ascii") as errors:
            self.process = subprocess.Popen(
                [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "stranger.py"), str(seed)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.told, self.is_resting = None, False

    def rest(self):
        """Returns when no connection of the stranger is open: it attacks again after the next order."""
        self.tell("rest")
        if not select.select([self.process.stdout], [], [], 20 * SLOW)[0] or not self.process.stdout.readline():
            raise Broken("the stranger does not rest")
        self.told, self.is_resting = None, True

    def go_on(self):
        self.is_resting = False

    def look(self, actors, store):
        ports = [port for actor in actors for port in actor.ports()]
        if ports == self.told or self.is_resting:
            return
        self.told = ports
        self.tell(f"attack {store.port} {' '.join(map(str, ports))}")

    def tell(self, line):
        if self.process.poll() is not None:
            raise Broken(f"the stranger ended by itself: status {self.process.returncode}")
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self):
        """Returns how often the stranger did each of its attacks, in words."""
        if self.process.stdin.closed:
            return ""
        said, _ = self.process.communicate(timeout=30)
        return said.strip()


class Actor:
    """One life of one worker. It answers orders in their turn."""
    killed = set()  # (slot, life) of those that may have calls without an end
    stops = []      # (slot, from, to): when a worker was stopped

    def __init__(self, o, folder, slot, life, env):
        self.slot, self.life, self.name = slot, life, f"worker{slot} in life {life}"
        self.got, self.stats = b"", {}
        self.awaits = [("ready", time.monotonic())]
        self.is_leaving = self.has_left = False
        self.continue_at, self.stopped_at, self.listens = None, None, []
        self.may_miss_others = False
        self.is_faulty = o.backend == "faulty"
        with open(f"{folder}/{slot}.{life}.err", "w", encoding="ascii") as errors:
            self.process = subprocess.Popen(
                [*WRAPPER, o.actor, f"{folder}/{slot}.{life}.ledger", str(o.seed), str(slot), str(life),
                 str(o.callers), str(o.large << 18)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env)
        os.set_blocking(self.process.stdout.fileno(), False)

    def __str__(self):
        doing = ", ".join(what for what, _ in self.awaits)
        return f"{self.name} ({'stopped' if self.continue_at else doing or 'working'})"

    def is_free(self):
        return not self.awaits and not self.continue_at

    def ports(self):
        if not self.listens and not self.awaits:
            self.listens = listening_ports(self.process.pid)
        return self.listens

    def ask(self, line, what):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        self.awaits.append((what, time.monotonic()))

    def leave(self):
        self.is_leaving = True
        self.ask("leave", "leave")

    def kill(self):
        Actor.killed.add((self.slot, self.life))
        self.process.kill()
        self.process.wait(timeout=30)
        if self.continue_at:
            self.note_stop(time.monotonic())
        self.forget()

    def forget(self):
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def stop(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped_at = time.monotonic()
        self.continue_at = self.stopped_at + seconds

    def note_stop(self, now):
        Actor.stops.append((self.slot, self.stopped_at, now))
        self.continue_at = None

    def look(self, now):
        if self.continue_at and now >= self.continue_at:
            self.process.send_signal(signal.SIGCONT)
            self.note_stop(now)
        try:
            piece = os.read(self.process.stdout.fileno(), 65536)
            if piece == b"" and not self.has_left:
                raise Broken(f"{self.name} ended by itself: status {self.process.wait(timeout=30)}")
            self.got += piece
        except BlockingIOError:
            pass
        *lines, self.got = (self.got + b"").split(b"\n")
        for line in lines:
            self.take(line.decode())
        if self.awaits and not self.continue_at:
            what, since = self.awaits[0]
            if now - since > LIMIT_S[what] * SLOW:
                raise Broken(f"{self.name}: no answer to '{what}' within {LIMIT_S[what] * SLOW:.0f} s")

    def take(self, line):
        if not self.awaits:
            raise Broken(f"{self.name} says unasked: {line}")
        what, since = self.awaits.pop(0)
        if self.awaits:  # its time begins when it comes to it
            self.awaits[0] = (self.awaits[0][0], time.monotonic())
        failed = line.startswith("fail")
        # A gather whose messages are on their way when a rule disconnects two workers fails.
        may_lose = what == "leave" and self.may_miss_others or what == "gather" and self.is_faulty
        if failed and not (may_lose and line.startswith("fail EPEER_LOST")):
            raise Broken(f"{self.name}: {what} after {time.monotonic() - since:.1f} s: {line}")
        if what == "stats":
            if not all("=" in pair for pair in line.split()[1:]):
                raise Broken(f"{self.name}: no figures, but {line!r}")
            self.stats = {k: int(v) for k, v in (pair.split("=") for pair in line.split()[1:])
                          if v.isdigit()}
        elif what == "leave":
            self.process.wait(timeout=30 * SLOW)
            self.has_left = True
            if self.process.returncode and not failed:
                raise Broken(f"{self.name} left with status {self.process.returncode}")

    @staticmethod
    def wait(actors, seconds):
        """Until one of them says something, or that long."""
        select.select([a.process.stdout for a in actors], [], [], seconds)

    @staticmethod
    def last_words(folder):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".err"):
                with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as f:
                    for line in f.read().splitlines()[-5:]:
                        if "random faults use seed" not in line:
                            yield f"{name}: {line}"
