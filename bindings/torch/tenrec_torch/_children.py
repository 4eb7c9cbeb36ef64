# SPDX-License-Identifier: Apache-2.0
"""Processes that a program starts by multiprocessing, by the methods spawn and forkserver. Forked ones need nothing."""
import functools
from multiprocessing import spawn


class _Follow:
    """Is follow() where it is unpickled."""

    def __reduce__(self):
        return follow, ()


def follow():
    """Makes this process's children import tenrec_torch first, and their children in turn. A child unpickles
    what multiprocessing tells it about its parent before it imports the program."""
    prepare = spawn.get_preparation_data

    @functools.wraps(prepare)
    def get_preparation_data(name):
        return dict(prepare(name), tenrec_torch=_Follow())

    spawn.get_preparation_data = get_preparation_data
