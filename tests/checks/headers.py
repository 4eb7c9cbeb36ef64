# SPDX-License-Identifier: Apache-2.0
"""headers.py VERSION CC [CXX] - every public header compiles alone, as C11 and C++17,
and they name the project's version."""
import json
import os
import re
import subprocess
import sys

import report

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def compile_alone(compiler, language, standard, header):
    # Twice, so that a missing include guard shows too; and a header may have macros only.
    source = f"#include <{header}>\n#include <{header}>\nextern int something;\n"
    done = subprocess.run(
        compiler + STRICT + [f"-std={standard}", "-x", language, "-I",
                             os.path.join(report.ROOT, "core/include"), "-"],
        input=source, capture_output=True, text=True, check=False)
    return done.stderr.splitlines() if done.returncode else []


def version(of_project):
    text = report.text("core/include/tenrec/version.h")
    parts = [re.search(rf"define TENREC_VERSION_{part} (\d+)", text)[1]
             for part in ("MAJOR", "MINOR", "PATCH")]
    if ".".join(parts) != of_project:
        yield f"tenrec/version.h says {'.'.join(parts)}, meson.build {of_project}"


def main():
    cc = json.loads(sys.argv[2])
    cxx = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
    report.case("headers_name_the_projects_version", version(sys.argv[1]))
    for path in report.files("core/include", ends=(".h",)):
        header = os.path.relpath(path, "core/include")
        stem = header.replace("/", "_").replace(".h", "")
        report.case(f"headers_{stem}_compiles_alone_as_c11",
                    compile_alone(cc, "c", "c11", header))
        if cxx:
            report.case(f"headers_{stem}_compiles_alone_as_cpp17",
                        compile_alone(cxx, "c++", "c++17", header))
        else:
            report.skip(f"headers_{stem}_compiles_alone_as_cpp17", "no C++ compiler")
    report.finish()


main()
