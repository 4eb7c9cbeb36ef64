# SPDX-License-Identifier: Apache-2.0
"""expecttest.py - what torch.testing needs of the package expecttest, for
systems that do not have it (Debian 12). None of the suites uses more."""
import unittest

ACCEPT = False


class TestCase(unittest.TestCase):
    pass
