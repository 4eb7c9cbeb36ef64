# SPDX-License-Identifier: Apache-2.0
"""Registers TENREC, and makes its agent for init_rpc."""
import atexit
import contextlib
import datetime
import enum
import functools
import json
import os
import secrets
import time

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc
from torch.distributed.rpc import api, backend_registry

from . import _C, _current, _devices, _gather, _rendezvous, _texts
from ._dynamic import DynamicAgent
from ._options import TenrecRpcBackendOptions, construct, convert, device_names, takes

NAME = "TENREC"
NO_TIMEOUT = datetime.timedelta(days=1)  # of the store, if calls have no timeout
REFUSAL_PATIENCE = 5.0  # seconds that rank 0 waits, before its init fails, for workers that still read
EXIT_PATIENCE = 2.0   # seconds for functions that still run when the interpreter ends


def register():
    """Makes rpc.BackendType.TENREC, unless it exists."""
    _rendezvous.register()
    if backend_registry.backend_registered(NAME):
        return
    backend_registry.register_backend(NAME, construct, _init_backend)
    # To find the backend of given options, torch makes the options of each backend in turn.
    # TENREC must be last: its options read files, which other backends do not need.
    backends = {b.name: b.value for b in backend_registry.BackendType}
    backends[NAME] = backends.pop(NAME)
    represent = backend_registry.BackendType.__repr__
    backend_registry.BackendType = enum.Enum("BackendType", backends)
    backend_registry.BackendType.__repr__ = represent
    # rpc still refers to the old enum, which would break every other backend.
    rpc.BackendType = backend_registry.BackendType
    rpc.init_rpc = _with_tenrec(rpc.init_rpc)
    _gather.register()
    _texts.register()


def _with_tenrec(init):
    """Returns init_rpc that may have TENREC as its default, and gives it options of its own in the place of
    torch's. Before torch opens the store: in a group with a secret only the init_method of own options leads to
    a client that proves it."""
    @functools.wraps(init)
    def init_rpc(name, backend=None, rank=-1, world_size=None, rpc_backend_options=None):
        given = rpc_backend_options
        if backend is None and (given is None or takes(given)) and _is_default():
            backend = backend_registry.BackendType[NAME]
        if getattr(backend, "name", None) == NAME and takes(given):
            given = convert(given)
        if getattr(backend, "name", None) == NAME or isinstance(given, TenrecRpcBackendOptions):
            _rendezvous.open_without_libuv(init, name, backend, rank, world_size, given)
        else:
            init(name, backend, rank, world_size, given)
        # A backend of a test may set none.
        if isinstance(_current.agent(), DynamicAgent):
            api._ALL_WORKER_NAMES = {name}  # the workers that shutdown waits for
    return init_rpc


def _is_default():
    value = os.environ.get("TENREC_TORCH_DEFAULT", "")
    if value not in ("", "0", "1"):
        raise ValueError(f"TENREC_TORCH_DEFAULT is '{value}', expected 1, or 0 for torch's default")
    return value == "1"


def _first_line(error):
    return str(error).partition("\n")[0]


@contextlib.contextmanager
def _store_errors(store):
    """Says of an error of torch's store that the store is gone, if so."""
    try:
        yield
    except RuntimeError as error:
        try:
            _C.has_key(store, "kind")
        except RuntimeError:
            raise RuntimeError(f"init_rpc: {_C.STORE_GONE}: {_first_line(error)}") from None
        raise


def _meet(store, rank, world_size, mine, limit):
    """Exchanges the records of all workers; returns them by rank. The last is the first that disagrees
    about the number of workers, after which others may never follow."""
    store.set(f"workers/{rank}", json.dumps(mine))
    until = time.monotonic() + limit
    records = []
    for i in range(world_size):
        left = max(until - time.monotonic(), 0.001)  # 0 would mean no limit
        try:
            store.wait([f"workers/{i}"], datetime.timedelta(seconds=left))
        except RuntimeError as error:
            missing = ", ".join(str(k) for k in range(world_size)
                                if not _C.has_key(store, f"workers/{k}"))
            raise RuntimeError(f"init_rpc: no record after {limit:g} s of the workers with rank "
                               f"{missing}, of {world_size}: {_first_line(error)}") from None
        records.append(json.loads(store.get(f"workers/{i}")))
        if records[-1]["world_size"] != world_size:
            break
    return records


