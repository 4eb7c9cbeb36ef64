# SPDX-License-Identifier: Apache-2.0
"""Groups that workers join and leave, on TENREC.

Next to its agent each worker runs a Tenrec worker of a dynamic group (docs/groups.md), in the same store: it has
the lock of the group, the list of members and their heartbeats, and carries the records of the agents.
"""
import json
import logging
import math
import os
import threading
import time

import tenrec_rpc as tenrec
from torch.distributed.rpc import api

from . import _C, _devices, _rendezvous

GROUP = "torch-rpc"
POLL = 0.005   # seconds between two polls of calls that end, and of a member that may have died

_log = logging.getLogger("tenrec_torch")


class DynamicAgent(_C.TenrecAgent):
    """An agent whose members change. torch calls join and shutdown of the current agent."""

    def enter(self, store, options, record):
        """Joins the group. Returns the records of the members, the own one first."""
        self._store = store  # rank 0 serves it
        self._record = record
        self._process = os.getpid()
        self._lock = threading.Lock()  # guards the next
        self._known = {}               # records of the other members, by id
        self._leaving = False
        self._watcher = None
        self._limit = _rendezvous.init_limit(options)
        config, values = options.given
        self._worker = tenrec.Worker(record["name"], config=config, overrides=dict(
            values, **{"worker.rank": record["id"], "worker.group": GROUP,
                       "worker.init_timeout": f"{int(self._limit * 1000)}ms",
                       "security.plain_peers": "none",
                       "init_method": _rendezvous.members_url(options.init_method)}))
        self._worker.register("join", self._on_join)
        self._worker.register("leave", self._on_leave)
        self.meet(store, [_of_agent(record)], options.device_maps)
        _devices.use(self, record["name"], [record])
        api._init_rpc_states(self)
        try:
            self._worker.init_rpc()
        except tenrec.Error as error:
            raise RuntimeError(str(error)) from error  # as other errors of torch's init_rpc
        for name in [member.name for member in self._worker.members()]:
            if name != record["name"]:
                self._greet(name)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        with self._lock:
            return [record, *self._known.values()]

    def _greet(self, name):
        """Exchanges records with a member, unless it is removed as dead meanwhile."""
        until = time.monotonic() + self._limit
        while name in [member.name for member in self._worker.members()]:
            try:
                answer = self._worker.call(name, "join", json.dumps(self._record), timeout=self._limit)
                self._add(json.loads(answer))
                return
            except tenrec.Error:  # the member died, was late, or left
                if time.monotonic() > until:
                    raise
            time.sleep(POLL)

    def _on_join(self, text):
        self._add(json.loads(text))
        return json.dumps(self._record)

    def _add(self, record):
        with self._lock:
            known = self._known.get(record["id"])
            if known == record:
                return
            if known:
                self.remove_member(record["id"], f"'{known['name']}' is no member of the group any more")
            self._known[record["id"]] = record
            try:
                _devices.use(self, self._record["name"], [self._record, *self._known.values()])
            except RuntimeError as error:
                _log.warning("TENREC: tensors on devices cannot be exchanged with '%s': %s", record["name"], error)
            self.add_member(_of_agent(record))

    def _on_leave(self, rank):
        """No call to the member begins any more; returns when those that began have ended."""
        self.forget_member(rank)
        while self.open_calls_to(rank):
            time.sleep(POLL)

    def _watch(self):
        """Removes members that left or died."""
        try:
            while True:
                with self._lock:
                    # No older view than that of a member which has joined meanwhile.
                    view = self._worker.view()
                    members = {member.id: member.name for member in view.members}
                    for rank in [r for r, known in self._known.items() if members.get(r) != known["name"]]:
                        self._remove(rank, f"'{self._known[rank]['name']}' is no member of the group any more")
                self._worker.wait_version(view.version + 1, timeout=math.inf)
        except tenrec.Error as error:
            if self._leaving:
                return
            _log.error("TENREC: %s", error)
            with self._lock:
                for rank in list(self._known):
                    self._remove(rank, str(error))

    def _remove(self, rank, why):
        del self._known[rank]
        self.remove_member(rank, why)

    def join(self, shutdown=False, timeout=0):
        super().join(shutdown=False, timeout=timeout)
        if not shutdown:
            return
        self._leaving = True
        limit = timeout or self._limit
        with self._lock:
            names = [known["name"] for known in self._known.values()]
        for name in names:
            try:
                self._worker.call(name, "leave", self._record["id"], timeout=limit)
            except tenrec.NotFoundError:
                pass  # the member has left meanwhile
            except tenrec.Error as error:
                _log.warning("TENREC: '%s' leaves without waiting for '%s': %s", self._record["name"], name, error)
        try:
            self._worker.shutdown(graceful=True, timeout=limit)
        except tenrec.Error as error:  # the worker that served the store has left
            _log.warning("TENREC: '%s' leaves, and stays in the list of members: %s", self._record["name"], error)

    def shutdown(self):
        if os.getpid() == self._process and self._worker:
            self._leaving = True
            if self._worker.running:
                self._worker.shutdown(graceful=False)
            if self._watcher:
                self._watcher.join()
            self._worker = None  # it has references to this agent
        super().shutdown()


def _of_agent(record):
    return tuple(record[key] for key in ("id", "name", "address", "incarnation", "token"))
