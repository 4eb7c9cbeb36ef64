# SPDX-License-Identifier: Apache-2.0
"""errors.py [--update] - the table of docs/errors.md is that of tenrec/error.h; lengths of printed texts are bounded."""
import os
import re
import sys

import report

BEGIN = "<!-- made by tests/checks/errors.py --update; edit include/tenrec/error.h -->\n"
END = "<!-- end -->\n"
REACHES = {"": "", "call": "this call", "peer": "this peer", "agent": "this worker"}


def table():
    rows = re.findall(r'X\((\w+),\s*(-?\d+),\s*"(\w*)",\s*"([^"]*)"\)',
                      report.text("include/tenrec/error.h"))
    head = "| status | value | scope | meaning |\n|---|---:|---|---|\n"
    return head + "".join(f"| `TENREC_{name}` | {value} | {REACHES[reaches]} | {text} |\n"
                          for name, value, reaches, text in rows)


# A length that a peer chose, as the precision of "%.*s": one of 2 GiB is negative, which means none.
LENGTH = re.compile(r"\(int\)\s*[\w>.\[\]-]*(?:\.|->|_)len\b")


def unbounded():
    for path in report.files(*report.LIBRARY, "plugins", "tools", "bindings"):
        code = report.text(path)
        for call in re.finditer(r'%[-\d]*\.\*s[^;]*;', code):
            for length in LENGTH.finditer(call[0]):
                line = code.count("\n", 0, call.start() + length.start()) + 1
                yield f"{path}:{line}: '{length[0]}' may be negative: cut it, as BYTES_PRINT and NOP_PRINT do"


def main():
    path = "docs/errors.md"
    page = report.text(path)
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table() + END + after
    if "--update" in sys.argv:
        with open(os.path.join(report.ROOT, path), "w", encoding="utf-8") as f:
            f.write(wanted)
        return
    report.case("errors_page_is_up_to_date",
                [] if page == wanted else [f"{path}: python3 tests/checks/errors.py --update"])
    report.case("errors_print_texts_of_bounded_lengths", unbounded())
    report.finish()


main()
