# SPDX-License-Identifier: Apache-2.0
"""packages.py VERSION - debian/ says what the tree says. script/ci/package-test builds the packages. And pages of an index of
packages for Python have links that work there."""
import os
import re
import sys
import tomllib

import report


def version():
    theirs = re.match(r"tenrec \(([^)]+)\) ", report.text("debian/changelog"))
    if not theirs or theirs[1] != sys.argv[1]:
        yield f"debian/changelog:1: is of version {theirs and theirs[1]}, the project of {sys.argv[1]}"


def symbols():
    for path, package in (("libtenrec/libtenrec.map", "debian/libtenrec1.symbols"), ("torch/libtenrec-torch.map", "debian/libtenrec-torch1.symbols")):
        nodes = set(re.findall(r"^([\w.]+) \{", report.text(path), re.MULTILINE))
        listed = set(re.findall(r"^ \(symver\)(\S+) ", report.text(package), re.MULTILINE))
        for node in sorted(nodes - listed):
            yield f"{package}: lacks a line ' (symver){node} VERSION' with the version of its first release"
        for node in sorted(listed - nodes):
            yield f"{package}: {path} has no node '{node}'"


def plugins():
    """Each plugin that meson installs is in one package."""
    ours = {name for name in re.findall(r"'(\w+)'", re.search(r"^foreach name : .*\[(.*)\]$", report.text("plugins/meson.build"), re.MULTILINE)[1])}
    packed = [name for path in report.files("debian", ends=(".install",))
              for name in re.findall(r"/tenrec/plugins/(\w+)\.so$", report.text(path), re.MULTILINE)]
    for name in sorted(ours ^ set(packed)):
        yield f"plugins/meson.build and debian/*.install differ in '{name}'"


def tests():
    control = report.text("debian/tests/control")
    listed = set(re.findall(r"^Tests: (\S+)$", control, re.MULTILINE))
    there = {name for name in os.listdir(os.path.join(report.ROOT, "debian/tests"))
             if os.access(os.path.join(report.ROOT, "debian/tests", name), os.X_OK)}
    for name in sorted(listed ^ there):
        yield f"debian/tests/control: the test '{name}' is not there and executable in one of the two places"


def readmes():
    for folder in ".", "bindings/torch":
        path = os.path.normpath(f"{folder}/{tomllib.loads(report.text(f'{folder}/pyproject.toml'))['project']['readme']}")
        for link in re.findall(r"\]\((?!https?://)[^)]*\)", report.text(path)):
            yield f"{path}: an index cannot follow the relative link {link}"


report.case("packages_have_the_version_of_the_project", version())
report.case("packages_list_the_symbol_versions_of_the_library", symbols())
report.case("packages_have_every_plugin", plugins())
report.case("packages_have_the_tests_that_they_name", tests())
report.case("packages_have_readmes_whose_links_an_index_can_follow", readmes())
report.finish()
