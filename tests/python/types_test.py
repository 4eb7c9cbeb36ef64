# SPDX-License-Identifier: Apache-2.0
"""types_test.py WHY BUILDDIR - the type hints: the package and its examples are clean under mypy --strict, and users' mistakes are found."""
import importlib.util
import os
import re
import sys
import tempfile

from cases import Skipped, environment, equal, main, run
from workers import ROOT

BUILD = os.path.abspath(sys.argv[2])
USER = """
from typing import Protocol

import tenrec_rpc as tenrec

@tenrec.register
def add(a: int, b: int) -> int:
    return a + b

@tenrec.register("named")
def named() -> None:
    pass

@tenrec.register
async def later(a: int) -> str:
    return str(a)

class Adder(Protocol):
    def add(self, a: int, b: int) -> int: ...

async def right(b: Adder) -> None:
    n: int = tenrec.call("worker0", add, 1, b=2) + b.add(1, b=2)
    text: str = tenrec.call("worker0", later, n)
    tenrec.call("worker0", add, 1, 2, timeout=0.5)
    tenrec.call("worker0", "add", 1, b=text)
    await right(tenrec.proxy("worker0"))
    f: tenrec.Future = tenrec.call_async("worker0", "add", 1, 2, timeout=0.5)
    print(await f, tenrec.remote("worker0", "add").owner.name, add(1, 2))
    named()

add("1", 2)
tenrec.call("worker0", 7)
tenrec.call("worker0", "add", timeout="1")
tenrec.empty((2,), 8)
tenrec.call("worker0", add, "1", b=2)
tenrec.call_async("worker0", add, 1)
tenrec.call("worker0", add, 1, b=2).upper()
wrong: Adder = tenrec.proxy("worker0")
wrong.add(1, c=2)
"""
MISTAKES = [line for line, text in enumerate(USER.splitlines(), 1) if line > USER[:USER.index('add("1", 2)')].count("\n") and "wrong:" not in text]


def mypy(*paths, cache="mypy"):
    if not importlib.util.find_spec("mypy"):
        raise Skipped("no mypy")
    return run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", f"{BUILD}/{cache}", *paths, limit_s=600,
               env=environment(MYPYPATH=f"{ROOT}/bindings/python"), cwd=ROOT)


def types_of_package_and_examples_are_strict():
    done = mypy("bindings/python/tenrec_rpc", "examples/python", "--exclude", "/adapters/|/hello_torch.py")  # torch has no hints for the latter, and takes minutes
    equal(done.returncode, 0, f"exit status of mypy, which printed {done.stdout}")


def types_of_adapters_are_strict_but_for_classes_of_others():
    # torch is not read, which takes minutes, and the others are not installed.
    done = mypy("bindings/python/tenrec_rpc", "--ignore-missing-imports", "--follow-imports=skip", "--allow-subclassing-any",
                cache="mypy_adapters")  # other options would make the cache of the rest void
    equal(done.returncode, 0, f"exit status of mypy, which printed {done.stdout}")


def types_find_the_mistakes_of_a_program():
    with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        f.write(USER)
        f.flush()
        done = mypy(f.name)
    found = {int(line) for line in re.findall(r":(\d+): error:", done.stdout)}
    equal(sorted(found), MISTAKES, f"lines of mistakes in {done.stdout}")


if __name__ == "__main__":
    main(globals(), "types_", "python_types")
