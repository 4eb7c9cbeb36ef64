# SPDX-License-Identifier: Apache-2.0
"""The store of a group that has a secret.

init_rpc opens the store before it asks the backend, by the scheme of the options' init_method. With a
secret that is one of SCHEMES: Tenrec's own client proves the secret to the store of `tenrec run`, and
torch's client, which proves nothing, opens every other store.
"""
import ipaddress
import itertools
import logging
import os
import socket
import urllib.parse
import weakref

import torch.distributed as dist
# torch.distributed.rendezvous is a function, and hides the module.
from torch.distributed.rendezvous import _rendezvous_handlers, _torchelastic_use_agent_store

from . import _C

PREFIX = "tenrec+"
SCHEMES = ("env", "tcp")
USE_LIBUV = "USE_LIBUV"  # torch's variable
LACKS_LIBUV = "use_libuv was requested but PyTorch was buil"  # "build" or "built", by version
INIT_TIMEOUT = 300.0  # seconds, unless the configuration sets a timeout

_log = logging.getLogger("tenrec_torch")
_numbers = itertools.count(1)
_options = weakref.WeakValueDictionary()  # by the number in the fragment of their method
_warned = False


def register():
    """Makes torch know the schemes, unless it does."""
    for scheme in SCHEMES:
        if PREFIX + scheme not in _rendezvous_handlers:
            dist.register_rendezvous_handler(PREFIX + scheme, _open)


def method_of(options, method):
    """Returns the init_method under which torch finds the store of the group of `options`. `method` may
    be that of other options."""
    plain = _plain(method)
    if urllib.parse.urlparse(plain).scheme not in SCHEMES:
        return method
    if not options.config.proves:
        return plain
    number = str(next(_numbers))
    _options[number] = options
    return f"{PREFIX}{plain}#{number}"


def _plain(method):
    """The method as torch knows it."""
    return method.removeprefix(PREFIX).partition("#")[0]


def init_limit(options):
    """Seconds for the init of a group."""
    return options.rpc_timeout or options.config.init_timeout or INIT_TIMEOUT


def host_address(method):
    """Returns the address of this host towards the store that `method` names; "" if the store is on
    loopback."""
    url = urllib.parse.urlparse(_plain(method))
    host = _address(url)[0]
    if not host or url.scheme not in SCHEMES:
        return ""
    try:
        # Connecting a datagram socket sends no packet.
        family, kind, _, _, address = socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as s:
            s.connect(address)
            mine = s.getsockname()[0].split("%")[0]
    except OSError:
        return ""
    return "" if ipaddress.ip_address(mine).is_loopback else mine


def _address(url):
    """Host and port of the store, as torch finds them."""
    if url.scheme == "env":
        return os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    return url.hostname, url.port


def members_url(method):
    """Returns the store of `method` as libtenrec names it, for the members of a dynamic group."""
    if os.environ.get("WORLD_SIZE"):
        raise ValueError("init_rpc without a world_size, while WORLD_SIZE is set: pass the size for a group that does "
                         "not change, or unset the variable")
    url = urllib.parse.urlparse(_plain(method))
    if url.scheme == "file":
        return f"file://{url.path}.members"  # torch deletes its own file when it has no users
    if url.scheme not in SCHEMES:
        raise ValueError(f"init_method '{method}': a group without a world_size meets in a store of one of "
                         f"file://, {', '.join(scheme + '://' for scheme in SCHEMES)}")
    host, port = _address(url)
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def _is_of_tenrec_run():
    """Returns true if `tenrec run` started this process, and serves the store: it sets both ids."""
    run = os.environ.get("TENREC_RUN_ID")
    return (_torchelastic_use_agent_store() and bool(run)
            and run == os.environ.get("TORCHELASTIC_RUN_ID"))


def open_without_libuv(init, *args):
    """Runs init_rpc. torch asks for a TCPStore that uses libuv unless the caller chooses; in a torch that was
    built without it, as Debian's, this fails before anything has begun, and the other kind is opened."""
    try:
        return init(*args)
    except RuntimeError as error:
        if LACKS_LIBUV not in str(error) or USE_LIBUV in os.environ:
            raise
    os.environ[USE_LIBUV] = "0"
    try:
        return init(*args)
    finally:
        del os.environ[USE_LIBUV]


def _open(method, **kwargs):
    """The handler of the schemes: yields store, rank and world size."""
    plain = _plain(method)
    options = _options.get(urllib.parse.urlparse(method).fragment)
    if options is None:
        raise RuntimeError(f"init_method '{method}': the options that it was read from no longer exist: "
                           "assign it to the options that init_rpc gets")
    if not _is_of_tenrec_run():
        yield from dist.rendezvous(plain, **kwargs)
        return
    url = urllib.parse.urlparse(plain)
    query = dict(urllib.parse.parse_qsl(url.query))
    rank = int(query.get("rank") or os.environ["RANK"])
    world_size = int(query.get("world_size") or os.environ["WORLD_SIZE"])
    yield _proved_store(options, url), rank, world_size
    raise RuntimeError(f"the store of {plain} was opened once, and cannot be opened again")


def _proved_store(options, url):
    host, port = _address(url)
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    store = _C.open_store(options.config, f"tcp://{place}", init_limit(options))
    # As torch's client does: a group that is started again meets again.
    return dist.PrefixStore(f"/worker/attempt_{os.environ['TORCHELASTIC_RESTART_COUNT']}", store)


def warn(method):
    """Says once that other hosts may reach the store that `method` names, if it asks for no proof."""
    global _warned
    proved = method.startswith(PREFIX) and _is_of_tenrec_run()
    if _warned or proved or not host_address(method):
        return
    _warned = True
    host, port = _address(urllib.parse.urlparse(_plain(method)))
    _log.warning("TENREC: the workers meet in torch's TCPStore at %s:%s, which asks for no proof of the "
                 "group secret. Calls are proved; but a process that reaches the store reads the "
                 "records of the workers, and can hinder or end the group. Close the port to all "
                 "others, or start the workers by 'tenrec run', whose store asks for the proof",
                 host, port)
