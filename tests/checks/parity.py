# SPDX-License-Identifier: Apache-2.0
"""parity.py - docs/internals/parity.md is up to date: every test of ours that it names is in the
sources under tests/, every row that leaves a test out says why, and the numbers
of its summary are those of its tables.
"""
import re
from collections import Counter

import report

PAGE = "docs/internals/parity.md"
COLUMNS = ("direct", "adapted", "left out")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read():
    """{group: numbers of the summary}, {group: [(test, how, ours, note)]}"""
    summary, groups, group = {}, {}, None
    for number, line in report.lines(PAGE):
        heading = re.match(r"## (\S+): ", line)
        if heading:
            group = groups.setdefault(heading[1], [])
        elif line.startswith("| ") and not line.startswith(("| torch", "| group")):
            if group is None:
                name, _, *numbers = cells(line)
                summary[name] = [int(n) for n in numbers]
            else:
                group.append((f"{PAGE}:{number}", *cells(line)))
    return summary, groups


def check_names(groups):
    text = "\n".join(report.text(path) for path in report.files("tests", ends=(".c", ".py"))
                     if path != "tests/checks/parity.py")
    known = set(re.findall(r"\w+", text))
    for rows in groups.values():
        for where, _, how, ours, note in rows:
            names = re.findall(r"`(\w+)`", ours + note)
            for name in names:
                if name not in known and name.removeprefix("parity_") not in known and \
                        name.removeprefix("parity_faulty_") not in known:
                    yield f"{where}: there is no test '{name}'"
            if how == "left out" and (ours or not note):
                yield f"{where}: what is left out has a reason, and no test"
            if how != "left out" and not ours:
                yield f"{where}: no test of ours is named"


def check_numbers(summary, groups):
    every = [0] * 4
    for name, rows in groups.items():
        count = Counter(how for _, _, how, *_ in rows)
        numbers = [len(rows), *(count[c] for c in COLUMNS)]
        if sum(numbers[1:]) != numbers[0]:
            yield f"{name}: each row is one of {', '.join(COLUMNS)}"
        if summary.get(name) != numbers:
            yield f"{name}: the summary has {summary.get(name)}, its table {numbers}"
        if name != "FA":
            every = [a + b for a, b in zip(every, numbers)]
    if summary.get("all but FA") != every:
        yield f"all but FA: the summary has {summary.get('all but FA')}, the tables {every}"


SUMMARY, GROUPS = read()
report.case("parity_tests_that_are_named_exist", check_names(GROUPS))
report.case("parity_numbers_are_those_of_the_tables", check_numbers(SUMMARY, GROUPS))
report.finish()
