# SPDX-License-Identifier: Apache-2.0
"""cpp_test.py BUILDDIR TENREC - tenrec/tenrec.hpp by g++ and clang++, as C++17 and C++20: cpp_test.cc compiles with each and passes with
each compiler, and the examples run."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests/tools"))
from cases import Skipped, equal, main  # pylint: disable=wrong-import-position

BUILD, TENREC = map(os.path.abspath, sys.argv[1:3])
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wno-sign-conversion", "-Werror"]


def compile_with(compiler, standard, source, *options):
    if not shutil.which(compiler):
        raise Skipped(f"no {compiler}")
    done = subprocess.run([compiler, *STRICT, f"-std={standard}", f"-I{ROOT}/include", os.path.join(ROOT, source), *options],
                          capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stderr)


def compiled(compiler, standard, source, place):
    program = os.path.join(place, "program")
    compile_with(compiler, standard, source, "-g", "-o", program, f"-L{BUILD}/libtenrec", "-ltenrec", f"-Wl,-rpath,{BUILD}/libtenrec", "-pthread")
    return program


def passes(compiler, standard):
    with tempfile.TemporaryDirectory(prefix="tenrec-cpp-") as place:
        program = compiled(compiler, standard, "tests/cpp/cpp_test.cc", place)
        done = subprocess.run([program], capture_output=True, text=True, timeout=100, check=False)
        equal(done.returncode, 0, done.stdout + done.stderr)


def prints(compiler, standard, source, workers, wanted):
    with tempfile.TemporaryDirectory(prefix="tenrec-cpp-") as place:
        program = compiled(compiler, standard, source, place)
        done = subprocess.run([TENREC, "run", "-n", str(workers), "--config", f"{ROOT}/config/default.yaml", "--", program],
                              capture_output=True, text=True, timeout=100, check=False)
        equal(sorted(done.stdout.splitlines()), [f"[{i}] {wanted}" for i in range(workers)], done.stderr)


def cpp_header_passes_with_gcc_as_cpp17():
    passes("g++", "c++17")


def cpp_header_compiles_with_gcc_as_cpp20():
    compile_with("g++", "c++20", "tests/cpp/cpp_test.cc", "-fsyntax-only")


def cpp_header_compiles_with_clang_as_cpp17():
    compile_with("clang++", "c++17", "tests/cpp/cpp_test.cc", "-fsyntax-only")


def cpp_header_passes_with_clang_as_cpp20():
    passes("clang++", "c++20")


def cpp_example_hello_adds_as_cpp17():
    prints("g++", "c++17", "examples/hello.cc", 3, "worker0 says 42")


def cpp_example_ring_sums_as_cpp17():
    prints("g++", "c++17", "examples/ring.cc", 4, "10 10")


def cpp_example_ring_sums_as_cpp20():
    prints("g++", "c++20", "examples/ring.cc", 4, "10 10")


main(globals(), "cpp_")
