# SPDX-License-Identifier: Apache-2.0
"""symbols.py LIBTENREC LIST LIBTENREC-TORCH LIST LIBTENREC-TESTKIT LIST ARCHIVE [--update] [PLUGIN-FOLDER] - what
the binaries export.

A library exports what its LIST names, all under its version, each declared in
a public header, and the static library ARCHIVE has what the first two have; and a function that a public header declares is defined. What
tenrec/torch.h declares is in libtenrec-torch.so, tenrec/testkit.h in libtenrec-testkit.so, all else in libtenrec.so. Under TENREC_PRIVATE
libtenrec.so exports the internal functions that libtenrec-torch.so uses, and no other.
A plugin exports the three symbols of its kind. --update writes LIST again: do that
when the diff it is meant to show is the one you want.
"""
import difflib
import os
import re
import subprocess
import sys

import report

PLUGIN_SYMBOLS = [["tenrec_construct_options", "tenrec_init_agent", "tenrec_plugin"],
                  ["tenrec_construct_options", "tenrec_init_observer", "tenrec_plugin"],
                  ["tenrec_construct_options", "tenrec_init_store", "tenrec_plugin"]]
PRIVATE = "TENREC_PRIVATE" # the version node
# Instrumented builds add symbols of their own.
FOREIGN = re.compile(r"(__asan|__ubsan|__tsan|__sanitizer|__start_|__stop_|__odr_asan|__gcov)")


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", path],
                         capture_output=True, text=True, check=True).stdout
    names = (line.split()[-1] for line in out.splitlines())
    return sorted(name for name in names if not FOREIGN.match(name))


def defined(archive):
    """Global names of a static library."""
    out = subprocess.run(["nm", "-g", "--defined-only", archive], capture_output=True, text=True, check=True).stdout
    names = (line.split()[-1] for line in out.splitlines() if len(line.split()) == 3)
    return sorted(name for name in names if not FOREIGN.match(name))


def declared(name):
    """Names of functions that the public headers of a library declare and do not define."""
    own = {"libtenrec-torch": "/torch.h", "libtenrec-testkit": "/testkit.h"}
    names = set()
    for path in report.files("include", ends=(".h",)):
        if path.endswith("plugin.h") or next((library for library, end in own.items() if path.endswith(end)), "libtenrec") != name:
            continue
        code = report.without_comments(report.text(path))
        code = re.sub(r"^\s*#(\\\n|.)*", "", code, flags=re.MULTILINE)
        # Only file scope is left when braces are emptied from the inside out,
        # but for the one around extern "C".
        code = re.sub(r'extern "C" \{', "", code)
        while re.search(r"\{[^{}]*\}", code):
            code = re.sub(r"\{[^{}]*\}", "@", code)
        for statement in re.split(r"[;@}]", code):
            match = re.search(r"\b(tenrec_\w+)\s*\(", statement)
            if match and not re.search(r"\b(static|typedef|TENREC_ERROR_INLINE)\b", statement):
                names.add(match[1])
    return names


def check_library(library, list_path, update):
    name = os.path.basename(library).split(".")[0]
    version = f"{name.removeprefix('lib').upper().replace('-', '_')}_1.0"
    symbols = [s for s in exported(library) if not s.endswith(PRIVATE) and s not in (version, f"{version}@@{version}")]
    names = [s.split("@")[0] for s in symbols]
    if update:
        with open(list_path, "w", encoding="utf-8") as f:
            f.write("".join(f"{name}\n" for name in names))
        return
    with open(list_path, encoding="utf-8") as f:
        expected = f.read().split()

    diff = list(difflib.unified_diff(expected, names, os.path.basename(list_path),
                                     os.path.basename(library), lineterm="", n=0))
    if diff:
        diff.append("if that is meant: ninja -C BUILD update-symbols")
    case = name.replace("-", "_")
    report.case(f"symbols_{case}_exports_the_list", diff)
    report.case(f"symbols_{case}_are_all_versioned",
                [s for s in symbols if not s.endswith(f"@@{version}")])
    public = declared(name)
    report.case(f"symbols_{case}_are_declared_in_public_headers",
                [f"{n} is exported and in no public header" for n in names if n not in public])
    report.case(f"symbols_{case}_has_what_is_declared",
                [f"{n} is declared and not exported" for n in sorted(public - set(names))])
    soname = re.search(r"\[(libtenrec[^]]*)\]", next(
        line for line in subprocess.run(["readelf", "-d", library], capture_output=True, text=True,
                                        check=True).stdout.splitlines() if "SONAME" in line))
    report.case(f"symbols_{case}_has_its_soname",
                [] if soname and soname[1] == f"{name}.so.1" else [str(soname and soname[1])])


def private(library, user):
    """Differences between the private functions that a library exports and those that its user needs."""
    have = {s.split("@")[0] for s in exported(library) if s.endswith("@@" + PRIVATE)} - {PRIVATE}
    out = subprocess.run(["nm", "-D", "--undefined-only", "--with-symbol-versions", user], capture_output=True, text=True, check=True).stdout
    used = {line.split()[-1].split("@")[0] for line in out.splitlines() if line.endswith("@" + PRIVATE)}
    for name in sorted(have ^ used):
        yield f"libtenrec/libtenrec.map: {name} is {'not used: remove it' if name in have else 'missing'}"


def main():
    update = "--update" in sys.argv
    library, list_path, torch, torch_list, testkit, testkit_list, archive, *folders = [a for a in sys.argv[1:] if a != "--update"]
    check_library(library, list_path, update)
    check_library(torch, torch_list, update)
    check_library(testkit, testkit_list, update)
    if update:
        return
    report.case("symbols_private_are_those_that_libtenrec_torch_uses", private(library, torch))
    lists = []
    for path in (list_path, torch_list):
        with open(path, encoding="utf-8") as f:
            lists += f.read().split()
    differ = set(lists) ^ set(defined(archive))
    report.case("symbols_of_the_static_library_are_those_of_the_shared",
                [f"{name} is in one of the two" for name in sorted(differ)])
    plugins = [os.path.join(where, leaf) for folder in folders
               for where, _, leaves in os.walk(folder)
               for leaf in leaves if leaf.endswith(".so")]
    for path in sorted(plugins):
        name = os.path.splitext(os.path.basename(path))[0]
        have = exported(path)
        report.case(f"symbols_plugin_{name}_exports_its_three_symbols",
                    [] if have in PLUGIN_SYMBOLS else [f"exports {' '.join(have)}"])
    report.finish()


main()
