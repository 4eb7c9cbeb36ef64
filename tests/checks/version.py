# SPDX-License-Identifier: Apache-2.0
"""version.py VERSION BUILDDIR TENREC - the version of the tree stands in tenrec/version.h alone, and all that is built or said follows it."""
import os
import re
import subprocess
import sys

import report

VERSION, BUILD, TENREC = sys.argv[1:]
HEADER = "include/tenrec/version.h"
# A project of its own, which pip may build from a copy of its folder: it cannot read the header.
COPIES = {"bindings/torch/meson.build": r"^  version: '(.*)',$", "bindings/torch/pyproject.toml": r'^dependencies = \["tenrec-rpc == (.*)"\]$'}
ENDS = (".c", ".h", ".cc", ".py", ".build", ".toml", ".md", ".in", ".cmake", ".txt", ".map", ".yaml", ".yml")
SECTION = re.compile(r"^## (\d+\.\d+\.\d+), (not released|\d{4}-\d\d-\d\d)$")


def number(text):
    return [int(part) for part in text.split(".")]


def in_the_header():
    said = subprocess.run([os.path.join(report.ROOT, "script/version")], capture_output=True, text=True, check=False).stdout.strip()
    if said != VERSION:
        yield f"{HEADER}: script/version reads {said}, this build was configured for {VERSION}"
    if not re.fullmatch(r"\d+\.\d{1,2}\.\d{1,2}", said):
        yield f"{HEADER}: {said} is not MAJOR.MINOR.PATCH, the last two below 100"


def elsewhere():
    """A number of other software may be the same: no line says both that and ours."""
    literal = re.compile(rf"(?<![\w.]){re.escape(VERSION)}(?![\w.]|\d)")
    folders = (*report.LIBRARY, "libtenrec", "testkit", "plugins", "tools", "bindings", "config", "examples", "docs", "script")
    for path in report.files(*folders, ends=ENDS) + ["README.md", "meson.build", "pyproject.toml"]:
        for line_number, line in report.lines(path) if path not in (HEADER, *COPIES) else ():
            if literal.search(line):
                yield f"{path}:{line_number}: names {VERSION}, which is read from {HEADER}"


def in_the_copies():
    for path, pattern in COPIES.items():
        said = re.search(pattern, report.text(path), re.MULTILINE)
        if not said or said[1] != VERSION:
            yield f"{path}: {VERSION} is expected in the line of {pattern}, as in {HEADER}"


def in_the_changes():
    """Sections by release, newest first; the first is this version's."""
    found = []
    for line_number, line in report.lines("CHANGELOG.md"):
        match = SECTION.match(line)
        if line.startswith("## ") and not match:
            yield f"CHANGELOG.md:{line_number}: write '## 1.2.3, 2026-01-31' or '## 1.2.3, not released'"
        elif match:
            if found and number(match[1]) >= number(found[-1]):
                yield f"CHANGELOG.md:{line_number}: {match[1]} stands below {found[-1]}"
            if found and match[2] == "not released":
                yield f"CHANGELOG.md:{line_number}: {match[1]} is older than {found[-1]} and needs its date"
            found.append(match[1])
    if found[:1] != [VERSION]:
        yield f"CHANGELOG.md: the first section is of {found[:1]}, the version is {VERSION}"


def in_packages():
    """Debian's changelog, where there is one: its upstream version."""
    path = "debian/changelog"
    if os.path.exists(os.path.join(report.ROOT, path)):
        first = report.text(path).split("\n")[0]
        said = re.match(r"tenrec \(([^-~+)]+)", first)
        if not said or said[1] != VERSION:
            yield f"{path}:1: '{first}' is not of version {VERSION}"


def in_the_build():
    done = subprocess.run([TENREC, "--version"], capture_output=True, text=True, check=False)
    if done.stdout.strip() != f"tenrec {VERSION}":
        yield f"tenrec --version says '{done.stdout.strip()}'"
    for path, line in (("meson-private/tenrec.pc", f"Version: {VERSION}"), ("meson-private/tenrec-torch.pc", f"Version: {VERSION}"),
                       ("meson-private/tenrec-testkit.pc", f"Version: {VERSION}"),
                       ("libtenrec/tenrecConfigVersion.cmake", f'set(PACKAGE_VERSION "{VERSION}")')):
        with open(os.path.join(BUILD, path), encoding="utf-8") as f:
            if line not in f.read().split("\n"):
                yield f"{path}: has no line '{line}'"


report.case("version_of_the_header_is_the_builds", in_the_header())
report.case("version_stands_in_one_place", elsewhere())
report.case("version_of_tenrec_torch_is_the_same", in_the_copies())
report.case("version_of_changes_is_the_same", in_the_changes())
report.case("version_of_packages_is_the_same", in_packages())
report.case("version_of_command_and_pkg_config_is_the_same", in_the_build())
report.finish()
