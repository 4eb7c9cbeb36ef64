# SPDX-License-Identifier: Apache-2.0
"""names.py - names of functions and of structs: the rules of CONTRIBUTING.md that a machine can hold."""
import collections
import re

import report

TREES = ("bindings/python", *report.LIBRARY, "testkit", "plugins/tensorpipe", "plugins/faulty", "plugins/trace", "plugins/meter", "plugins/limit", "plugins/redis", "plugins/etcd", "plugins/kubernetes", "plugins/store", "plugins/echo", "tools")
STATIC = re.compile(r"^static (?!inline)[^;=(]*?\b([a-z0-9]+)\([^;]*$", re.MULTILINE)
TAG = re.compile(r"^(struct|union|enum) (\w+)\s*\{", re.MULTILINE)


def one_word():
    for path in report.files(*TREES, ends=(".c",)):
        for match in STATIC.finditer(report.without_comments(report.text(path))):
            if match[1] != "main":
                yield f"{path}: '{match[1]}' wants the noun of its file in front, so that a backtrace tells whose it is"


def tags_twice(tree):
    where = collections.defaultdict(set)
    for path in report.files(tree):
        if not path.startswith(("include/", "testkit/")):
            for match in TAG.finditer(report.without_comments(report.text(path))):
                where[f"{match[1]} {match[2]}"].add(path)
    for tag, paths in sorted(where.items()):
        if len(paths) > 1:
            yield f"'{tag}' is defined in {' and '.join(sorted(paths))}: no file can know both"


report.case("names_static_functions_carry_a_noun", one_word())
for tree in TREES:
    report.case(f"names_tags_are_unique_in_{tree.split('/')[-1]}", tags_twice(tree))
report.finish()
