# SPDX-License-Identifier: Apache-2.0
"""results.py - tests/testkit/results_test.c calls every public function that has results with a failing argument."""
import re

import report

TEST = "tests/testkit/results_test.c"


def with_results():
    """The public functions that return a status and store through a parameter `ret...`; an error is no result."""
    for path in report.files("include/tenrec", ends=(".h",)):
        code = re.sub(r"/\*.*?\*/", "", report.text(path), flags=re.DOTALL)
        for name, params in re.findall(r"^tenrec_status (tenrec_\w+)\(([^;{}]*?)\);", code, re.MULTILINE):
            if re.search(r"(?<!tenrec_error )\*ret\w*\b", params):
                yield path, name


def missing():
    tested = set(re.findall(r"(?:FAILS\w*\(\s*\w+,|st =)\s*(tenrec_\w+)\(", report.text(TEST)))
    for path, name in with_results():
        if name not in tested:
            yield f"{path}: {name} has results, and {TEST} does not call it with a failing argument"


def main():
    report.case("functions_with_results_are_tested_with_an_error", missing())
    report.finish()


main()
