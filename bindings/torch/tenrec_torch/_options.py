# SPDX-License-Identifier: Apache-2.0
"""The options of the backend TENREC."""
import json

import torch
import torch.distributed.rpc as rpc
from torch.distributed.rpc import constants, options as torch_options

from . import _C, _rendezvous


class DeviceOptions(rpc.RpcBackendOptions):
    """Options with threads, device maps and devices, as those of torch's agent have them."""

    def __init__(self, rpc_timeout, init_method, num_worker_threads, device_maps, devices):
        super().__init__(rpc_timeout=rpc_timeout)
        self.init_method = init_method
        if num_worker_threads <= 0:
            raise ValueError(f"num_worker_threads must be positive, got {num_worker_threads}")
        self.num_worker_threads = num_worker_threads
        self.device_maps = {}
        self.devices = torch_options._to_device_list(devices or [])
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)

    def set_device_map(self, to, device_map):
        """Adds to the device map for worker `to`: {own device: device of `to`}."""
        mine = self.device_maps.setdefault(to, {})
        for source, target in torch_options._to_device_map(device_map).items():
            if target in (t for s, t in mine.items() if s != source):
                raise ValueError(f"`set_device_map` only supports 1-to-1 mapping, {target} is "
                                 "the target of two devices")
            mine[source] = target

    def set_devices(self, devices):
        """Sets the devices that this worker uses; None: those in the maps."""
        self.devices = torch_options._to_device_list(devices)


class TenrecRpcBackendOptions(DeviceOptions):
    """Options of the backend TENREC.

    config   the backends and their options: the path of a YAML file, YAML text (a str with a
             line break), or a dict of the same shape. None: the file that TENREC_CONFIG names,
             else the built-in config
    backend  the entry of `backends:` to use. None: that of `backend:`
    overrides  single values that override the file: {"backends.faulty.options.seed": 7}
    rpc_timeout  seconds, 0 for none. None: `worker: rpc_timeout`
    num_worker_threads  threads that serve calls. None: `worker: num_worker_threads`
    init_method  store of the group. None: `init_method`. Reads "tenrec+env://..." if there is a
                 group secret
    device_maps, devices  as those of TensorPipeRpcBackendOptions

    Raises ValueError with the place in the file, and the remedy.
    """

    def __init__(self, *, config=None, backend=None, overrides=None, rpc_timeout=None,
                 num_worker_threads=None, init_method=None, device_maps=None, devices=None):
        values = {key: _yaml(value) for key, value in (overrides or {}).items()}
        if backend is not None:
            values["backend"] = backend
        if isinstance(config, dict):
            config = json.dumps(config) + "\n"
        self.config = _C.Config(str(config or ""), values)
        self.given = str(config) if config else None, values  # for the worker of a dynamic group
        super().__init__(
            self.config.rpc_timeout if rpc_timeout is None else rpc_timeout,
            init_method or self.config.init_method,
            self.config.num_worker_threads if num_worker_threads is None else num_worker_threads,
            device_maps, devices)

    @property
    def init_method(self):
        return super().init_method

    @init_method.setter
    def init_method(self, method):
        if isinstance(method, str):  # torch has the error for others
            method = _rendezvous.method_of(self, method)
        rpc.RpcBackendOptions.init_method.fset(self, method)


def construct(rpc_timeout, init_method, num_worker_threads=None, **others):
    """Returns options from arguments of torch, whose defaults yield to the configuration."""
    if rpc_timeout == constants.DEFAULT_RPC_TIMEOUT_SEC:
        rpc_timeout = None
    if init_method == constants.DEFAULT_INIT_METHOD:
        init_method = None
    return TenrecRpcBackendOptions(rpc_timeout=rpc_timeout, init_method=init_method,
                                   num_worker_threads=num_worker_threads, **others)


def takes(options):
    """Returns true for options with which TENREC can start: its own, and those of torch's agent. Other
    subclasses, such as those of torch's faulty agent, say what TENREC would not do."""
    return (type(options) is rpc.RpcBackendOptions
            or isinstance(options, (TenrecRpcBackendOptions, rpc.TensorPipeRpcBackendOptions)))


def convert(options):
    """Returns options of torch's agent as options of TENREC, and those of TENREC as they are."""
    if isinstance(options, TenrecRpcBackendOptions):
        return options
    if not takes(options):
        raise TypeError("`rpc_backend_options` must be a `TenrecRpcBackendOptions`, a "
                        f"`TensorPipeRpcBackendOptions` or a plain `RpcBackendOptions`. {options}")
    if type(options) is rpc.RpcBackendOptions:
        return construct(options.rpc_timeout, options.init_method)
    threads = options.num_worker_threads
    transports, channels = getattr(options, "ways", None) or _C.ways_of(options)
    ways = {"transports": transports, "channels": channels}
    overrides = {f"backends.tensorpipe.options.{key}": f"[{', '.join(names)}]"
                 for key, names in ways.items() if names is not None}
    try:
        return construct(
            options.rpc_timeout, options.init_method,
            num_worker_threads=None if threads == constants.DEFAULT_NUM_WORKER_THREADS else threads,
            overrides=overrides, device_maps=options.device_maps, devices=options.devices)
    except ValueError as error:
        if not overrides:
            raise
        raise ValueError("the options' _transports and _channels are those of the configuration's backend "
                         f"'tensorpipe': {error}") from error


def _yaml(value):
    return value if isinstance(value, str) else json.dumps(value)


def device_names(options):
    """Returns maps and devices as text, for JSON."""
    maps = {to: {str(a): str(b) for a, b in m.items()} for to, m in options.device_maps.items()}
    return maps, [str(d) for d in options.devices]


def devices_of_names(maps, devices):
    maps = {to: {torch.device(a): torch.device(b) for a, b in m.items()}
            for to, m in maps.items()}
    return maps, [torch.device(d) for d in devices]
