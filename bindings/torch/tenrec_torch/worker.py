# SPDX-License-Identifier: Apache-2.0
"""worker.py - a worker among C, C++ and Python programs that call each other's functions.

Not torch.distributed.rpc: these are the calls of tenrec/rpc.h, with functions by name, and values
of every language (None, bool, int, float, str, bytes, list, dict with text keys, tensors). Tensors
share their memory with torch on both sides; tensors of type bool cannot be sent (DLPack).

    import tenrec_torch.worker as worker

    worker.register("double", lambda x: x * 2)
    worker.init_rpc("trainer")                 # rank, world size, MASTER_ADDR ... as torchrun sets them
    y = worker.call("cworker", "scale", torch.ones(4), 0.5)
    worker.shutdown()

For several workers in a process use the class Worker.
"""
import atexit
import weakref

from tenrec_torch import _worker

_alive = weakref.WeakSet()


class Worker(_worker.Worker):
    """One worker, not started.

    name       None: that of the configuration ("worker{rank}")
    config     path of a YAML file, or YAML text; None: $TENREC_CONFIG or the built-in config
    overrides  {"worker.rpc_timeout": "5s", ...}, override file and environment
    """

    def __init__(self, name=None, config=None, overrides=None):
        given = dict(overrides or {})
        if name is not None:
            given["worker.name"] = name
        super().__init__(config, given)
        _alive.add(self)


_worker_here = None
_registered = []


def register(name, function):
    """Registers a function for calls by others, before or after init_rpc. Runs on a thread of the pool."""
    _registered.append((name, function))
    if _worker_here:
        _worker_here.register(name, function)


def init_rpc(name=None, config=None, overrides=None):
    """Makes this process a worker; returns when all members have joined."""
    global _worker_here
    if _worker_here:
        raise RuntimeError("this process is a worker already; use the class Worker for another one")
    made = Worker(name, config, overrides)
    for known, function in _registered:
        made.register(known, function)
    _worker_here = made  # functions may run, and use call(), before init_rpc returns
    try:
        made.init_rpc()
    except BaseException:
        _worker_here = None
        raise
    return made


def _here():
    if not _worker_here:
        raise RuntimeError("this process is no worker yet: call tenrec_torch.worker.init_rpc(...)")
    return _worker_here


def call(to, function, *args, timeout=None):
    """Returns the result of `function(*args)` on the worker `to`; `timeout` in seconds."""
    return _here().call(to, function, *args, timeout=timeout)


def call_async(to, function, *args, timeout=None):
    """Starts a call and returns an object with wait(timeout=None) and done()."""
    return _here().call_async(to, function, *args, timeout=timeout)


def shutdown(graceful=True, timeout=None):
    """Leaves the group together with the others, or at once."""
    global _worker_here
    leaving = _here()
    try:
        leaving.shutdown(graceful=graceful, timeout=timeout)  # serves calls until the others have finished
    finally:
        _worker_here = None


@atexit.register
def _end():
    # Python functions cannot run once the interpreter finalizes.
    for worker in list(_alive):
        try:
            worker.shutdown(graceful=False)
        except (RuntimeError, OSError):
            pass
