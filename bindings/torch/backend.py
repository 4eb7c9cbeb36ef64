# SPDX-License-Identifier: Apache-2.0
"""backend.py - meson-python, for a build with the packages that are installed. Where pip isolates the build
they are missing, and one line says so: as requirements, pip would fetch another torch, with all of CUDA, and
whatever package of the library's name an index has."""
import importlib.util
import sys

try:
    import mesonpy
    from mesonpy import *  # noqa: F403  pylint: disable=wildcard-import,unused-wildcard-import
except ModuleNotFoundError:
    mesonpy = None

NEEDS = {"torch": "torch", "tenrec-rpc": "tenrec_rpc", "meson-python": "mesonpy"}


def _check_needs():
    missing = [name for name, module in NEEDS.items() if not importlib.util.find_spec(module)]
    if missing:
        sys.exit("tenrec-torch is built with the packages that are installed, by pip install --no-build-isolation; "
                 f"install first, as they are missing here: {', '.join(missing)}")


def get_requires_for_build_sdist(_settings=None):
    return ["meson-python >= 0.15"]


def get_requires_for_build_wheel(settings=None):
    _check_needs()
    return mesonpy.get_requires_for_build_wheel(settings)


def build_wheel(folder, settings=None, metadata=None):
    _check_needs()
    return mesonpy.build_wheel(folder, settings, metadata)