def _refuse(store, rank, world_size, limit):
    """Notes in the store that this worker has read the records and refuses them. The store may end with
    rank 0, which therefore waits until the others have read them."""
    with contextlib.suppress(RuntimeError):  # the error is that of the records
        store.set(f"refused/{rank}", "")
        if rank == 0:
            store.wait([f"refused/{i}" for i in range(world_size)],
                       datetime.timedelta(seconds=min(limit, REFUSAL_PATIENCE)))


def _check(records, world_size):
    ranks, modes = {}, [r.get("security", "none") for r in records]
    for rank, record in enumerate(records):
        name = record["name"]
        if modes[rank] != modes[0]:
            raise RuntimeError(f"init_rpc: worker '{name}' is in security mode '{modes[rank]}', worker "
                               f"'{records[0]['name']}' in mode '{modes[0]}': give all workers the same "
                               "`security: mode`, and the secret of the group")
        if record["world_size"] != world_size:
            raise RuntimeError(f"init_rpc: worker '{name}' says that the group has "
                               f"{record['world_size']} workers, this one says {world_size}")
        if name in ranks:
            raise RuntimeError(f"RPC worker name {name} is not unique. Workers {ranks[name]} and "
                               f"{rank} share the same name.")
        ranks[name] = rank


def _init_backend(store, name, rank, world_size, rpc_backend_options):
    if not isinstance(store, dist.Store):
        raise TypeError(f"`store` must be a c10d::Store. {store}")
    options = convert(rpc_backend_options)
    if not world_size and rank < 0:
        raise ValueError("init_rpc: a group without a world_size needs a rank")
    if options.config.proves:
        _rendezvous.warn(options.init_method)
    limit = _rendezvous.init_limit(options)
    if not options.rpc_timeout:
        # torch gives the store the timeout of calls, where 0 means none; stores of newer versions
        # fail at once with 0.
        store.set_timeout(NO_TIMEOUT)
    kind = "static" if world_size else "dynamic"
    with _store_errors(store):
        others = store.compare_set("kind", "", kind).decode()
    if others != kind:
        raise RuntimeError("init_rpc: RPC group mixes statically and dynamically initialized members which is not "
                           "supported. Give all workers a world_size, or none")
    incarnation, token = secrets.randbits(63), 1 + secrets.randbelow(2**64 - 1)
    make = _C.TenrecAgent if world_size else DynamicAgent
    agent = make(name=name, id=rank, world_size=world_size or 0, incarnation=incarnation,
                 token=token, host_address=_rendezvous.host_address(options.init_method),
                 config=options.config, rpc_timeout=options.rpc_timeout,
                 num_worker_threads=options.num_worker_threads)
    maps, devices = device_names(options)
    record = {
        "id": rank, "name": name, "address": agent.address(), "incarnation": incarnation,
        "token": token, "world_size": world_size, "security": options.config.security_mode,
        "device_count": torch.cuda.device_count(), "device_maps": maps, "devices": devices}
    with _stopped_on_failure(agent):
        if world_size:
            _start(agent, store, options, record, limit)
        else:
            _devices.check(agent.enter(store, options, record), is_static=False)
    return agent


@contextlib.contextmanager
def _stopped_on_failure(agent):
    try:
        yield
    except BaseException:
        if api._is_current_rpc_agent_set():
            agent.shutdown()
            api._cleanup_python_rpc_handler()
            api._reset_current_rpc_agent()
        raise


def _start(agent, store, options, record, limit):
    rank, world_size = record["id"], record["world_size"]
    with _store_errors(store):
        records = _meet(store, rank, world_size, record, limit)
    try:
        _check(records, world_size)
        _devices.check(records)
    except Exception:
        _refuse(store, rank, world_size, limit)
        raise
    agent.meet(store, [(id, r["name"], r["address"], r["incarnation"], r.get("token", 0))
                       for id, r in enumerate(records)], options.device_maps)
    _devices.use(agent, record["name"], records)
    api._init_rpc_states(agent)
    # No worker calls or leaves before all have joined. Over the store, so that injected
    # faults hit only calls of the program.
    agent.barrier(limit)


def _stop_at_exit():
    """Stops the threads that run Python, for a program that ends without rpc.shutdown."""
    agent = _current.agent()
    if agent:
        agent.set_patience(EXIT_PATIENCE)
        agent.shutdown()


atexit.register(_stop_at_exit)
