# SPDX-License-Identifier: Apache-2.0
"""tenrec_torch_autoload - the entry point of the group torch.backends, which torch 2.5 and newer calls in each
import of torch. Outside the package, which loads libtenrec and needs a torch that is imported."""
import importlib
import os


def autoload():
    """Imports tenrec_torch if TENREC_TORCH_DEFAULT asks for it."""
    if os.environ.get("TENREC_TORCH_DEFAULT", "") not in ("", "0"):
        importlib.import_module("tenrec_torch")
