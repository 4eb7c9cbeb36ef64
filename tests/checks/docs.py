# SPDX-License-Identifier: Apache-2.0
"""docs.py CC TENREC - what README.md and docs/*.md show is true.

A block marked `c` compiles: one that has main() or includes something as it
stands, any other inside a function that has seen <tenrec/tenrec.h>. After a line
<!-- from PATH --> a block (of any language) stands word for word in that file
of the tree. A block marked `yaml` that has a line `backend:` passes `tenrec
check`, unless <!-- unchecked: WHY --> stands above it. A link to a file of the tree leads to one,
and its #section to a heading there; each file that a page names in `backquotes` exists;
docs/README.md lists each page; each test that tests/HARDENING.md names exists.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import report

BLOCK = re.compile(r"(?:<!-- (?:from (\S+)|(unchecked): [^>]*) -->\s*\n)?"
                   r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#: ]*)(?:#([^)]*))?\)")
# A file of the sources in backquotes: a path from the top of the tree or of one of its parts, or a bare name.
SOURCE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:c|h|cc|py|pml|md|build))`")
FOREIGN = {"cuda.h", "first.c", "dlfcn.h", "rpc_test.py", "faulty_agent_rpc_test.py", "dist_utils.py"}


def pages():
    return ["README.md"] * os.path.exists(os.path.join(report.ROOT, "README.md")) + \
        ["AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "tests/HARDENING.md"] + report.files("docs", ends=(".md",))


def blocks(language=None):
    for path in pages():
        page = report.text(path)
        for match in BLOCK.finditer(page):
            if language in (None, match[3]) and not match[2]:
                yield f"{path}:{page.count(chr(10), 0, match.start(4)) + 1}", match[1], match[4]


def quoted_blocks():
    for where, source, code in blocks():
        if source and not os.path.exists(os.path.join(report.ROOT, source)):
            yield f"{where}: there is no {source}"
        elif source and code.strip("\n") not in report.text(source):
            yield f"{where}: does not stand so in {source}"


def c_blocks(cc):
    for where, source, code in blocks("c"):
        if source:
            continue
        if not re.search(r"\bmain\(|^#include", code, re.MULTILINE):
            code = f"#include <tenrec/profiler.h>\n#include <tenrec/tenrec.h>\nvoid shown(void);\nvoid shown(void)\n{{\n{code}}}\n"
        done = subprocess.run(
            cc + ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c", "-I",
                  os.path.join(report.ROOT, "include"), "-"],
            input=code, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{where}: does not compile"
            yield from done.stderr.splitlines()[:10]


def yaml_blocks(tenrec):
    for where, source, code in blocks("yaml"):
        if source or not re.search(r"^backend:", code, re.MULTILINE):
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(code)
            f.flush()
            done = subprocess.run([tenrec, "check", f.name], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            yield f"{where}: tenrec check refuses it"
            yield from done.stderr.splitlines()[:10]


def prose(path):
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", report.text(path), flags=re.MULTILINE | re.DOTALL)


def sections(path):
    """The anchors of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)}


def links():
    for path in pages():
        for target, section in LINK.findall(prose(path)):
            full = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            if not os.path.exists(os.path.join(report.ROOT, full)):
                yield f"{path}: leads to {target}, which does not exist"
            elif section and section not in sections(full):
                yield f"{path}: leads to {full}#{section}, a section that does not exist"


def sources():
    there = report.files("", ends=(".c", ".h", ".cc", ".py", ".pml", ".md", ".build"))
    for path in pages():
        for name in SOURCE.findall(prose(path)):
            if not any(f"/{file}".endswith(f"/{name}") for file in there) and name not in FOREIGN:
                yield f"{path}: names {name}, which does not exist"


def contents():
    page = report.text("docs/README.md")
    for path in report.files("docs", ends=(".md",)):
        if f"({os.path.relpath(path, 'docs')})" not in page and path != "docs/README.md":
            yield f"docs/README.md: does not list {path}"


def tests_of_hardening():
    """The last column of tests/HARDENING.md: paths of the tree, or words of its tests."""
    words = set()
    for path in report.files("tests", "bindings/torch/tests", ends=(".c", ".cc", ".py", "meson.build")):
        words.update(re.findall(r"\w+", report.text(path)))
    for number, line in report.lines("tests/HARDENING.md"):
        for name in re.findall(r"`([^`]+)`", line.rsplit("|", 2)[-2]) if line.startswith("| ") else ():
            if name not in words and not os.path.exists(os.path.join(report.ROOT, name)):
                yield f"tests/HARDENING.md:{number}: there is no test '{name}'"


def main():
    report.case("docs_c_blocks_compile", c_blocks(json.loads(sys.argv[1])))
    report.case("docs_quoted_blocks_stand_in_their_file", quoted_blocks())
    report.case("docs_links_lead_somewhere", links())
    report.case("docs_name_files_that_exist", sources())
    report.case("docs_contents_list_each_page", contents())
    if len(sys.argv) > 2:
        report.case("docs_yaml_blocks_pass_tenrec_check", yaml_blocks(sys.argv[2]))
    report.case("docs_hardening_names_tests_that_exist", tests_of_hardening())
    report.finish()


main()
