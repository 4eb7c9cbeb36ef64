# SPDX-License-Identifier: Apache-2.0
"""crowd.py ACTOR [OPTIONS] - a large dynamic group that changes all the time, and the list of its members.

Workers, several in each process (crowd_actor.c), join, leave, are killed and stopped, drawn from --seed, and call
each other; the store, a Redis server that saves, is killed and started again, or stopped. After each --epoch
seconds of that there is quiet. Then each living worker's list of members must be that of the living workers
within --quiet seconds, no worker may have been expelled, and no answer may be wrong.

The last line is TAP's. A failure prints the seed; what the workers wrote stays.
"""
import argparse
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../redis"))
from server import Server, need_server  # pylint: disable=wrong-import-position

SLOW = float(os.environ.get("TENREC_TEST_SLOW", "1"))
LIMIT_S = 90 * SLOW  # of an order
STOP_S = 1.0  # far below the heartbeats that a worker may miss


class Broken(Exception):
    """Something that must hold does not."""


class Process:
    """Some workers. It answers orders in their turn."""

    def __init__(self, actor, folder, first, n, life, env):
        self.names = [f"w{first + i}-{life}" for i in range(n)]
        self.life, self.got, self.views, self.calls = life, b"", {}, 0
        self.awaits = [("join", time.monotonic())]
        self.go_on_at = None
        with open(f"{folder}/{first}.{life}.err", "w", encoding="ascii") as errors:
            self.process = subprocess.Popen([actor, str(first), str(n), str(life)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, env=env)
        os.set_blocking(self.process.stdout.fileno(), False)

    def is_free(self):
        return not self.awaits and not self.go_on_at

    def ask(self, order):
        self.process.stdin.write(order.encode() + b"\n")
        self.process.stdin.flush()
        self.awaits.append((order, time.monotonic()))

    def stop(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        self.go_on_at = time.monotonic() + seconds

    def end(self, limit_s=30):
        status = self.process.wait(timeout=limit_s)
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()
        return status

    def kill(self):
        self.process.kill()
        self.end()

    def look(self, now):
        """Returns true when it has left."""
        if self.go_on_at and now >= self.go_on_at:
            self.process.send_signal(signal.SIGCONT)
            self.go_on_at = None
        try:
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            self.got += piece
        except BlockingIOError:
            piece = None
        *lines, self.got = self.got.split(b"\n")
        for line in lines:
            if self.take(line.decode()) == "leave":
                if self.end():
                    raise Broken(f"{self.names} left with status {self.process.returncode}")
                return True
        if piece == b"":
            raise Broken(f"{self.names} ended: status {self.process.wait(timeout=30)}")
        if self.awaits and not self.go_on_at and now - self.awaits[0][1] > LIMIT_S:
            raise Broken(f"{self.names}: no answer to '{self.awaits[0][0]}' within {LIMIT_S:.0f} s")
        return False

    def take(self, line):
        """The order that has been answered."""
        word, _, rest = line.partition(" ")
        if word == "view":
            name, version, members = rest.split(" ")
            self.views[name] = (int(version), frozenset(members.split(",")))
            return None
        if word != "ok" or not self.awaits:
            raise Broken(f"{self.names}: {self.awaits[:1]}: {line}")
        if rest:
            self.calls = int(rest)
        return self.awaits.pop(0)[0]


class Crowd:
    def __init__(self, o):
        self.o, self.rng = o, random.Random(o.seed)
        self.folder = tempfile.mkdtemp(prefix="tenrec-crowd-")
        self.store = Server("--appendonly", "yes", "--appendfsync", "always")
        self.store_back_at = self.store_back = None
        self.processes, self.lives = {}, {}  # by slot
        self.count = {what: 0 for what in ("joins", "leaves", "kills", "stops", "outages", "calls")}
        self.settled = []

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("TENREC_") or k in ("TENREC_PLUGIN_PATH", "TENREC_DLCLOSE")}
        env.update(TENREC_INIT_METHOD=self.store.url("crowd"), TENREC_SECURITY__MODE="none")
        return env

    # ---- what happens ----------------------------------------------------------

    def join(self, slot):
        self.lives[slot] = self.lives.get(slot, -1) + 1
        self.processes[slot] = Process(self.o.actor, self.folder, slot * self.o.each, self.o.each, self.lives[slot], self.environment())
        self.count["joins"] += self.o.each

    def kill(self, slot):
        """Half of them live."""
        if len(self.processes) > self.o.workers // self.o.each // 2:
            self.processes.pop(slot).kill()
            self.count["kills"] += self.o.each

    def outage(self):
        if self.store_back_at:
            return
        if self.rng.random() < 0.5:
            self.store.kill()
            self.store_back = self.store.start
        else:
            self.store.stop()
            self.store_back = self.store.go_on
        self.store_back_at = time.monotonic() + self.rng.uniform(0.1, 2)
        self.count["outages"] += 1

    def change(self):
        slot = self.rng.randrange(self.o.workers // self.o.each)
        what, for_s = self.rng.random(), self.rng.uniform(0.05, STOP_S)
        process = self.processes.get(slot)
        if what < 0.06:
            self.outage()
        elif not process:
            self.join(slot)
        elif not process.is_free():
            pass  # it comes, goes, or is stopped just now
        elif what < 0.3:
            self.kill(slot)
        elif what < 0.5:
            process.ask("leave")
            self.count["leaves"] += self.o.each
        elif what < 0.7:
            process.stop(for_s)
            self.count["stops"] += 1
        else:
            process.ask("calls")

    def look(self, limit_s=0.05):
        select.select([p.process.stdout for p in self.processes.values()], [], [], limit_s)
        now = time.monotonic()
        if self.store_back_at and now >= self.store_back_at:
            self.store_back_at = None
            self.store_back()
        for slot, process in list(self.processes.items()):
            if process.look(now):
                self.count["calls"] += process.calls
                del self.processes[slot]

    def churn(self, seconds):
        until = due = time.monotonic()
        until += seconds
        while time.monotonic() < until:
            if time.monotonic() >= due:
                self.change()
                due += min(self.rng.expovariate(1 / self.o.pace), 3)
            self.look(max(min(due, until) - time.monotonic(), 0))

    # ---- what must hold -----------------------------------------------------------------

    def rest(self):
        """Until every order is answered: joins and leaves are over."""
        while self.store_back_at or not all(p.is_free() for p in self.processes.values()):
            self.look()

    def wrong(self):
        """A worker with a wrong list, in words; None: all are right."""
        for process in self.processes.values():
            process.ask("views")
        self.rest()
        living = frozenset(name for p in self.processes.values() for name in p.names)
        for process in self.processes.values():
            for name in process.names:
                version, members = process.views[name]
                if members != living:
                    return (f"{name} has in version {version} {len(members)} members: without {sorted(living - members)[:8]}, "
                            f"with {sorted(members - living)[:8]} beside the {len(living)} that live")
        return None

    def settle(self):
        """The last change is a death, which no worker announces."""
        self.rest()
        self.kill(self.rng.choice(list(self.processes)))
        since = time.monotonic()
        while wrong := self.wrong():
            if time.monotonic() - since > self.o.quiet * SLOW:
                raise Broken(f"{time.monotonic() - since:.1f} s after the last change {wrong}")
        self.settled.append(time.monotonic() - since)

    def run(self):
        o = self.o
        print(f"# seed {o.seed}, {o.minutes:g} minutes, {o.workers} workers in {o.workers // o.each} processes", flush=True)
        for slot in range(o.workers // o.each):
            self.join(slot)
        self.settle()
        end = time.monotonic() + o.minutes * 60
        while time.monotonic() < end:
            self.churn(min(o.epoch, max(end - time.monotonic(), 1)))
            self.settle()
        for process in self.processes.values():
            process.ask("leave")
        while self.processes:
            self.look()
        print("# " + ", ".join(f"{n} {what}" for what, n in self.count.items()) + f"; {len(self.settled)} times quiet: all lists were right "
              f"after {sorted(self.settled)[len(self.settled) // 2]:.2f} s in the median, {max(self.settled):.2f} s at most", flush=True)

    def close(self):
        for process in self.processes.values():
            process.kill()
        self.store.kill()


def options():
    p = argparse.ArgumentParser(prog="script/soak --crowd", description="Soaks the member lists of a large group that changes all the time.")
    p.add_argument("actor", help=argparse.SUPPRESS)
    p.add_argument("--minutes", type=float, default=2, help="how long workers come and go (2)")
    p.add_argument("--epoch", type=float, default=10, help="seconds of changes before each quiet (10)")
    p.add_argument("--seed", type=int, help="of all that is drawn; by default a new one, which is told")
    p.add_argument("--workers", type=int, default=200, help="at most at once (200)")
    p.add_argument("--each", type=int, default=5, help="workers of each process (5)")
    p.add_argument("--pace", type=float, default=0.3, help="seconds between two changes, on average (0.3)")
    p.add_argument("--quiet", type=float, default=2, help="seconds after which every list must be right (2)")
    o = p.parse_args()
    if o.seed is None:
        o.seed = random.SystemRandom().randrange(1 << 31)
    if o.each < 1 or o.each > 64 or o.workers < 2 * o.each:
        p.error("--each: expected 1 to 64; --workers: at least twice as many")
    return o


def main():
    need_server()
    o = options()
    crowd, failed = Crowd(o), None
    print("1..1")
    try:
        crowd.run()
    except (Broken, KeyboardInterrupt) as e:
        failed = str(e) or type(e).__name__
    finally:
        crowd.close()
    if not failed:
        shutil.rmtree(crowd.folder)
        print("ok 1 - crowd")
        return 0
    print(f"# {failed}\n# again: script/soak --crowd --seed {o.seed} --minutes {o.minutes:g} --workers {o.workers} --each {o.each}; "
          f"what the workers wrote is in {crowd.folder}\nnot ok 1 - crowd")
    return 1


sys.exit(main())
