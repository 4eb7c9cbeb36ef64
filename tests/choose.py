# SPDX-License-Identifier: Apache-2.0
"""choose.py BUILDDIR PART RESULTS [COMMIT] - prints the names of the tests in the folder PART ("": in all).

With COMMIT only those in folders that the files changed since then reach: a room's own folder and those of all rooms above it,
by the table `rooms`, and the folder of a plugin, a tool or a test. What belongs to no folder reaches all.

The tests that tests/security_skips leaves out are not among them, but in the file RESULTS, as
lines "skip NAME" for tally.py.
"""
import json
import os
import re
import subprocess
import sys

import security_skips


ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OTHERS = {"plugins": {"contract", "interop", "parity", "system"}, "tools": {"tools", "contract"}, "examples": {"examples"},
          "testkit": {"testkit", "parity"}, "bindings": {"python", "torch"}, "docs": {"checks"}, "bench": {"tools"}}


def rooms_above(room, table):
    """The folders of tests of `room` and of all rooms that use it, directly or not."""
    reached = {room}
    for above, used in table.items(): # the lowest first
        if reached & used:
            reached.add(above)
    return {"torch_member" if name == "torch/member" else name.split("/")[1] for name in reached}


def reached_by(path, table):
    """The folders of tests that a changed file reaches; None: all."""
    parts = path.split("/")
    if "/".join(parts[:2]) in table:
        return rooms_above("/".join(parts[:2]), table) | {"checks"}
    if parts[0] == "tests":
        return {parts[1]} if len(parts) > 2 and parts[1] != "support" else None
    if parts[0] not in OTHERS:
        return {"checks"} if path.endswith(".md") else None
    return OTHERS[parts[0]] | {"checks"} | ({parts[1]} if parts[0] == "plugins" else set())


def changed_folders(commit):
    """The folders of tests that the changes since `commit` reach; None: all."""
    with open(os.path.join(ROOT, "rooms"), encoding="utf-8") as f:
        table = {line.split(":")[0]: set(line.split(":")[1].split()) for line in f if line[0] != "#"}
    out = subprocess.run(["git", "-C", ROOT, "diff", "--name-only", commit], stdout=subprocess.PIPE, text=True, check=True).stdout
    out += subprocess.run(["git", "-C", ROOT, "ls-files", "--others", "--exclude-standard"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = set()
    for path in out.splitlines():
        folders = reached_by(path, table)
        if folders is None:
            return None
        found |= folders
    return found


def main():
    build, part, results, *since = sys.argv[1:]
    folders = changed_folders(since[0]) if since else None
    listed = subprocess.run(["meson", "introspect", "--tests", build], stdout=subprocess.PIPE, check=True)
    skips = security_skips.read()
    with open(results, "a", encoding="utf-8") as left_out:
        for test in json.loads(listed.stdout):
            if part and not any(f"/tests/{part}/" in word for word in test["cmd"]):
                continue
            if folders is not None and not folders.intersection(name for word in test["cmd"] for name in re.findall("/tests/([^/]+)/", word)):
                continue
            if security_skips.reason(test["name"], skips):
                print("skip", test["name"], file=left_out)
            else:
                print(test["name"])


main()
