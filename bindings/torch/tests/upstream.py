# SPDX-License-Identifier: Apache-2.0
"""upstream.py - the RPC suites of the installed torch, as classes to mix in.

They are imported, not copied: what runs is what torch's own release was
tested with. What keeps them from being imported on some systems is mended here.
"""
import dataclasses
import importlib
import logging
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def lend_expecttest():
    """A package that the suites import and hardly use: the real one comes first."""
    sys.path.append(os.path.join(HERE, "stubs"))


def mend_sharded_tensor():
    """torch 1.13 on Python 3.11: DistributedDataParallel imports a dataclass with a
    default that Python now takes for mutable, and cannot be constructed at all."""
    real = dataclasses.field

    def field(*args, **kwargs):
        default = kwargs.get("default", dataclasses.MISSING)
        if default is not dataclasses.MISSING and default.__class__.__hash__ is None:
            kwargs["default_factory"] = lambda made=type(kwargs.pop("default")): made()
        return real(*args, **kwargs)

    dataclasses.field = field
    try:
        importlib.import_module("torch.distributed._shard.sharded_tensor.metadata")
    finally:
        dataclasses.field = real


def load():
    """The module that names all suites. Takes some seconds."""
    os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    lend_expecttest()
    mend_sharded_tensor()
    found = importlib.import_module("torch.testing._internal.distributed.rpc_utils")
    logging.getLogger().setLevel(logging.WARNING)
    return found
