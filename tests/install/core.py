# SPDX-License-Identifier: Apache-2.0
"""core.py ROOT - `meson setup -Dparts=core` builds a small library that stands alone, and its tests pass."""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1])
LIMIT_S = 300
TEXT_BYTES = 300 << 10
NEEDED = r"lib(uv|yaml-0|c|m|dl|pthread|gcc_s)\.so|ld-linux|libc\.musl"
failed = False


def run(*command):
    """Returns what a command printed. Ends the test if the command fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    if done.returncode:
        print(f"Bail out! {' '.join(command)}: exit status {done.returncode}", *done.stdout.splitlines()[-40:], sep="\n# ")
        sys.exit(1)
    return done.stdout


def case(number, name, problem):
    global failed
    failed = failed or bool(problem)
    print(f"{'not ok' if problem else 'ok'} {number} - {name}" + (f"\n# {problem}" if problem else ""))


def main():
    print("1..3")
    with tempfile.TemporaryDirectory(prefix="tenrec-core-") as build:
        run("meson", "setup", build, ROOT, "-Dparts=core", "-Dwerror=true", "-Ddebug=false")
        run("ninja", "-C", build)
        tested = run("meson", "test", "-C", build, "--no-rebuild")
        ok = re.search(r"^Ok: +(\d+)", tested, re.M)
        case(1, "core_alone_passes_its_tests", "" if ok and int(ok[1]) > 0 else "no test ran")
        library = os.path.join(build, "core", "libtenrec-core.so")
        foreign = [name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library)) if not re.match(NEEDED, name)]
        case(2, "core_alone_needs_libuv_libyaml_and_libc", f"it needs {', '.join(foreign)} too" if foreign else "")
        text = int(run("size", library).splitlines()[1].split()[0])
        case(3, "core_alone_is_small", f"{text} bytes of text, expected at most {TEXT_BYTES}" if text > TEXT_BYTES else "")
    sys.exit(failed)


main()
