# SPDX-License-Identifier: Apache-2.0
"""words.py - words that do not belong into the sources."""
import re

import report

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|not implemented|stub)\b", re.IGNORECASE)
# A test waits for a condition with a deadline, never for time to pass.
SLEEP = re.compile(r"\b(usleep|sleep|nanosleep|clock_nanosleep|uv_sleep|sleep_for)\s*\(")
# likely() and unlikely() say it; only their definitions use the builtin.
RAW_HINT = re.compile(r"^(?!#define ).*__builtin_expect")
# The field has a verb for each: a peer is notified, a reader checks, a file exists. A function "returns true if ...".
VAGUE = re.compile(r"\b(true|false):|\b(told|anew|shall)\b|\blooks?\s+(at|for)\b|\bis\s+there\b"
                   r"|\bsomebody\b|\bhas\s+come\b|\bstands?\s+still\b|\bknows?\s+nothing\b|\bgoes\s+away\b|\bthat\s+is\s+all\b(?!\s+it)|\bmakes\s+no\s+sense\b", re.IGNORECASE)
# What readers read: pages, comments, the strings of C. Those of Python may be programs.
PROSE = {".md": re.compile(r".+", re.DOTALL), ".py": re.compile(r'(?m:^|\s)#[^\n]*|"""(?:(?!""").)*"""', re.DOTALL)}
PROSE_OF_C = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def found(pattern, paths):
    for path in paths:
        for number, line in report.lines(path):
            match = pattern.search(line)
            if match:
                yield f"{path}:{number}: '{match[0]}'"


def found_in_prose(paths):
    for path in paths:
        text = report.text(path)
        prose = PROSE.get(path[path.rindex("."):], PROSE_OF_C)
        for part in prose.finditer(text):
            for match in VAGUE.finditer(part[0]):
                yield f"{path}:{text.count(chr(10), 0, part.start() + match.start()) + 1}: '{match[0]}'"


report.case("words_nothing_says_it_is_unfinished",
            found(UNFINISHED, report.files(*report.LIBRARY, "plugins", "tools", ends=(".c", ".h", ".build"))))
report.case("words_hints_are_likely_or_unlikely",
            found(RAW_HINT, report.files(*report.LIBRARY, "plugins", "tools", "bindings", ends=(".c", ".h", ".cc"))))
tests = [p for p in report.files("tests", ends=(".c", ".h", ".cc", ".cpp", ".py", ".sh"))
         if not p.startswith("tests/checks/")]
report.case("words_tests_do_not_sleep", found(SLEEP, tests))
report.case("words_have_the_fields_verbs",
            found_in_prose(p for p in report.files(".", ends=(".c", ".h", ".cc", ".py", ".md")) if "/corpus/" not in p and not p.endswith("words.py")))
report.finish()
