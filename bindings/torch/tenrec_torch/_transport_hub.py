# SPDX-License-Identifier: Apache-2.0
"""The workers of this process that its transports use.

One worker, alone in its group, serves the store in which the others meet. For each process that a transport
connects to there is a group of two, in the store of the one with the lower number: however many transports two
processes have, they share it. It stays until the other process is lost."""
import concurrent.futures
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

RESOLVE = "tenrec_transport.resolve"
STAGE = "tenrec_transport.stage"
LAND = "tenrec_transport.land"
TRIES = 16  # ports that another process may take first

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
        self._lock = threading.Lock()  # guards the next
        self._links = {}  # by process
        self._home = None
        self._place = None  # host, port and secret of the store

    def add(self, transport):
        """Returns the number of a new transport."""
        number = next(self.numbers)
        self.transports[number] = transport
        return number

    def place(self, host):
        """Returns host, port and secret ("": the configured one) of the store, which is served from now on."""
        with self._lock:
            if self._place is None:
                secret = "" if _C.Config("", {}).proves else secrets.token_hex(32)
                self._home, place = _serve(host or _own_address(), secret, self)
                self._place = place
            elif host not in (None, self._place[0]):
                raise ValueError(f"host is '{host}', but the transports of this process are at '{self._place[0]}'")
            return self._place

    def link(self, peer):
        """Returns the link to the process of a record."""
        place = self.place(None)
        with self._lock:
            link = self._links.get(peer.process)
            if link is None or link.lost:
                if peer.process == self.process:
                    link = Link(self, peer, worker=self._home)
                else:
                    link = Link(self, peer, place=place if self.process < peer.process else peer.place)
                self._links[peer.process] = link
            return link

    def registration(self, endpoint, number, key):
        """Returns what a peer names; it may have ended, and then the peer gets the reason."""
        transport = self.transports.get(endpoint)
        found = transport.exposed(number) if transport else None
        if found is None or not secrets.compare_digest(found.key, key):
            raise tenrec.Error("the memory has been unregistered, or its transport was closed", status="ESTALE")
        return found


class Link:
    """The group of this process and another, which is joined in the background: a transfer waits for it."""

    def __init__(self, hub_, peer, *, place=None, worker=None):
        self.peer = _name(peer.process)
        self.lost = False
        self.ready = concurrent.futures.Future()  # of the worker
        self._hub = hub_
        if worker:
            self.ready.set_result(worker)
            return
        self.ready.set_running_or_notify_cancel()
        ends = sorted((hub_.process, peer.process))
        group = f"transport-{ends[0]}-{ends[1]}"
        rank = ends.index(hub_.process)
        threading.Thread(target=self._join, args=(place, group, rank), daemon=True).start()

    def _join(self, place, group, rank):
        try:
            worker = _start(place, group, rank, 2, self._hub, self._lose)
        except BaseException as error:  # pylint: disable=broad-except
            self.lost = True
            self.ready.set_exception(error)
        else:
            self.ready.set_result(worker)

    def _lose(self, *_):
        self.lost = True


class Record:
    """What bind() returns, and connect() reads: at most 1 KiB of JSON."""

    KEYS = {"version": int, "process": str, "endpoint": int, "host": str, "port": int, "secret": str}

    def __init__(self, process, endpoint, place):
        self.process, self.endpoint, self.place = process, endpoint, place

    def to_bytes(self):
        """Returns the bytes for the peer."""
        host, port, secret = self.place
        return json.dumps({"version": 1, "process": self.process, "endpoint": self.endpoint, "host": host, "port": port, "secret": secret}).encode()

    @classmethod
    def of_bytes(cls, data):
        """Reads the bytes of a peer."""
        try:
            fields = json.loads(data) if len(data) <= 1024 else None
        except ValueError:
            fields = None
        if type(fields) is not dict or {key: type(value) for key, value in fields.items()} != cls.KEYS or fields["version"] != 1:
            raise ValueError(f"{len(data)} bytes are no record of a transport 'tenrec': pass what bind() of the peer returned")
        return cls(fields["process"], fields["endpoint"], (fields["host"], fields["port"], fields["secret"]))


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


def _serve(host, secret, hub_):
    """Starts the worker that serves the store, at a free port. Returns it, and the place."""
    for left in range(TRIES, 0, -1):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as s:
            s.bind((host, 0))
            place = host, s.getsockname()[1], secret
        try:
            return _start(place, f"transport-{hub_.process}", 0, 1, hub_, None), place
        except tenrec.Error as error:
            if left == 1 or "in use" not in str(error):
                raise
    raise AssertionError


def _start(place, group, rank, size, hub_, lost):
    """Returns a worker that has joined its group."""
    host, port, secret = place
    values = {
        "init_method": f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}",
        "worker.group": group, "worker.rank": rank, "worker.world_size": size, "worker.num_worker_threads": 2,
    }
    with tempfile.NamedTemporaryFile("w") as file:  # of mode 0600; no worker reads it twice
        if secret:
            file.write(secret)
            file.flush()
            values |= {"security.mode": "secret", "security.secret_file": file.name}
        worker = tenrec.Worker(_name(hub_.process), overrides=values)
        for name, function in (RESOLVE, _resolve), (STAGE, _stage), (LAND, _land):
            worker.register(name, functools.partial(function, hub_, weakref.ref(worker)))
        if lost:
            worker.on_peer_lost(lost)
        worker.init_rpc()
    return worker


# ---- called by the peer


def _resolve(hub_, worker, endpoint, number, key):
    return bytes(hub_.registration(endpoint, number, key).region(worker()).ref)


def _stage(hub_, _worker, endpoint, number, key, length):
    hub_.registration(endpoint, number, key).to_host(0, length)


def _land(hub_, _worker, endpoint, number, key, length):
    hub_.registration(endpoint, number, key).to_device(0, length)
