# SPDX-License-Identifier: Apache-2.0
"""errors.py [--update] - the table of docs/errors.md is that of tenrec/error.h."""
import os
import re
import sys

import report

BEGIN = "<!-- made by tests/checks/errors.py --update; edit core/include/tenrec/error.h -->\n"
END = "<!-- end -->\n"
REACHES = {"": "", "call": "this call", "peer": "this peer", "agent": "this worker"}


def table():
    rows = re.findall(r'X\((\w+),\s*(-?\d+),\s*"(\w*)",\s*"([^"]*)"\)',
                      report.text("core/include/tenrec/error.h"))
    head = "| status | value | damage reaches | meaning |\n|---|---:|---|---|\n"
    return head + "".join(f"| `TENREC_{name}` | {value} | {REACHES[reaches]} | {text} |\n"
                          for name, value, reaches, text in rows)


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
    report.finish()


main()
