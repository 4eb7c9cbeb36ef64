# SPDX-License-Identifier: Apache-2.0
"""stranger_test.py - packages of a stranger that have names of ours, and higher versions, at a place where pip looks."""
import glob
import importlib.util
import os
import sys
import tempfile
import tomllib
import zipfile

from cases import Skipped, contains, environment, equal, main, run

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
TORCH = f"{ROOT}/bindings/torch"
VERSION = run(f"{ROOT}/script/version").stdout.strip()
MARK = "a stranger's code ran"


def make_wheel(folder, name, version, text, requires=()):
    info = f"{name}-{version}.dist-info"
    files = {f"{name}/__init__.py": text, f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)}
    with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))


def make_strange(folder):
    """The same names; 0.1.8 is what `~= 0.1` takes."""
    for name in ("tenrec", "tenrec_rpc", "tenrec_torch"):
        for version in ("0.1.8", "9.9"):
            make_wheel(folder, name, version, f"print({MARK!r})\n")


def pip(*args):
    if not importlib.util.find_spec("pip"):
        raise Skipped("no pip")
    env = {k: v for k, v in environment().items() if not k.startswith("PIP_")}
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", *args, "--no-index", env=env, limit_s=300)


def stranger_does_not_take_the_place_of_what_the_binding_requires():
    with open(f"{TORCH}/pyproject.toml", "rb") as f:
        requires = tomllib.load(f)["project"]["dependencies"]
    with tempfile.TemporaryDirectory(prefix="tenrec-stranger-") as folder:
        os.mkdir(f"{folder}/ours")
        make_strange(folder)
        make_wheel(f"{folder}/ours", "tenrec_rpc", VERSION, "")
        make_wheel(f"{folder}/ours", "tenrec_torch", f"{VERSION}+torch9.9", "", requires)
        done = pip("install", "--find-links", folder, "--find-links", f"{folder}/ours", "--target", f"{folder}/packages", f"tenrec-torch=={VERSION}")
        equal(done.returncode, 0, f"exit status of pip, which printed {done.stdout}{done.stderr}")
        equal(sorted(os.path.basename(name) for name in glob.glob(f"{folder}/packages/*.dist-info")),
              [f"tenrec_rpc-{VERSION}.dist-info", f"tenrec_torch-{VERSION}+torch9.9.dist-info"], "what pip has installed")


def stranger_is_not_fetched_by_an_isolated_build():
    with tempfile.TemporaryDirectory(prefix="tenrec-stranger-") as folder:
        make_strange(folder)
        done = pip("wheel", "--no-deps", "--find-links", folder, "--wheel-dir", f"{folder}/made", TORCH)
    equal(done.returncode, 1, f"exit status of pip, which printed {done.stdout}{done.stderr}")
    equal((done.stdout + done.stderr).count(f"{MARK}"), 0, "number of times that it ran")
    said = done.stderr.partition("lines of output]")[2].strip().splitlines()
    contains(said[0] if said else done.stderr, "tenrec-torch is built with the packages that are installed, by pip install --no-build-isolation; ")
    contains(said[0], "missing here: torch, tenrec-rpc, meson-python")


def stranger_is_not_imported_by_a_build():
    with tempfile.TemporaryDirectory(prefix="tenrec-stranger-") as folder:
        make_strange(folder)
        equal(pip("install", "--find-links", folder, "--target", f"{folder}/packages", "tenrec-rpc").returncode, 0, "exit status of pip")
        done = run(sys.executable, f"{TORCH}/library.py", VERSION, env=environment(PYTHONPATH=f"{folder}/packages"))
    equal((done.returncode, done.stdout), (1, ""), "exit status and output")
    contains(done.stderr, f"tenrec_rpc has no headers of Tenrec {VERSION}: it is another project's package")


if __name__ == "__main__":
    main(globals(), "stranger_")
