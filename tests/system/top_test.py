# SPDX-License-Identifier: Apache-2.0
"""top_test.py - `tenrec top` of groups that run, as scripts read it."""
import fcntl
import json
import os
import signal
import struct
import subprocess
import termios

from cases import contains, equal, main, one_line, run, true, until
from crew import LIMIT_S, LONG_MS, TENREC, Crew, backend, limit, store_of

INTERVAL = f"{limit(400)}ms"


class Top:
    """A `tenrec top --json` that goes on; its samples, one after the other."""

    def __init__(self, crew, *options):
        self.process = subprocess.Popen([TENREC, "top", "--store", store_of(crew[0]), "--interval", INTERVAL, "--json",
                                         "--count", "1000", *options], env=backend(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate(timeout=LIMIT_S)

    def sample(self):
        line = self.process.stdout.readline()
        true(line, line or f"the command has ended: {self.process.communicate()[1]}")
        return json.loads(line)

    def until(self, condition, what):
        """The first sample of which this is true."""
        found = []

        def look():
            sample = self.sample()
            if condition(sample):
                found.append(sample)
            return found

        until(look, what)
        return found[0]


def states(sample):
    return {w["name"]: w["state"] for w in sample["workers"]}


def top(crew, *options):
    return run(TENREC, "top", "--store", store_of(crew[0]), "--interval", INTERVAL, *options, env=backend())


def top_prints_a_table_once():
    with Crew().run(2) as crew:
        crew.all("init")
        got = top(crew, "--once", "--sort", "made")
        equal((got.returncode, got.stderr), (0, ""))
        title, heading, *rows, hint = got.stdout.splitlines()
        contains(title, 'group "default"  2 members  0 calls/s')
        contains(heading, "MADE/s*")
        equal([r.split()[:3] for r in rows], [["worker0", "0", "up"], ["worker1", "1", "up"]])
        contains(hint, "observe.durations is false")
        crew.leave()


def top_counts_calls_durations_and_errors():
    with Crew().run(2, env=backend(TENREC_OBSERVE__DURATIONS="true")) as crew:
        crew.all("init")
        with Top(crew) as watched:
            equal(states(watched.sample()), {"worker0": "up", "worker1": "up"})
            for _ in range(20):
                crew[0].do(f"call worker1 add {LONG_MS} 1 2")
            crew[0].fails(f"call worker1 no_such_function {LONG_MS}")
            sample = watched.until(lambda s: any(f["function"] == "no_such_function" and f["errors"] for f in s["functions"]), "the error")
            worker = {w["name"]: w for w in sample["workers"]}
            equal((worker["worker0"]["calls_made"], worker["worker0"]["durations"]), (21, True))
            equal(next(f["errors"] for f in sample["functions"] if f["function"] == "no_such_function")["ENOFUNCTION"] > 0, True)
            true(not any(f["function"].startswith("tenrec.") for f in sample["functions"]), "its own calls are shown")
        crew.leave()


def terminal_text(master):
    """All that the other side, which is closed, has printed."""
    text = b""
    with open(master, "rb", buffering=0) as f:
        try:
            while piece := f.read(4096):
                text += piece
        except OSError:  # the end
            pass
    return text.decode()


def top_fits_into_its_terminal():
    with Crew().run(2) as crew:
        crew.all("init")
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        got = subprocess.run([TENREC, "top", "--store", store_of(crew[0]), "--interval", INTERVAL, "--count", "2"], env=backend(), stdin=its,
                             stdout=its, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
        os.close(its)
        equal((got.returncode, got.stderr), (0, b""))
        _, *tables = terminal_text(ours).split("\x1b[H\x1b[2J")
        equal(len(tables), 2, "tables, each on an empty screen")
        for lines in (t.splitlines() for t in tables):
            contains(lines[1], "C.P99")
            true("MAPPED" not in lines[1], "a column that does not fit is shown")
            equal([line.split()[:3] for line in lines[2:4]], [["worker0", "0", "up"], ["worker1", "1", "up"]])
            true(all(len(line) <= 80 for line in lines[:4]), "a line is longer than the terminal is wide")
        crew.leave()


def top_goes_on_without_its_store():
    with Crew().run(2, env=backend()) as crew:
        crew.all("init")
        watched = subprocess.Popen([TENREC, "top", "--store", store_of(crew[0]), "--interval", INTERVAL], env=backend(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: "worker1 " in watched.stdout.readline(), "a row")
        crew.processes[0].terminate()
        until(lambda: "store does not answer, retrying" in watched.stdout.readline(), "the lost store")
        until(lambda: "worker1 is lost: " in watched.stdout.readline(), "the reason")
        watched.terminate()
        watched.communicate(timeout=LIMIT_S)


def top_says_when_it_finds_no_group():
    with Crew().run(1) as crew:
        crew.all("init")
        got = top(crew, "--once", "--group", "other")
        equal(got.returncode, 1)
        contains(one_line(got.stderr), "tenrec top: ")
        got = top(crew, "--once", "--sort", "nam")
        equal(got.returncode, 2)
        contains(one_line(got.stderr), "--sort 'nam' is no column")
        crew.leave()


def top_shows_a_stopped_worker_as_stopped_and_the_others_as_up():
    with Crew().run(3) as crew:
        crew.all("init")
        with Top(crew) as watched:
            crew[1].stop()
            sample = watched.until(lambda s: states(s)["worker1"] == "stopped", "a stopped worker")
            equal((states(sample)["worker0"], states(sample)["worker2"]), ("up", "up"))
            crew[1].send_signal(signal.SIGCONT)
            watched.until(lambda s: states(s)["worker1"] == "up", "its answer")


def top_shows_a_stopped_worker_that_the_group_has_removed_as_stopped():
    env = backend(TENREC_WORKER__HEARTBEAT="100ms", TENREC_WORKER__HEARTBEAT_MISSES="3")
    with Crew().run(2, "--elastic", "1:2", env=env) as crew:
        crew.all("init")
        with Top(crew) as watched:
            watched.until(lambda s: states(s) == {"worker0": "up", "worker1": "up"}, "both workers")
            crew[1].stop()
            removed = lambda s: any(w["name"] == "worker1" and "removed" in w.get("why", "") for w in s["workers"])
            sample = watched.until(removed, "the removal")
            equal(states(sample)["worker1"], "stopped")


def top_follows_members_that_die_and_join():
    with Crew().run(2, "--elastic", "1:3", on_term="handle", env=backend()) as crew:
        crew.all("init")
        with Top(crew) as watched:
            equal(states(watched.sample()), {"worker0": "up", "worker1": "up"})
            crew[1].send_signal(signal.SIGKILL)
            watched.until(lambda s: states(s).get("worker1") == "lost", "the lost worker")
            crew[1].link.close()
            crew.puppets[1] = crew.meet()
            crew[1].do("init")
            watched.until(lambda s: states(s).get("worker1") == "up", "the new worker")
            crew.processes[0].send_signal(signal.SIGUSR1)
            crew.puppets[2] = crew.meet()
            crew[2].do("init")
            watched.until(lambda s: states(s) == {f"worker{i}": "up" for i in range(3)}, "the third worker")


main(globals(), "top_")
