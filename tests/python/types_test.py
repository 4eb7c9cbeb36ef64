# SPDX-License-Identifier: Apache-2.0
"""types_test.py WHY BUILDDIR - the type hints: the package and its examples are clean under mypy --strict, and users' mistakes are found."""
import importlib.util
import os
import sys
import tempfile

from cases import Skipped, contains, environment, equal, main, run
from workers import ROOT

BUILD = os.path.abspath(sys.argv[2])
USER = """
import tenrec_rpc as tenrec

@tenrec.register
def add(a: int, b: int) -> int:
    return a + b

@tenrec.register("named")
def named() -> None:
    pass

async def right() -> None:
    f: tenrec.Future = tenrec.call_async("worker0", "add", 1, 2, timeout=0.5)
    print(await f, tenrec.remote("worker0", "add").owner.name, add(1, 2))
    named()

add("1", 2)
tenrec.call("worker0", 7)
tenrec.call("worker0", "add", timeout="1")
tenrec.empty((2,), 8)
"""


def mypy(*paths):
    if not importlib.util.find_spec("mypy"):
        raise Skipped("no mypy")
    return run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", f"{BUILD}/mypy", *paths, limit_s=600,
               env=environment(MYPYPATH=f"{ROOT}/bindings/python"), cwd=ROOT)


def types_of_package_and_examples_are_strict():
    done = mypy("bindings/python/tenrec_rpc", "examples/python")
    equal(done.returncode, 0, f"exit status of mypy, which printed {done.stdout}")


def types_find_the_mistakes_of_a_program():
    with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        f.write(USER)
        f.flush()
        done = mypy(f.name)
    equal(done.stdout.count(": error:"), 4, f"number of mistakes in {done.stdout}")
    for line in range(17, 21):
        contains(done.stdout, f":{line}: error:")


if __name__ == "__main__":
    main(globals(), "types_", "python_types")
