# SPDX-License-Identifier: Apache-2.0
"""The worker of this process that its transports use, and its links to other processes.

The worker is alone in its group. However many transports two processes have, they share one link, which stays until
the other process is lost."""
import base64
import functools
import itertools
import json
import os
import secrets
import socket
import tempfile
import threading
import weakref

import tenrec_rpc as tenrec

from . import _C
from ._transport_memory import Registration

CONNECT = "tenrec_transport.connect"
RESOLVE = "tenrec_transport.resolve"
STAGE = "tenrec_transport.stage"
LAND = "tenrec_transport.land"

_hub = None
_lock = threading.Lock()


def hub():
    """Returns the hub of this process: a child of a fork makes one of its own."""
    global _hub
    with _lock:
        if _hub is None or _hub.pid != os.getpid():
            _hub = Hub()
        return _hub


class Hub:
    """What the transports of a process share."""

    def __init__(self):
        self.pid = os.getpid()
        self.process = secrets.token_hex(16)
        self.numbers = itertools.count(1)
        self.transports = weakref.WeakValueDictionary()  # by number
        self.worker = None
        self._lock = threading.Lock()  # guards the next
        self._links = {}  # by process
        self._host = None
        self._record = None  # of the worker, for links

    def add(self, transport):
        """Returns the number of a new transport."""
        number = next(self.numbers)
        self.transports[number] = transport
        return number

    def record(self, host):
        """Returns the record of the worker, which serves from now on. It has the secret, unless that is configured."""
        with self._lock:
            if self._record is None:
                self._host = host or _own_address()
                configured = _C.Config("", {}).proves
                self.worker = _start(self, None if configured else secrets.token_hex(32))
                self._record = self.worker.bind(secret=not configured)
            elif host not in (None, self._host):
                raise ValueError(f"host is '{host}', but the transports of this process are at '{self._host}'")
            return self._record

    @property
    def host(self):
        """The address of this host for peers."""
        return self._host

    def link(self, peer):
        """Returns the link to the process of a record."""
        with self._lock:
            for process in [process for process, link in self._links.items() if link.lost]:
                self._links.pop(process).drop()
            if peer.process not in self._links:
                self._links[peer.process] = Link(peer, None if peer.process == self.process else self._connect(peer))
            return self._links[peer.process]

    def _connect(self, peer):
        try:
            return self.worker.connect(peer.link)
        except tenrec.Error as error:
            if error.status != "EPROTOCOL":
                raise
            raise ValueError(str(error)) from error

    def lose(self, member, why):
        """The connection to another process broke."""
        for link in list(self._links.values()):
            if link.peer == member.name:
                link.lost = True
        for transport in list(self.transports.values()):
            transport.lose(member.name, why)

    def registration(self, endpoint, number, key):
        """Returns what a peer names; it may have ended, and then the peer gets the reason."""
        transport = self.transports.get(endpoint)
        found = transport.exposed(number) if transport else None
        if found is None or not secrets.compare_digest(found.key, key):
            raise tenrec.Error("the memory has been unregistered, or its transport was closed", status="ESTALE")
        return found


class Link:
    """The way to a process; `made` is None for this one."""

    def __init__(self, peer, made):
        self.peer = _name(peer.process)
        self.lost = False
        self._made = made

    def drop(self):
        """Ends it."""
        if self._made is not None:
            self._made.drop()


class Record:
    """What bind() returns, and connect() reads: at most 1 KiB of JSON."""

    KEYS = {"version": int, "process": str, "endpoint": int, "link": str}

    def __init__(self, process, endpoint, link):
        self.process, self.endpoint, self.link = process, endpoint, link

    def to_bytes(self):
        """Returns the bytes for the peer."""
        link = base64.b64encode(self.link).decode()
        data = json.dumps({"version": 2, "process": self.process, "endpoint": self.endpoint, "link": link}).encode()
        if len(data) > 1024:
            raise ValueError(f"the record takes {len(data)} bytes, at most 1024: shorten the addresses of the configured backend")
        return data

    @classmethod
    def of_bytes(cls, data):
        """Reads the bytes of a peer."""
        try:
            fields = json.loads(data) if len(data) <= 1024 else None
            link = base64.b64decode(fields["link"], validate=True)
        except (ValueError, TypeError, KeyError):
            fields = None
        if type(fields) is not dict or {key: type(value) for key, value in fields.items()} != cls.KEYS or fields["version"] != 2:
            raise ValueError(f"{len(data)} bytes are no record of a transport 'tenrec': pass what bind() of the peer returned")
        return cls(fields["process"], fields["endpoint"], link)


def _name(process):
    return f"transport-{process}"


def _own_address():
    """Returns the address of this host that other hosts reach; loopback where it has none."""
    for family, target in (socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"):
        try:
            # Connecting a datagram socket sends no packet.
            with socket.socket(family, socket.SOCK_DGRAM) as s:
                s.connect((target, 9))
                return s.getsockname()[0]
        except OSError:
            continue
    return "127.0.0.1"


def _start(hub_, secret):
    """Returns the worker, with a secret of its own unless it is None."""
    name = _name(hub_.process)
    values = {
        "init_method": f"memory://{name}?rank=0&world_size=1&host={hub_.host}", "worker.group": name, "worker.rank": 0, "worker.world_size": 1,
        "worker.num_worker_threads": 2,
    }
    with tempfile.NamedTemporaryFile("w") as file:  # of mode 0600; no worker reads it twice
        if secret:
            file.write(secret)
            file.flush()
            values |= {"security.mode": "secret", "security.secret_file": file.name}
        worker = tenrec.Worker(name, overrides=values)
        for function, serve in (CONNECT, _connect), (RESOLVE, _resolve), (STAGE, _stage), (LAND, _land):
            worker.register(function, functools.partial(serve, hub_, weakref.ref(worker)))
        worker.on_peer_lost(hub_.lose)
        worker.init_rpc()
    return worker


# ---- called by the peer


def _connect(hub_, _worker, endpoint, process, number):
    """A transport has connected: returns true if the one of this process has, too."""
    transport = hub_.transports.get(endpoint)
    if transport is None:
        raise tenrec.Error("the transport of the peer was closed", status="ESTALE")
    return transport.meet(process, number)


def _resolve(hub_, worker, endpoint, number, key):
    return bytes(hub_.registration(endpoint, number, key).region(worker()).ref)


def _stage(hub_, _worker, endpoint, number, key, length):
    hub_.registration(endpoint, number, key).serve(Registration.to_host, length)


def _land(hub_, _worker, endpoint, number, key, length):
    hub_.registration(endpoint, number, key).serve(Registration.to_device, length)
