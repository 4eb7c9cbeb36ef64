# SPDX-License-Identifier: Apache-2.0
"""probes.py LIBTENREC FAULTY - the USDT probes of the built objects, with their numbers of arguments, are those of docs/profiling.md."""
import re
import subprocess
import sys

import report

LIBTENREC, FAULTY = sys.argv[1:3]


def built(path):
    """The probes of an object: name and number of arguments; all places of a probe agree."""
    notes = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True).stdout
    found = set()
    for block in notes.split("Provider: ")[1:]:
        provider, name, args = re.match(r"(\w+)\n\s+Name: (\w+)\n.*\n\s+Arguments:(.*)", block).groups()
        if provider == "tenrec":
            # An operand may hold spaces, as in "8@24(%rsp)"; each begins with its size.
            found.add((name, len(re.findall(r"-?\d+@", args))))
    return found


def documented():
    rows = re.findall(r"^\| `(\w+)` \| `([^|]*)` \|", report.text("docs/profiling.md"), re.MULTILINE)
    return {(name, len(args.split(", "))) for name, args in rows}


def differences():
    here, there = built(LIBTENREC) | built(FAULTY), documented()
    for name, n in sorted(here - there):
        yield f"docs/profiling.md: has no probe '{name}' with {n} arguments"
    for name, n in sorted(there - here):
        yield f"docs/profiling.md: the objects have no probe '{name}' with {n} arguments"


def script_mistakes():
    """The script for bpftrace traces probes that exist, and uses arguments that they have."""
    known = dict(documented())
    code = re.sub(r"//.*", "", report.text("docs/latency.bt"))
    for name, body in re.findall(r"tenrec:(\w+)\s*(.*?\n}\n)", code, re.DOTALL):
        if name not in known:
            yield f"docs/latency.bt: no probe '{name}'"
        for arg in set(re.findall(r"\barg(\d)", body)):
            if int(arg) >= known.get(name, 0):
                yield f"docs/latency.bt: '{name}' has no arg{arg}"


report.case("probes_of_the_script_exist", script_mistakes())
report.case("probes_are_documented_with_their_arguments", differences())
report.finish()
