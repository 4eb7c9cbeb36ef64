# SPDX-License-Identifier: Apache-2.0
"""crew.py - real workers as processes that execute the orders of a test.

A Crew listens on a local socket; its puppets (puppet.c) connect to it, and
each is spoken to in lines. It starts them by `tenrec run` or by hand, and ends
with `leave` (all must have ended well and written nothing) or, when a case
fails, with a kill. Nothing waits longer than LIMIT_S.
"""
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

from cases import Failed, alive, environment, equal, true, until
from ports import free_port

TENREC, PUPPET, ALL_TO_ALL, CONFIG, BACKEND = sys.argv[1:6]
TRANSPORTS = sys.argv[6:7]  # instead of those of the config
SLOW = float(os.environ.get("TENREC_TEST_SLOW", "1"))
LIMIT_S = 20 * SLOW
LONG_MS = int(LIMIT_S * 1000)  # of calls that must not reach their limit
WRAPPER = shlex.split(os.environ.get("TENREC_TEST_WRAPPER", ""))
if WRAPPER and "valgrind" in WRAPPER[0]:
    # What threads of the parent have kept for themselves is lost in the child of a fork.
    WRAPPER.insert(1, "--child-silent-after-fork=yes")


def sanitizers():
    """ASan's list of the thread-local memory of plugins is wrong once threads or plugins have gone,
    and ends a process that exits while others of its threads run; TSan ends a child of fork that
    starts threads, and calls the threads of a process that just exits a leak."""
    for name, option in (("ASAN_OPTIONS", "intercept_tls_get_addr=0"),
                         ("TSAN_OPTIONS", "die_after_fork=0:report_thread_leaks=0")):
        yield name, ":".join(filter(None, (os.environ.get(name), option)))


def backend(**more):
    """The environment of a worker on the backend of this run of the tests."""
    chosen = {"TENREC_BACKEND": BACKEND,
              "TENREC_CONFIG": f"{CONFIG}/{'ucx' if BACKEND == 'ucx' else 'default'}.yaml",
              **dict(sanitizers())}
    if TRANSPORTS:
        chosen["TENREC_TRANSPORTS"] = TRANSPORTS[0]
    if BACKEND == "faulty":  # the wrapper, with no rule
        chosen["TENREC_BACKENDS__FAULTY__MESSAGES_TO_FAIL"] = "[]"
        chosen["TENREC_BACKENDS__FAULTY__NUM_FAIL_SENDS"] = "0"
    return environment(**{**chosen, **more})


def by_hand(world, **more):
    """What a launcher sets, for each rank."""
    return [backend(RANK=str(r), WORLD_SIZE=str(world), **more) for r in range(world)]


def at(port):
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def store_of(puppet):
    """Where its variables say that the store is."""
    with open(f"/proc/{puppet.pid}/environ", encoding="utf-8", errors="replace") as f:
        env = dict(pair.split("=", 1) for pair in f.read().split("\0") if "=" in pair)
    return f"tcp://{env['MASTER_ADDR']}:{env['MASTER_PORT']}"


def threads(pid):
    return os.listdir(f"/proc/{pid}/task")


