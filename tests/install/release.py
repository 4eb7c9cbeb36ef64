# SPDX-License-Identifier: Apache-2.0
"""release.py ROOT - `script/release` refuses what is no release, with the place that is wrong, before it builds anything.

It runs in a small repository with the files that it reads, and no build.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1])
FILES = ("script/release", "script/version", "include/tenrec/version.h")
DATED = "# Changes\n\n## 2.3.4, 2026-01-31\n\n- New.\n\n## 2.3.3, 2025-12-31\n\n- Old.\n"
LIMIT_S = 60
count = 0
failed = False


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@tenrec.invalid", "-c", "commit.gpgsign=false", *words], cwd=folder,
                   check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)


def repository(folder, changes):
    for name in FILES:
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), os.path.join(folder, name))
    header = os.path.join(folder, FILES[-1])
    with open(header, encoding="utf-8") as f:
        text = f.read()
    for part, value in (("MAJOR", 2), ("MINOR", 3), ("PATCH", 4)):
        text = re.sub(rf"(VERSION_{part}) \d+", rf"\1 {value}", text)
    with open(header, "w", encoding="utf-8") as f:
        f.write(text)
    with open(os.path.join(folder, "CHANGELOG.md"), "w", encoding="utf-8") as f:
        f.write(changes)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")


def case(name, wanted, *words, changes=DATED, prepare=None):
    """Runs script/release with these words; each of the texts is on stderr, and nothing is built unless they are about that."""
    global count, failed
    with tempfile.TemporaryDirectory(prefix="tenrec-release-") as folder:
        repository(folder, changes)
        if prepare:
            prepare(folder)
        done = subprocess.run([os.path.join(folder, "script/release"), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=LIMIT_S, check=False)
    out = done.stdout + done.stderr
    problem = [f"'{text}' is not said" for text in wanted if text not in out]
    problem += ["it goes on"] if ("configuring" in out) != ("configuring" in "".join(wanted)) else []
    problem += ["exit status 0"] if done.returncode == 0 else []
    count += 1
    failed = failed or bool(problem)
    print(f"{'not ok' if problem else 'ok'} {count} - release_{name}")
    for line in problem + (out.splitlines() if problem else []):
        print(f"# {line}")


def touch(folder):
    with open(os.path.join(folder, "new.c"), "w", encoding="utf-8") as f:
        f.write("\n")


case("refuses_a_version_of_another_header", ["include/tenrec/version.h says 2.3.4, not 2.3.5"], "2.3.5")
case("refuses_a_section_without_a_date", ["CHANGELOG.md:3:## 2.3.4, not released: expected '## 2.3.4, "], "2.3.4",
     changes=DATED.replace("2026-01-31", "not released"))
case("refuses_a_section_of_another_version", ["CHANGELOG.md:3:## 2.3.3, 2025-12-31: expected '## 2.3.4, "], "2.3.4",
     changes=DATED.replace("2.3.3", "2.3.2").replace("## 2.3.4, 2026-01-31", "## 2.3.3, 2025-12-31"))
case("refuses_a_tree_with_changes", ["the tree has changes: ?? new.c"], "2.3.4", prepare=touch)
case("refuses_a_tag_that_exists", ["the tag v2.3.4 exists"], "2.3.4", prepare=lambda folder: git(folder, "tag", "v2.3.4"))
case("demands_a_version", ["script/release [--try] [--wheels] VERSION"])
case("demands_wheels_where_it_gets_a_python", ["script/release [--try] [--wheels] VERSION [PYTHON ...]"], "2.3.4", "python3")
case("refuses_a_python_without_torch", ["/bin/false has no torch"], "--wheels", "2.3.4", "/bin/false")
case("goes_on_to_build_what_is_a_release", ["release: configuring", "that failed; build/release-2.3.4/setup.log has all"], "2.3.4")
print(f"1..{count}")
sys.exit(failed)
