# SPDX-License-Identifier: Apache-2.0
"""tenrec_torch_autoload - the entry point of the group torch.backends, which torch 2.5 and newer calls in each
import of torch. Outside the package, which loads libtenrec and needs a torch that is imported."""
import importlib
import os
import warnings


def autoload():
    """Imports tenrec_torch if TENREC_TORCH_DEFAULT asks for it."""
    if os.environ.get("TENREC_TORCH_DEFAULT", "") not in ("", "0"):
        try:
            importlib.import_module("tenrec_torch")
        except ImportError as why:  # such as for another torch, whose own import must not fail
            warnings.warn(f"TENREC_TORCH_DEFAULT has no effect: {why}", RuntimeWarning, stacklevel=2)
