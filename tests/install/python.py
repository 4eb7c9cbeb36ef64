# SPDX-License-Identifier: Apache-2.0
"""python.py BUILDDIR WHY_NO_PACKAGE WHY_NO_TORCH - the packages for Python are installed where the Python of the build finds them.

Installs into a folder below BUILDDIR, which stands for the root folder.
"""
import json
import os
import sys
import tempfile

from cases import Skipped, contains, environment, equal, main, run, true

BUILD, WHY_NO_PACKAGE, WHY_NO_TORCH = os.path.abspath(sys.argv[1]), *sys.argv[2:4]
FOLDER_PY = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../bindings/python/install_folder.py"))
STAGE = os.path.join(BUILD, "stage-python")


def options():
    return {o["name"]: o["value"] for o in json.loads(run("meson", "introspect", "--buildoptions", BUILD).stdout)}


def folder_of(python, prefix):
    """The folder, and whether that Python searches it."""
    done = run(python, FOLDER_PY, prefix)
    equal(done.returncode, 0, f"exit status of install_folder.py, which printed {done.stderr}")
    return done.stdout.splitlines()


def import_says(python, module, **more):
    done = run(python, "-c", f"import {module} as it; print(it.__file__)", env=environment(**more), cwd="/")
    return done.stdout.strip() or done.stderr


def python_folder_of_each_prefix_that_a_python_searches_is_found():
    for prefix in ("/usr", "/usr/local") if os.path.isdir("/usr/lib/python3/dist-packages") else (sys.base_prefix,):
        python = "/usr/bin/python3" if prefix.startswith("/usr") else sys.executable
        folder, searched = folder_of(python, prefix)
        equal(searched, "True", f"whether {python} searches {folder}")
        true(folder.startswith(f"{prefix}/lib"), f"{folder} is not of {prefix}")


def python_of_an_environment_finds_what_any_prefix_installs():
    with tempfile.TemporaryDirectory(prefix="tenrec-install-") as venv:
        equal(run(sys.executable, "-m", "venv", "--without-pip", venv).returncode, 0, "exit status of venv")
        for prefix in (venv, "/usr/local", "/opt/tenrec"):
            folder, searched = folder_of(f"{venv}/bin/python", prefix)
            equal(searched, "True", f"whether the Python of the environment searches {folder}")
            with open(f"{folder}/installed_here.py", "w", encoding="utf-8"):
                pass
            equal(import_says(f"{venv}/bin/python", "installed_here"), f"{folder}/installed_here.py", "place of what is imported")
            os.remove(f"{folder}/installed_here.py")


def python_folder_of_another_prefix_is_below_it():
    folder, searched = folder_of(sys.executable, "/opt/tenrec")
    true(folder.startswith("/opt/tenrec/lib/python3."), f"{folder} is not below /opt/tenrec/lib")
    equal(searched, "False", "whether this Python searches it")


def python_packages_are_imported_from_where_they_are_installed():
    if WHY_NO_PACKAGE:
        raise Skipped(WHY_NO_PACKAGE)
    option = options()
    done = run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "runtime,python-runtime", "--destdir", STAGE)
    equal(done.returncode, 0, f"exit status of meson install, which printed {done.stdout}{done.stderr}")
    folder, _ = folder_of(option["python_program"], option["prefix"])
    library = f"{STAGE}{option['prefix']}/{option['libdir']}"
    more = {"PYTHONPATH": STAGE + folder, "LD_LIBRARY_PATH": library}
    equal(import_says(option["python_program"], "tenrec_rpc", **more), f"{STAGE}{folder}/tenrec_rpc/__init__.py", "place of what is imported")
    if not WHY_NO_TORCH:
        folder, _ = folder_of(option["torch_python"], option["prefix"])
        more["PYTHONPATH"] += f":{STAGE}{folder}"
        contains(import_says(option["torch_python"], "tenrec_torch", **more), f"{STAGE}{folder}/tenrec_torch/__init__.py")


if __name__ == "__main__":
    main(globals(), "python_", "python_install")
