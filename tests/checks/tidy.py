# SPDX-License-Identifier: Apache-2.0
"""tidy.py BUILDDIR [FILE ...] - clang-tidy, with the .clang-tidy of the tree.

Without files: every C source of bindings/python, core, plugins, tools and examples that BUILDDIR
compiles; where CI is "true", only files that the last commits changed, as the whole tree takes
minutes of all processors. A file that was clean is looked at again only when it, a header that
it includes or .clang-tidy changed.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import report

FOLDERS = ("bindings/python/", "core/", "group/", "observe/", "rpc/", "security/", "testkit/", "torch/", "plugins/", "tools/", "examples/")
# How far the analyzer follows one function: half of its own limit takes half of the time, which
# is spent in few functions.
ANALYZER = [f"--extra-arg={x}" for x in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=50000")]


RECENT = 30  # commits


def recent():
    """The files that the last commits changed; None: all, as this is no such run, or the history is absent."""
    if os.environ.get("CI") != "true":
        return None
    log = subprocess.run(["git", "-C", report.ROOT, "log", "--name-only", "--format=", f"-n{RECENT}"], capture_output=True,
                         text=True, check=False)
    count = subprocess.run(["git", "-C", report.ROOT, "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False)
    if log.returncode or count.returncode or int(count.stdout) <= RECENT:
        return None
    return set(log.stdout.split())


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def sources(build):
    """{path: headers of the tree that it includes}, from what ninja noted."""
    root = os.path.realpath(report.ROOT)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    deps = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    noted = {block.split(":")[0]: block.split("\n    ")[1:] for block in deps.split("\n\n")}
    found = {}
    for command in commands:
        def inside(path, folder=command["directory"]):
            return os.path.relpath(os.path.realpath(os.path.join(folder, path)), root)

        path = inside(command["file"])
        if path.startswith(FOLDERS) and path.endswith(".c"):
            headers = {inside(h.strip()) for h in noted.get(command["output"], [])}
            found[path] = sorted(h for h in headers if not h.startswith("../"))
    return dict(sorted(found.items()))


def look(tool, build, path, headers, seen):
    stamp = os.path.join(seen, digest(path, *map(report.text, [".clang-tidy", path, *headers])))
    if os.path.exists(stamp):
        return []
    done = subprocess.run([tool, "-p", build, "--quiet", *ANALYZER, os.path.join(report.ROOT, path)],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        with open(stamp, "w", encoding="utf-8"):
            return []
    # The notes that lead up to a finding are for script/tidy, if at all.
    lines = (done.stdout or done.stderr).replace("../", "").splitlines()
    heads = [i for i, line in enumerate(lines) if re.search(r": (error|warning): ", line)]
    return [line for i in heads for line in lines[i:i + 3]] or lines[:40]


def main():
    build = os.path.abspath(sys.argv[1])
    name = "tidy_tree_is_clean"
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        report.skip(name, "no clang-tidy")
        report.finish()
    seen = os.path.join(build, "tidy")
    os.makedirs(seen, exist_ok=True)
    known = sources(build)
    wanted = [os.path.relpath(os.path.abspath(p), report.ROOT) for p in sys.argv[2:]]
    some = set(wanted) if wanted else recent()
    paths = [p for p in known if some is None or p in some]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = pool.map(lambda path: look(tool, build, path, known[path], seen), paths)
        report.case(name, [line for lines in found for line in lines])
    report.finish()


main()
