# SPDX-License-Identifier: Apache-2.0
"""_fit.py - refuses a torch and a library that the extension was not built for. It must not be loaded into
them: classes whose layout differs crash the process."""
from . import _built


def check_library(package):
    """Raises ImportError unless this tenrec_rpc is Tenrec's, and of the version of the build."""
    version = getattr(package, "__version__", None)
    if hasattr(package, "get_library") and version == _built.TENREC:
        return
    found = f"tenrec-rpc {version}" if hasattr(package, "get_library") else f"the package of another project in {package.__file__}"
    raise ImportError(f"tenrec_torch was built for tenrec-rpc {_built.TENREC}, this is {found}: install tenrec-rpc == {_built.TENREC}")


def check_torch(torch):
    """Raises ImportError unless this torch is of the build's version, whatever it computes on (+cpu, +cu128)."""
    built, found = (f"torch {version} (C++ ABI {int(abi)})" for version, abi in (
        (_built.TORCH, _built.CXX11_ABI), (torch.__version__.split("+")[0], torch._C._GLIBCXX_USE_CXX11_ABI)))
    if found != built:
        raise ImportError(f"tenrec_torch was built for {built}, this is {found}: build it again for this torch, with pip's --no-cache-dir")
