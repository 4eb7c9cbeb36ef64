# SPDX-License-Identifier: Apache-2.0
"""tenrec_rpc - remote calls with tensors, between workers in Python, C and C++.

    import tenrec_rpc as tenrec

    @tenrec.register
    def add(a, b):
        return a + b

    me = tenrec.init_rpc()                       # rank and world size as the launcher sets them
    print(tenrec.call("worker0", "add", 40, 2))
    tenrec.shutdown()

See docs/python.md.
"""
from . import _core
from ._core import Answer, Tensor
from .codecs import register_type
from .errors import (CanceledError, ConnectionError, Error, ExistsError, InvalidError, NoMemoryError, NotFoundError, PermissionError, RemoteError, StaleError,
                     SystemError, TimeoutError, UnsupportedError, describe, make)
from .future import Future, Transfer
from .later import later
from .link import Link
from .member import Member, View
from ._paths import get_include, get_library
from .pair import Pair, pair
from .process import call, call_async, get_worker, init_rpc, proxy, register, remote, rref, shutdown
from .region import Read, Region, RegionRef, Write
from .rref import RRef
from .tensor import empty
from .weights import Shard, Weights
from .worker import Worker

__version__ = _core.version
__all__ = [
    "Answer", "CanceledError", "ConnectionError", "Error", "ExistsError", "Future", "InvalidError", "Link", "Member", "NoMemoryError", "NotFoundError", "Pair",
    "PermissionError", "RRef", "Read", "Region", "RegionRef", "RemoteError", "Shard", "StaleError", "SystemError", "Tensor", "TimeoutError", "Transfer", "UnsupportedError", "View",
    "Weights", "Worker", "Write", "call", "call_async", "empty", "get_include", "get_library", "get_worker", "init_rpc", "later", "pair", "proxy", "register", "register_type", "remote", "rref", "shutdown",
]

_core.use(make, describe, Future, Transfer, RRef, Region, RegionRef, Weights, Link)
