# SPDX-License-Identifier: Apache-2.0
"""ps.py - the names of the functions that the parameter server in C serves. Trainers pass them to rpc_sync, which
sends the names; these bodies never run."""


def pull():
    raise NotImplementedError


def push(gradient):
    raise NotImplementedError


def done():
    raise NotImplementedError
