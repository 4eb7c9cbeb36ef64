# SPDX-License-Identifier: Apache-2.0
"""upstream.py - the RPC suites of the installed torch, as classes to mix in.

The suites are imported, not copied: these are the tests of the torch release itself. This
file works around problems of the import on some systems.
"""
import dataclasses
import importlib
import logging
import os
import sys

import torch

SUITES = "torch.testing._internal.distributed.rpc_utils"  # names all suites
HERE = os.path.dirname(os.path.abspath(__file__))


def lend_expecttest():
    """Provides a package that the suites import and hardly use; an installed one is found first."""
    sys.path.append(os.path.join(HERE, "stubs"))


def mend_sharded_tensor():
    """torch 1.13 on Python 3.11: DistributedDataParallel imports a dataclass with a
    default that Python 3.11 refuses as mutable, and cannot be constructed at all."""
    if torch.__version__ >= "2":
        return
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
    """Imports the module that names all suites, which takes some seconds. Exits if torch has none."""
    os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    lend_expecttest()
    mend_sharded_tensor()
    try:
        found = importlib.import_module(SUITES)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("torch.testing"):
            raise
        sys.exit(f"test-torch: torch {torch.__version__} of {sys.executable} comes without the RPC suites of "
                 f"PyTorch: it has no {error.name}. Install a torch that has them, such as the wheels of PyPI")
    logging.getLogger().setLevel(logging.WARNING)
    return found
