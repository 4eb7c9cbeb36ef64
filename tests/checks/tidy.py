"""tidy.py BUILDDIR [FILE ...] - clang-tidy, with the .clang-tidy of the tree.

Without files: every C source of core, plugins, tools and examples that BUILDDIR
compiles. A file that was clean is looked at again only when it, a header or
.clang-tidy changed.
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

FOLDERS = ("core/", "plugins/", "tools/", "examples/")


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def sources(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        paths = {os.path.realpath(os.path.join(c["directory"], c["file"])) for c in json.load(f)}
    paths = sorted(os.path.relpath(p, os.path.realpath(report.ROOT)) for p in paths)
    return [p for p in paths if p.startswith(FOLDERS) and p.endswith(".c")]


def look(tool, build, path, seen, common):
    stamp = os.path.join(seen, digest(common, report.text(path), path))
    if os.path.exists(stamp):
        return []
    done = subprocess.run([tool, "-p", build, "--quiet", os.path.join(report.ROOT, path)],
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
    headers = report.files("core", "plugins", ends=(".h",))
    common = digest(report.text(".clang-tidy"), *map(report.text, headers))
    known = sources(build)
    wanted = [os.path.relpath(os.path.abspath(p), report.ROOT) for p in sys.argv[2:]]
    paths = [p for p in known if p in wanted] if wanted else known
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = pool.map(lambda path: look(tool, build, path, seen, common), paths)
        report.case(name, [line for lines in found for line in lines])
    report.finish()


main()
