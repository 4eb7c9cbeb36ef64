# SPDX-License-Identifier: Apache-2.0
"""abi.py LIBTENREC BUILDDIR CC - programs of the last release run on this library: abidiff says so, by the rules of docs/abi.md.

The last release is the newest tag v*, whose library is built once into BUILDDIR/abi-TAG; before the first one there is none to
compare with. A small library that breaks each rule shows that abidiff would see it. Functions may be added, and structs that begin
with their size may grow at their end; a release that breaks more has another soname.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import report

LIBRARY, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CC = json.loads(sys.argv[3])
# Of the first member, or of a later member with such a comment.
SIZED = re.compile(r"^struct (\w+) {(?:(?:\s|/\*(?:[^*]|\*(?!/))*\*/)*uint32_t size;|[^}]*\buint32_t size;\s*/\* (?:sizeof\(struct \1\)|of the struct))",
                   re.MULTILINE)
HEADER = """
#include <stdint.h>
struct grows {
    uint32_t size;
    int a; %(grown)s
};
struct fixed { %(inserted)s int a; int b; %(appended)s };
enum kind { KIND_A = %(first)s, KIND_B };
int small_use(struct grows *g, struct fixed *f, enum kind k);
%(second)s
"""
SOURCE = """
#include "include/small.h"
int small_use(struct grows *g, struct fixed *f, enum kind k) { return g->a + f->b + (int)k; }
%(second)s
"""
SECOND = {"HEADER": "int small_second(%s x);", "SOURCE": "int small_second(%s x) { return (int)x; }"}
# What a later small library changes, and whether the rules permit it.
CHANGES = {
    "an_unchanged_library": ({}, True),
    "a_function_that_is_added": ({"second": "int"}, True),
    "a_sized_struct_that_grows_at_its_end": ({"grown": "int more[9];"}, True),
    "a_struct_that_grows_at_its_end": ({"appended": "int more[9];"}, False),
    "a_member_that_is_inserted": ({"inserted": "long before;"}, False),
    "a_number_that_changes": ({"first": "7"}, False),
    "a_function_that_is_removed": ({"second": None}, False),
    "a_parameter_that_changes": ({"second": "double"}, False),
}


def run(*command, **kw):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False, **kw)
    return done.returncode, done.stdout


def must(*command, **kw):
    status, out = run(*command, **kw)
    if status:
        raise OSError(f"{shlex.join(command)}: exit status {status}\n{out[-2000:]}")
    return out


def suppressions(headers):
    """Structs that begin with their size may grow: callers say how much of them they know. Private functions may change: their user is of the
    same version."""
    yield "[suppress_function]\n  symbol_version_regexp = ^TENREC_PRIVATE$\n"
    for name in sorted(os.listdir(headers)):
        with open(os.path.join(headers, name), encoding="utf-8") as f:
            for struct in SIZED.findall(f.read()):
                yield f"[suppress_type]\n  name = {struct}\n  has_data_member_inserted_at = end\n"


def soname(library):
    return re.search(r"SONAME.*\[(.*)\]", must("readelf", "-d", library))[1]


def differences(old, old_headers, new, new_headers):
    """What breaks a program that was built with the old headers, as abidiff reports it."""
    with tempfile.NamedTemporaryFile("w", suffix=".suppr") as f:
        f.write("".join(suppressions(new_headers)))
        f.flush()
        status, out = run("abidiff", "--suppressions", f.name, "--headers-dir1", old_headers, "--headers-dir2", new_headers, "--drop-private-types",
                          "--no-added-syms", "--redundant", old, new)
    return out.splitlines() or [f"abidiff ends with {status}"] if status else []


def small(folder, changes):
    """A small library in a folder of its own: (its file, its headers)."""
    os.makedirs(os.path.join(folder, "include"))
    values = {"grown": "", "inserted": "", "appended": "", "first": "0", "second": "", **changes}
    for name, text, kind in (("include/small.h", HEADER, "HEADER"), ("small.c", SOURCE, "SOURCE")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text % {**values, "second": SECOND[kind] % values["second"] if values["second"] else ""})
    library = os.path.join(folder, "libsmall.so.1")
    must(*CC, "-g", "-shared", "-fPIC", "-Wl,-soname,libsmall.so.1", "-o", library, os.path.join(folder, "small.c"))
    return library, os.path.join(folder, "include")


def sees(name, changes, permitted):
    with tempfile.TemporaryDirectory(prefix="tenrec-abi-") as place:
        before = {"second": "int"} if changes.get("second", "int") != "int" else {}
        after = {**before, **changes}
        found = differences(*small(os.path.join(place, "old"), before), *small(os.path.join(place, "new"), after))
    if permitted and found:
        yield f"{name} is permitted, and abidiff reports:"
        yield from found
    elif not permitted and not found:
        yield f"{name} breaks programs, and abidiff does not report it"


def described():
    """Without debug information abidiff compares names only."""
    headers = os.path.join(report.ROOT, "include/tenrec")
    out = must("abidw", "--headers-dir", headers, "--drop-private-types", LIBRARY)
    for text in ("name='tenrec_call_options'", "name='tenrec_rpc_sync'", "soname='libtenrec.so."):
        if text not in out:
            yield f"abidw of {os.path.basename(LIBRARY)} has no {text}: it needs debug information (buildtype debugoptimized)"


def last_release():
    """The newest tag v* before this commit; None before the first, and in a tarball."""
    status, out = run("git", "-C", report.ROOT, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    return out.strip() if status == 0 else None


def library_of(tag):
    """(library, headers) of a release, built once."""
    place = os.path.join(BUILD, f"abi-{tag}")
    source, build = os.path.join(place, "source"), os.path.join(place, "build")
    library = os.path.join(build, "libtenrec/libtenrec.so")
    if not os.path.exists(library):
        os.makedirs(source, exist_ok=True)
        archive = subprocess.run(["git", "-C", report.ROOT, "archive", tag], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
        must("meson", "setup", build, source, "-Dtests=false", "-Dtorch=disabled", "-Dpython=disabled", "-Dbuildtype=debugoptimized",
             env={**os.environ, "CC": shlex.join(CC)})
        must("ninja", "-C", build, os.path.relpath(os.path.realpath(library), build)) # the links are there before the library
    return library, os.path.join(source, "include/tenrec")


def compatible(tag):
    old, old_headers = library_of(tag)
    if soname(old) == soname(LIBRARY):
        found = differences(old, old_headers, LIBRARY, os.path.join(report.ROOT, "include/tenrec"))
        if found:
            yield f"programs of {tag} break on this library; docs/abi.md says which changes need another soname:"
            yield from found


def main():
    report.case("abi_of_the_library_is_described", described())
    for name, (changes, permitted) in CHANGES.items():
        report.case(f"abi_check_{'permits' if permitted else 'reports'}_{name}", sees(name, changes, permitted))
    tag = last_release()
    if tag:
        report.case("abi_is_that_of_the_last_release", compatible(tag))
    report.finish()


main()
