# SPDX-License-Identifier: Apache-2.0
"""backend.py - meson-python at the top of the tree, where the sources of the library are."""
import os

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))

from mesonpy import *  # noqa: E402,F403  pylint: disable=wildcard-import,unused-wildcard-import,wrong-import-position