def fields(pid, tid=None):
    """What /proc says of a process or thread, from its state on (field 3); see proc(5)."""
    path = f"/proc/{pid}/task/{tid}/stat" if tid else f"/proc/{pid}/stat"
    with open(path, encoding="ascii", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()


def used(pids, window_s):
    """The ticks of the processor that each process uses in the window."""
    def ticks():
        return [sum(int(n) for n in fields(pid)[11:13]) for pid in pids]

    before = ticks()
    end = time.monotonic() + window_s
    until(lambda: time.monotonic() >= end, "the end of the window")
    return [after - n for after, n in zip(ticks(), before)]


class Puppet:
    """One worker."""

    def __init__(self, link):
        self.link, self.got, self.told, self.lines = link, b"", [], []
        hello, self.rank, self.pid = self.answer().split()
        equal(hello, "hello")
        self.rank, self.pid = int(self.rank), int(self.pid)

    def say(self, line):
        """Gives an order and does not wait."""
        self.link.sendall(line.encode() + b"\n")

    def read(self, deadline):
        """Reads the received lines; events are kept, with the time."""
        self.link.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            piece = self.link.recv(65536)
        except TimeoutError:
            return
        except ConnectionError:
            piece = b""
        if not piece:
            raise Failed(f"{self} is gone")
        *whole, self.got = (self.got + piece).split(b"\n")
        for line in whole:
            text = line.decode()
            if text.startswith("event "):
                self.told.append((time.monotonic(), text[len("event "):]))
            else:
                self.lines.append(text)

    def answer(self):
        """The next answer, whatever it is."""
        deadline = time.monotonic() + LIMIT_S
        while not self.lines:
            self.read(deadline)
            if not self.lines and time.monotonic() > deadline:
                raise Failed(f"{self} did not answer within {LIMIT_S} s")
        return self.lines.pop(0)

    def well(self):
        """The next answer, which must be a good one: what it says."""
        answer = self.answer()
        true(answer == "ok" or answer.startswith("ok "), f"{self} answers {answer!r}")
        return answer[3:]

    def badly(self):
        """The next answer, which must be an error: its code, worker and text."""
        answer = self.answer()
        true(answer.startswith("fail "), f"{self} answers {answer!r}, expected an error")
        return answer.split(" ", 3)[1:]

    def do(self, line):
        self.say(line)
        return self.well()

    def fails(self, line):
        self.say(line)
        return self.badly()

    def event(self, kind):
        """The first event of this kind: when it came, and its text."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            for i, (when, text) in enumerate(self.told):
                if text.startswith(kind + " "):
                    del self.told[i]
                    return when, text
            if time.monotonic() > deadline:
                raise Failed(f"{self} did not tell '{kind}' within {LIMIT_S} s")
            self.read(deadline)

    def until_held(self):
        """Waits until a call of hold has arrived."""
        until(lambda: self.do("held") != "0", "arrival of the call")

    def stop(self):
        """Stops it; a signal takes its time until all threads have heard of it."""
        self.send_signal(signal.SIGSTOP)
        until(lambda: all(fields(self.pid, tid)[0] == "T" for tid in threads(self.pid)),
              "stop of all threads")

    def send_signal(self, sig):
        os.kill(self.pid, sig)

    def __str__(self):
        return f"puppet {getattr(self, 'rank', '?')}"


class Crew:
    """Puppets by rank, and the processes that were started for them."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tenrec-test-")
        self.path = f"{self.folder.name}/control"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.listener.settimeout(LIMIT_S)
        self.puppets, self.processes, self.port = {}, [], None

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        for puppet in self.puppets.values():
            if kind and alive(puppet.pid):
                puppet.send_signal(signal.SIGCONT)
                puppet.send_signal(signal.SIGKILL)
            puppet.link.close()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            try:
                process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:  # a child of it lives and holds the pipes
                process.stdout.close()
                process.stderr.close()
        self.listener.close()
        self.folder.cleanup()

    def __getitem__(self, rank):
        return self.puppets[rank]

    def _start(self, command, env):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=env)
        self.processes.append(process)
        return process

    def meet(self):
        """The next puppet that says hello."""
        try:
            link, _ = self.listener.accept()
        except TimeoutError:
            raise Failed(f"no puppet came within {LIMIT_S} s") from None
        return Puppet(link)

    def run(self, n, *options, on_term="default", env=None):
        """Starts n puppets by `tenrec run`, whose store has `port`."""
        self.port = free_port()
        self._start([TENREC, "run", "-n", str(n), "--serve", f"127.0.0.1:{self.port}", *options, "--", *WRAPPER,
                     PUPPET, self.path, on_term], env or backend())
        self.puppets = {p.rank: p for p in (self.meet() for _ in range(n))}
        equal(sorted(self.puppets), list(range(n)), "ranks")
        return self

    def start(self, envs, on_term="default", before=None):
        """Starts one puppet by hand for each environment; ranks are the places in the list.

        before: for each what stands in front of its command, such as nsenter; where that makes a
        process with another id than ours of it, RANK tells which puppet it is."""
        for i, env in enumerate(envs):
            self._start([*(before[i] if before else []), *WRAPPER, PUPPET, self.path, on_term], env)
        met = [self.meet() for _ in envs]
        first = len(self.puppets)
        for i, process in enumerate(self.processes[-len(envs):]):
            puppet = next((p for p in met if p.pid == process.pid), None) or \
                next(p for p in met if str(p.rank) == envs[i].get("RANK"))
            met.remove(puppet)
            self.puppets[first + i] = puppet
            puppet.rank = first + i
        return self

    def all(self, line, ranks=None):
        """The same order to all at once; what they answer."""
        some = [self.puppets[r] for r in ranks] if ranks is not None else self.puppets.values()
        for puppet in some:
            puppet.say(line)
        return [puppet.well() for puppet in some]

    def all_fail(self, line, ranks=None):
        some = [self.puppets[r] for r in ranks] if ranks is not None else self.puppets.values()
        for puppet in some:
            puppet.say(line)
        return [puppet.badly() for puppet in some]

    def release(self, ranks=None):
        """Closes the sockets of puppets, which then exit."""
        for rank in ranks if ranks is not None else list(self.puppets):
            self.puppets[rank].link.close()

    def ended(self, process=None):
        """Waits for the end of a process: exit status, stdout, stderr."""
        process = process or self.processes[0]
        try:
            out, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{process.args[0]} did not end within {LIMIT_S} s") from None
        return process.returncode, out, errors

    def leave(self):
        """All shut down together, end well, and have written nothing."""
        self.all(f"shutdown graceful {LONG_MS}")
        self.finish()

    def finish(self):
        """All end well, and have written nothing."""
        self.release()
        for process in self.processes:
            equal(self.ended(process), (0, "", ""), "status and output")


def limit(ms):
    """A limit that is short, but long enough for what comes before the wait."""
    return int(ms * SLOW)


def within(since, when, limit_s, what):
    true(when - since < limit_s * SLOW, f"{what} took {when - since:.3f} s, limit {limit_s} s")
