# SPDX-License-Identifier: Apache-2.0
"""first_steps.py BUILDDIR | --all - the commands of docs/first-steps.md run, word by word and in their order, in one shell,
and print what the page shows.

With BUILDDIR, build/release is that build, and the commands that make a build are left out; with --all they run,
too, in a copy of the tree. A file is what its block on the page says. Ports, durations, counters and ranks may differ from those
that the page shows, and lines may come in another order.
"""
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import report

sys.path.append(os.path.join(report.ROOT, "tests/tools"))
from ports import free_port  # pylint: disable=wrong-import-position

PAGE = "docs/first-steps.md"
ALL = sys.argv[1] == "--all"
LIMIT_S = 1800 if ALL else 60
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:/\*|#) (first\.c|faulty\.yaml)\b")
BUILDS = ("script/bootstrap", "meson setup", "ninja")
# Reads workers that start, end or count: a reader would read again.
LOOKS = ("tenrec ping", "tenrec info", "grep")
FAILS = "tenrec run -n 3 --keep-going --config faulty.yaml"
PORT = "29500"


def alike(text):
    """The lines of an output without what differs from run to run."""
    text = re.sub(r"\d+(\.\d+)?(?= us\b| s,)", "N", text)
    text = re.sub(r":\d{4,5}\b", ":PORT", text)
    text = re.sub(r"(?<=rank )\d|(?<=slot )\d|\d(?= continue$)", "N", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=calls\.served {2}) *\d+", "N", text)
    return sorted(text.strip().splitlines())


class Shell:
    """One shell in which all commands are typed."""

    def __init__(self, place):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TENREC_", "MASTER_")) and k not in ("RANK", "WORLD_SIZE")}
        self.process = subprocess.Popen(["bash"], cwd=place, env=dict(env, SHELL="/bin/bash"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, commands):
        """(exit status of the last, what they print)."""
        self.process.stdin.write(commands.encode() + b"\nprintf '\\001%s\\002' $?\n")
        self.process.stdin.flush()
        got, deadline = b"", time.monotonic() + LIMIT_S
        while not got.endswith(b"\2"):
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                return None, got.decode(errors="replace") + f"\nno end within {LIMIT_S} s"
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None, got.decode(errors="replace") + "\nthe shell has ended"
            got += more
        text, status = got[:-1].rsplit(b"\1", 1)
        return int(status), text.decode(errors="replace")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def steps():
    """(line of the page, commands, the output shown below them or None), and files by name."""
    page, files, found = report.text(PAGE), {}, []
    for match in BLOCK.finditer(page):
        language, text = match[1], match[2]
        named = FILE.match(text)
        if named:
            files[named[1]] = text
        elif language == "sh":
            found.append([page.count("\n", 0, match.start(2)) + 1, text.strip(), None])
        elif not language:
            found[-1][2] = text
    return found, files


def same(shown, status, text, commands):
    wanted = 1 if commands.startswith(FAILS) else 0
    return status == wanted and (shown is None or alike(text) == alike(shown))


def problems(place):
    found, files = steps()
    for name, text in files.items():
        with open(os.path.join(place, name), "w", encoding="utf-8") as f:
            f.write(text)
    port = str(free_port())
    shell = Shell(place)
    try:
        for line, commands, shown in found:
            if not ALL and all(command.startswith(BUILDS) for command in commands.splitlines()):
                continue
            deadline = time.monotonic() + LIMIT_S
            while True:
                status, text = shell.run(commands.replace(PORT, port))
                if same(shown, status, text, commands) or status is None or not commands.startswith(LOOKS) or time.monotonic() > deadline:
                    break
                select.select([], [], [], 0.05)
            if not same(shown, status, text, commands):
                yield f"{PAGE}:{line}: ends with {status} and prints"
                yield from text.strip().splitlines()[-20:]
                yield "but the page shows"
                yield from (shown or "(nothing in particular)").strip().splitlines()
                return
    finally:
        shell.close()


def main():
    with tempfile.TemporaryDirectory(prefix="tenrec-first-steps-") as place:
        place = os.path.realpath(place)
        tree = os.path.join(place, "tree")
        if ALL:
            shutil.copytree(report.ROOT, tree, ignore=shutil.ignore_patterns("build", "build-*", ".git"), symlinks=True)
        else:
            os.makedirs(os.path.join(tree, "build"))
            for name in os.listdir(report.ROOT):
                if not name.startswith((".", "build")):
                    os.symlink(os.path.join(report.ROOT, name), os.path.join(tree, name))
            os.symlink(os.path.abspath(sys.argv[1]), os.path.join(tree, "build/release"))
        report.case("first_steps_do_what_the_page_says", problems(tree))
    report.finish()


main()
