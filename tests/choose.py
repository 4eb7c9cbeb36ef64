# SPDX-License-Identifier: Apache-2.0
"""choose.py BUILDDIR PART RESULTS - prints the names of the tests in the folder PART ("": in all).

The tests that tests/security_skips leaves out are not among them, but in the file RESULTS, as
lines "skip NAME" for tally.py.
"""
import json
import subprocess
import sys

import security_skips


def main():
    build, part, results = sys.argv[1:]
    listed = subprocess.run(["meson", "introspect", "--tests", build], stdout=subprocess.PIPE, check=True)
    skips = security_skips.read()
    with open(results, "a", encoding="utf-8") as left_out:
        for test in json.loads(listed.stdout):
            if part and not any(f"/tests/{part}/" in word for word in test["cmd"]):
                continue
            if security_skips.reason(test["name"], skips):
                print("skip", test["name"], file=left_out)
            else:
                print(test["name"])


main()
