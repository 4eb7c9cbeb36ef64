# SPDX-License-Identifier: Apache-2.0
"""words.py - what `tenrec` says of its commands and their options: the source of manual pages and completions."""
import json
import os
import re
import subprocess

OPTION = re.compile(r"^  (?:(-\w), |    )(--[\w-]+)(?: (\S+))?(?: +(.*))?$")


def say(tenrec, *args):
    """What a command prints; with nothing of the caller's own plugins and configuration."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TENREC_") or k == "TENREC_PLUGIN_PATH"}
    return subprocess.run([tenrec, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          check=True).stdout


class Command:
    """One command: `summary`, `usage` (lines), and `parts`, each a paragraph (a text) or an option (letter, name, argument, text)."""

    def __init__(self, tenrec, name, summary):
        self.name, self.summary, self.usage, self.parts = name, summary, [], []
        lines = say(tenrec, "help", name).splitlines()
        while lines and lines[0].strip():
            self.usage.append(re.sub(r"^(usage:)?\s*", "", lines.pop(0)))
        for line in lines:
            self.add(line)

    def add(self, line):
        option = OPTION.match(line)
        before = self.parts[-1] if self.parts else None
        if option:
            self.parts.append((option[1], option[2], option[3], option[4] or ""))
        elif not line.strip():
            self.parts.append("")
        elif isinstance(before, tuple) and line.startswith("   "):
            self.parts[-1] = before[:3] + (f"{before[3]} {line.strip()}".strip(),)
        elif isinstance(before, str) and before:
            self.parts[-1] = f"{before}\n{line}"
        else:
            self.parts.append(line)

    @property
    def options(self):
        return [part for part in self.parts if isinstance(part, tuple)]

    @property
    def first(self):
        """The words of which the first argument is one: those of "tenrec perf latency|rate|bandwidth"."""
        found = re.match(rf"tenrec {self.name} ([a-z]+(?:\|[a-z]+)*)( |$)", self.usage[0])
        return found[1].split("|") if found else []


def choices(option):
    """The words of which the value of an option is one: "name|id|state" in its text."""
    found = re.search(r"(?<!\S)[\w+]+(\|[\w+]+)+", re.sub(r"\|\s+", "|", option[3]))
    return found[0].split("|") if option[2] and found else []


def commands(tenrec):
    listed = re.findall(r"^  (\w+) +(.*)$", say(tenrec, "help"), flags=re.MULTILINE)
    return [Command(tenrec, name, summary) for name, summary in listed if name != "help"]


def info(tenrec):
    return json.loads(say(tenrec, "info", "--json"))
