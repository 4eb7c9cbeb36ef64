# SPDX-License-Identifier: Apache-2.0
"""licence.py - every source file names the licence that it is under, where SPDX readers find it."""
import os
import re

import report

LINE = "SPDX-License-Identifier: Apache-2.0"
SOURCES = (".c", ".h", ".cc", ".py", ".build", ".yaml", "meson_options.txt")
PLACES = (*report.LIBRARY, "libtenrec", "testkit", "bench", "bindings", "config", "debian", "examples", "plugins", "script", "tests", "tools")


def sources():
    yield from ("meson.build", "meson_options.txt")
    for path in report.files(*PLACES, ends=("",)):
        if path.startswith("tests/fuzz/corpus/"):
            continue
        if path.endswith(SOURCES) or ("." not in os.path.basename(path) and report.text(path).startswith("#!")):
            yield path


def without_licence():
    for path in sources():
        if LINE not in "".join(report.text(path).splitlines(keepends=True)[:2]):
            yield f"{path}:1: expected '{LINE}' in the first two lines"


def text_is_apache():
    text = report.text("LICENSE")
    if not re.search(r"Apache License\s+Version 2\.0", text):
        yield "LICENSE: is not the Apache License 2.0"


report.case("licence_every_source_file_names_it", without_licence())
report.case("licence_is_the_one_in_the_tree", text_is_apache())
report.finish()
