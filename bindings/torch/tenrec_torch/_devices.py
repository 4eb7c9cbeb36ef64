# SPDX-License-Identifier: Apache-2.0
"""The devices that a worker uses, and the maps between them, from the records of all workers."""
from torch.distributed.rpc import backend_registry

from ._options import devices_of_names


def _read(records):
    """Returns the device maps and the devices of the workers, by name."""
    maps, devices = {}, {}
    for r in records:
        maps[r["name"]], devices[r["name"]] = devices_of_names(r["device_maps"], r["devices"])
    return maps, devices


def check(records, is_static=True):
    """Checks the device maps of all workers as torch does."""
    maps, devices = _read(records)
    if any(maps.values()) or any(devices.values()):
        backend_registry._validate_device_maps(
            list(maps), {r["name"]: r["device_count"] for r in records}, maps, devices, is_static)


def use(agent, name, records):
    """Lets the agent of worker `name` use its devices: those that it lists, else those in its maps and in the
    maps of others to it. The latter, in reverse, are for its results."""
    maps, devices = _read(records)
    reverse = backend_registry._create_reverse_mapping(name, list(maps), maps)
    ids = {r["name"]: r["id"] for r in records}
    agent.use_devices(backend_registry._create_device_list(devices[name], maps[name], reverse),
                      {ids[caller]: map_ for caller, map_ in reverse.items()})
