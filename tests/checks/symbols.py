"""symbols.py LIBTENREC LIST [--update] [PLUGIN-FOLDER] - what the binaries export.

libtenrec.so exports what LIST names, all under the version TENREC_0.1, each
declared in a public header; and a function that a public header declares is
there. A plugin exports its three symbols. --update writes LIST anew: do that
when the diff it is meant to show is the one you want.
"""
import difflib
import os
import re
import subprocess
import sys

import report

VERSION = "TENREC_0.1"
PLUGIN_SYMBOLS = ["tenrec_construct_options", "tenrec_init_agent", "tenrec_plugin"]
# Instrumented builds add symbols of their own.
FOREIGN = re.compile(r"(__asan|__ubsan|__tsan|__sanitizer|__start_|__stop_|__odr_asan|__gcov)")


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", path],
                         capture_output=True, text=True, check=True).stdout
    names = (line.split()[-1] for line in out.splitlines())
    return sorted(name for name in names if not FOREIGN.match(name))


def declared():
    """Names of functions that the public headers declare and do not define."""
    names = set()
    for path in report.files("core/include", ends=(".h",)):
        if path.endswith("/plugin.h"):
            continue
        code = report.without_comments(report.text(path))
        code = re.sub(r"^\s*#.*(\\\n.*)*", "", code, flags=re.MULTILINE)
        # Only file scope is left when braces are emptied from the inside out,
        # but for the one around extern "C".
        code = re.sub(r'extern "C" \{', "", code)
        while re.search(r"\{[^{}]*\}", code):
            code = re.sub(r"\{[^{}]*\}", "@", code)
        for statement in re.split(r"[;@}]", code):
            match = re.search(r"\b(tenrec_\w+)\s*\(", statement)
            if match and not re.search(r"\b(static|typedef)\b", statement):
                names.add(match[1])
    return names


def main():
    update = "--update" in sys.argv
    library, list_path, *folders = [a for a in sys.argv[1:] if a != "--update"]
    symbols = [s for s in exported(library) if s != VERSION and s != f"{VERSION}@@{VERSION}"]
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
    report.case("symbols_libtenrec_exports_the_list", diff)
    report.case("symbols_libtenrec_are_all_versioned",
                [s for s in symbols if not s.endswith(f"@@{VERSION}")])
    public = declared()
    report.case("symbols_exported_are_declared_in_public_headers",
                [f"{n} is exported and in no public header" for n in names if n not in public])
    report.case("symbols_declared_are_exported",
                [f"{n} is declared and not exported" for n in sorted(public - set(names))])
    soname = re.search(r"\[(libtenrec\.so[^]]*)\]", subprocess.run(
        ["readelf", "-d", library], capture_output=True, text=True, check=True).stdout)
    report.case("symbols_soname_is_libtenrec_so_0",
                [] if soname and soname[1] == "libtenrec.so.0" else [str(soname and soname[1])])
    plugins = [os.path.join(where, leaf) for folder in folders
               for where, _, leaves in os.walk(folder)
               for leaf in leaves if leaf.endswith(".so")]
    for path in sorted(plugins):
        name = os.path.splitext(os.path.basename(path))[0]
        have = exported(path)
        report.case(f"symbols_plugin_{name}_exports_its_three_symbols",
                    [] if have == PLUGIN_SYMBOLS else [f"exports {' '.join(have)}"])
    report.finish()


main()
