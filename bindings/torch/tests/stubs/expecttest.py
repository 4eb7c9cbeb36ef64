# SPDX-License-Identifier: Apache-2.0
"""expecttest.py - the part of the package expecttest that torch.testing needs, for
systems without the package (Debian 12)."""
import unittest

ACCEPT = False


class TestCase(unittest.TestCase):
    pass
