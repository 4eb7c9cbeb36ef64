# SPDX-License-Identifier: Apache-2.0
"""top_screen_test.py - `tenrec top` on terminals of tmux: its lines, its keys, and the terminal that it leaves."""
import os
import re
import shlex
import signal
import subprocess
import tempfile

from cases import Failed, contains, equal, main, true, until
from crew import LIMIT_S, TENREC, Crew, backend, limit, store_of


def group(n=3):
    crew = Crew().run(n, env=backend())
    crew.all("init")
    return crew


class Terminal:
    """A shell in a terminal of a size, and what it shows."""

    def __init__(self, columns, rows):
        self.folder = tempfile.TemporaryDirectory(prefix="tenrec-tmux-")
        self.columns, self.rows = columns, rows
        env = {**backend(), "LC_ALL": "C.UTF-8", "PS1": "", "ENV": ""}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "env PS1='ready> ' sh", env=env)
        self.until(lambda shown: "ready>" in shown, "the prompt")

    def tmux(self, *words, env=None):
        return subprocess.run(["tmux", "-S", f"{self.folder.name}/socket", *words], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")
        self.folder.cleanup()

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def start(self, crew, *options):
        self.type("-l", shlex.join([TENREC, "top", "--store", store_of(crew[0]), "--interval", f"{limit(300)}ms", *options]))
        self.type("Enter")

    def shown(self):
        return self.tmux("capture-pane", "-p")

    def mode(self):
        """The terminal's: full screen of its own, visible cursor, the shell's settings."""
        return self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{pane_current_command}").split()

    def until(self, condition, what):
        last = [""]

        def look():
            last[0] = self.shown()
            return condition(last[0])

        try:
            until(look, what)
        except Failed as e:
            raise Failed(f"{e}; the terminal shows:\n{last[0]}") from None
        return last[0]

    def left(self):
        """The command has ended, and the shell has the terminal as before."""
        until(lambda: self.mode() == ["0", "1", "sh"], "the terminal as it was")
        self.type("clear; stty -a | tr ' ' '\\n' | grep -cxE 'echo;?|icanon;?|isig;?'", "Enter")
        self.until(lambda shown: re.search(r"^3$", shown, re.MULTILINE), "a terminal that echoes")


def rows_of(shown):
    return [line.split()[:3] for line in shown.splitlines()[3:] if line.strip()]


def full(shown):
    return re.search(r"^worker2 +2 up", shown, re.MULTILINE)


def shows_the_group(columns, rows, wanted, left_out):
    with group() as crew, Terminal(columns, rows) as terminal:
        terminal.start(crew)
        shown = terminal.until(full, "rows of the workers")
        title, _, heading = shown.splitlines()[:3]
        contains(title, 'group "default"  3 members')
        for column in wanted:
            contains(heading, column)
        for column in left_out:
            true(column not in heading, f"{column} in {heading!r}")
        equal(rows_of(shown), [[f"worker{i}", str(i), "up"] for i in range(3)], "no line is wrapped")
        terminal.type("q")
        terminal.left()


def top_fits_into_80_columns():
    shows_the_group(80, 24, ["WORKER", "STATE", "MADE/s", "SERV/s", "C.P99", "QUEUE", "POOL"], ["MAPPED", "WAYS"])


def top_fills_200_columns():
    shows_the_group(200, 50, ["WORKER", "S.P50", "ACTIVE", "BLOCK", "SHARED", "MAPPED", "REFS", "FAULTS", "TIMEO", "LATE", "WAYS"], [])


def top_obeys_keys_and_the_size():
    with group() as crew, Terminal(80, 24) as terminal:
        terminal.start(crew)
        contains(terminal.until(full, "rows"), "durations are off in 3 workers: key d")
        terminal.type("d")
        terminal.until(lambda shown: "durations of 3 workers are counted now" in shown, "durations")
        terminal.type("?")
        terminal.until(lambda shown: "Columns" in shown, "help")
        terminal.type("x")
        terminal.until(full, "the rows again")
        terminal.type("r")
        terminal.until(lambda shown: rows_of(shown)[:1] == [["worker2", "2", "up"]], "the other order")
        terminal.type(">")
        terminal.until(lambda shown: "ID*" in shown, "the next column")
        terminal.type("f")
        terminal.until(lambda shown: "functions of the group" in shown and "FUNCTION*" in shown, "functions")
        terminal.type("f")
        terminal.until(full, "the workers")
        terminal.type("Enter")
        terminal.until(lambda shown: "functions of worker" in shown, "functions of a worker")
        terminal.tmux("resize-window", "-x", "50", "-y", "10")
        shown = terminal.until(lambda s: len(s.splitlines()) <= 10 and "functions of worker" in s, "the new size")
        true(all(len(line) <= 50 for line in shown.splitlines()), "a line is too long")
        terminal.type("Escape")
        terminal.until(lambda s: "worker2" in s, "the workers")
        terminal.type("C-c")
        terminal.left()


def top_restores_the_terminal_after_a_signal():
    for sig in signal.SIGTERM, signal.SIGABRT:
        with group(1) as crew, Terminal(80, 24) as terminal:
            terminal.start(crew)
            terminal.until(lambda shown: "worker0" in shown, "a row")
            shell = int(terminal.tmux("display-message", "-p", "#{pane_pid}"))
            with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as f:
                os.kill(int(f.read()), sig)
            terminal.left()


def top_goes_on_without_its_store():
    with Terminal(80, 24) as terminal:
        with group() as crew:
            terminal.start(crew)
            terminal.until(full, "rows")
            crew.processes[0].terminate()
        terminal.until(lambda shown: "store does not answer, retrying" in shown and "lost" in shown, "the lost store")
        terminal.type("q")
        terminal.left()


main(globals(), "top_")
