# SPDX-License-Identifier: Apache-2.0
"""report.py - what the checks share: files of the tree, TAP lines.

A check collects problems, each "where: what", under the name of a case; the
case fails when there is one.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = ("include", "core", "security", "group", "rpc", "observe", "torch") # the folders of the library's rooms, the lowest first
_results = []


def case(name, problems):
    """Tells one case; `problems` is a list of lines, empty when all is well."""
    problems = list(problems)
    _results.append(not problems)
    print(f"{'not ok' if problems else 'ok'} {len(_results)} - {name}")
    for line in problems:
        print(f"# {line}")


def skip(name, why):
    _results.append(True)
    print(f"ok {len(_results)} - {name} # SKIP {why}")


def finish():
    print(f"1..{len(_results)}", flush=True)
    sys.exit(0 if all(_results) else 1)


def files(*folders, ends=(".c", ".h")):
    """Paths of the tree below `folders`, relative to its root, sorted."""
    found = []
    for folder in folders:
        for where, names, leaves in os.walk(os.path.join(ROOT, folder)):
            names[:] = [n for n in names if not n.startswith((".", "build", "__pycache__"))]
            found += [os.path.relpath(os.path.join(where, leaf), ROOT)
                      for leaf in leaves if leaf.endswith(tuple(ends))]
    return sorted(found)


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def rooms(tree):
    """{room: the rooms that it may use} of a tree ("": the library's), in the order of its table."""
    table = [line.split(":") for line in text(os.path.join(tree, "rooms")).splitlines() if line[0] != "#"]
    return {room: set(others.split()) for room, others in table}


def room_of(path, tree, table):
    """The room of a file in `tree`: the innermost folder that has a line in the table; "" for none."""
    folder = os.path.dirname(os.path.relpath(path, tree) if tree else path)
    while folder and folder not in table:
        folder = os.path.dirname(folder)
    return folder


def stands_above(path, other):
    """Returns true if the folder of `path` is above that of `other`: both of the library."""
    return LIBRARY.index(path.split("/")[0]) > LIBRARY.index(other.split("/")[0])


def without_comments(code):
    """C source with comments blanked and lines kept."""
    def blank(match):
        token = match[0]
        return token if token[0] in "\"'" else re.sub(r"[^\n]", " ", token)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, code,
                  flags=re.DOTALL)


def lines(path, code=None):
    """(number, line) of a file, or of `code` that was made from it."""
    return enumerate((text(path) if code is None else code).split("\n"), 1)
