# SPDX-License-Identifier: Apache-2.0
"""_paths.py - where code in C and C++ finds the library of this package."""
import os

from . import _core


def get_include() -> str:
    """Returns the folder of the headers, for -I. They are in a package that pip installed."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"no headers in {folder}: this package was not installed by pip, ask pkg-config for those of tenrec")
    return folder


def get_library() -> str:
    """Returns the path of libtenrec, which this process uses."""
    return os.path.realpath(_core.library)
