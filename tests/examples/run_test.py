# SPDX-License-Identifier: Apache-2.0
"""run_test.py - examples/*/run find a build, say what they need, and end when one of their processes fails. The
processes are scripts here; tests/torch_member and tests/torch run the real ones."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests/tools"))
from cases import contains, equal, main  # pylint: disable=wrong-import-position

PROGRAM = {"torch_member": "torch_parameter_server", "mixed": "smooth"}
# For "-c": has torch. Else a process of the group: it does what the case says.
PYTHON = '#!/bin/sh\n[ "$1" != -c ] || exit 0\n'


def script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


@contextlib.contextmanager
def tree(name, build=None, program="#!/bin/sh\n", python=""):
    """A tree with that example alone, and a build in that folder. Yields a function that runs it with arguments."""
    with tempfile.TemporaryDirectory() as top:
        shutil.copytree(f"{ROOT}/examples/{name}", f"{top}/examples/{name}")
        script(f"{top}/python", PYTHON + python)
        if build:
            script(f"{top}/{build}/examples/{PROGRAM[name]}", program)
            os.makedirs(f"{top}/{build}/bindings/torch")

        def run(*args, **env):
            return subprocess.run([f"{top}/examples/{name}/run", *args], capture_output=True, text=True, check=False, timeout=60,
                                  env={**os.environ, "PYTHON": f"{top}/python", **env})
        yield run


def run_without_a_build_says_what_it_needs():
    for name, program in PROGRAM.items():
        with tree(name) as run:
            for args in ((), ("/nonexistent",)):
                got = run(*args)
                equal(got.returncode, 2, f"exit status of {name}")
                contains(got.stderr, f"no examples/{program}")
                contains(got.stderr, "ninja -C build/")


def run_without_torch_says_so():
    for name in PROGRAM:
        with tree(name, "build/release") as run:
            got = run(PYTHON="/nonexistent/python3")
            equal(got.returncode, 2, f"exit status of {name}")
            contains(got.stderr, "/nonexistent/python3 has no torch")


def run_finds_the_build_that_the_documents_make():
    for name in PROGRAM:
        for build in ("build/release", "build/torch", "build", "build/other"):
            with tree(name, build) as run:
                got = run()
                equal((got.returncode, got.stderr), (0, ""), f"{name} in {build}")


def run_ends_when_a_process_in_the_background_fails():
    for name in PROGRAM:
        with tree(name, "build/release", "#!/bin/sh\nexit 3\n", "exec sleep 1000\n") as run:
            equal(run().returncode, 3, f"exit status of {name}")
        with tree(name, "build/release", "#!/bin/sh\nexec sleep 1000\n", "exit 4\n") as run:
            equal(run().returncode, 4, f"exit status of {name}")


main(globals(), "run_")
