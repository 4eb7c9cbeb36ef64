# SPDX-License-Identifier: Apache-2.0
"""words.py - words that do not belong into the sources."""
import re

import report

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|not implemented|stub)\b", re.IGNORECASE)
# A test waits for a condition with a deadline, never for time to pass.
SLEEP = re.compile(r"\b(usleep|sleep|nanosleep|clock_nanosleep|uv_sleep|sleep_for)\s*\(")


def found(pattern, paths):
    for path in paths:
        for number, line in report.lines(path):
            match = pattern.search(line)
            if match:
                yield f"{path}:{number}: '{match[0]}'"


report.case("words_nothing_says_it_is_unfinished",
            found(UNFINISHED, report.files(*report.LIBRARY, "plugins", "tools", ends=(".c", ".h", ".build"))))
tests = [p for p in report.files("tests", ends=(".c", ".h", ".cc", ".cpp", ".py", ".sh"))
         if not p.startswith("tests/checks/")]
report.case("words_tests_do_not_sleep", found(SLEEP, tests))
report.finish()
