# SPDX-License-Identifier: Apache-2.0
"""dynamic_test.py - groups that workers join and leave, while calls run."""
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed.rpc as rpc
from torch.testing._internal.dist_utils import worker_name
from torch.testing._internal.distributed.rpc.rpc_agent_test_fixture import RpcAgentTestFixture

import tenrec_torch

LIMIT_S = 60

# A worker in its own interpreter, and a fork of it that ends as programs do; argv: the store.
FORKS = """
import os, sys
import torch.distributed.rpc as rpc, tenrec_torch
rpc.init_rpc("w0", backend=rpc.BackendType.TENREC, rank=0,
             rpc_backend_options=tenrec_torch.TenrecRpcBackendOptions(init_method="file://" + sys.argv[1]))
child = os.fork()
if child == 0:
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
assert rpc.rpc_sync("w0", len, args=("four",)) == 4
print("called", flush=True)
"""


def add(x, y):
    return x + y


def ask(to, x):
    return rpc.rpc_sync(to, add, args=(x, 1))


def printed_by(call):
    """Returns what `call` writes to the standard error, libtorch included."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            call()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read()


class TenrecDynamicTest(RpcAgentTestFixture):
    @property
    def world_size(self):
        return 3

    def join(self, url=None, **kwargs):
        rpc.init_rpc(worker_name(self.rank), backend=rpc.BackendType.TENREC, rank=self.rank,
                     rpc_backend_options=tenrec_torch.TenrecRpcBackendOptions(
                         config=self.options["config"], init_method=url or self.init_method,
                         overrides={"worker.heartbeat": "100ms"}, **kwargs))

    def say(self, event):
        """Makes an event known to the ranks that hear of it."""
        with open(f"{self.file_name}.{event}", "w", encoding="utf-8"):
            pass

    def hear(self, *events):
        self.wait_until(lambda: all(os.path.exists(f"{self.file_name}.{event}") for event in events))

    def wait_until(self, condition):
        until = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def names(self):
        return sorted(info.name for info in rpc.api._get_current_rpc_agent().get_worker_infos())

    def call_all(self):
        """Calls each member, the own worker included, and from there each other one."""
        for to in self.names():
            self.assertEqual(rpc.rpc_sync(to, add, args=(torch.ones(2), 1)).tolist(), [2, 2])
            for other in self.names():
                self.assertEqual(rpc.rpc_sync(to, ask, args=(other, 3)), 4)

    def run_in_turn(self, url):
        if self.rank == 0:
            self.join(url)
            self.say("first")
        self.hear("first")
        if self.rank != 0:
            self.join(url)
            self.assertIn(worker_name(0), self.names())
        self.say(f"in.{self.rank}")
        self.hear("in.0", "in.1", "in.2")
        self.assertEqual(self.names(), [worker_name(i) for i in range(3)])
        self.call_all()
        self.say(f"called.{self.rank}")
        self.hear("called.0", "called.1", "called.2")

    def test_workers_that_join_call_and_are_called(self):
        self.run_in_turn(None)
        rpc.shutdown()

    def torchs_store_proves_enough(self):
        """Returns false in a group with a secret, where joining through torch's store fails."""
        if self.rpc_backend_options.config.proves and self.rank == 0:
            with self.assertRaisesRegex(RuntimeError, "speaks no (proof of the group secret|TLS).*torch's TCPStore"):
                self.join(self.tcp_store())
        return not self.rpc_backend_options.config.proves

    def test_workers_meet_in_a_tcp_store(self):
        if not self.torchs_store_proves_enough():
            return
        self.run_in_turn(self.tcp_store())
        if self.rank != 0:  # which serves the store
            rpc.shutdown()
            self.say(f"out.{self.rank}")
        self.hear("out.1", "out.2")
        if self.rank == 0:
            rpc.shutdown()

    def test_workers_go_on_and_leave_without_the_store(self):
        if not self.torchs_store_proves_enough():
            return
        self.run_in_turn(self.tcp_store())
        if self.rank == 0:
            rpc.shutdown()
            self.say("gone")
            return
        self.hear("gone")
        self.wait_until(lambda: worker_name(0) not in self.names())
        self.assertEqual(ask(worker_name(3 - self.rank), 1), 2)
        self.say(f"over.{self.rank}")
        self.hear("over.1", "over.2")
        begin = time.monotonic()
        rpc.shutdown()
        self.assertLess(time.monotonic() - begin, LIMIT_S)

    def test_calls_run_while_a_worker_leaves_and_joins_again(self):
        self.run_in_turn(None)
        if self.rank == 2:
            rpc.shutdown()
            self.say("left")
            self.hear("missed.0", "missed.1")
            self.join()
            self.call_all()
            self.say("again")
        else:
            other = worker_name(1 - self.rank)
            self.wait_until(lambda: ask(other, 1) == 2 and os.path.exists(f"{self.file_name}.left"))
            self.assertEqual(self.names(), [worker_name(0), worker_name(1)])
            with self.assertRaisesRegex(RuntimeError, f"could not find destination '{worker_name(2)}'"):
                ask(worker_name(2), 1)
            self.say(f"missed.{self.rank}")
            self.wait_until(lambda: ask(other, 1) == 2 and os.path.exists(f"{self.file_name}.again"))
            self.assertEqual(ask(worker_name(2), 1), 2)
        self.say(f"over.{self.rank}")
        self.hear("over.0", "over.1", "over.2")
        rpc.shutdown()

    def test_worker_that_leaves_gets_and_gives_all_answers(self):
        self.run_in_turn(None)
        if self.rank == 2:
            futures = [rpc.rpc_async(worker_name(i % 2), add, args=(i, 1)) for i in range(100)]
            self.hear("asked")
            rpc.shutdown()
            self.assertEqual([f.wait() for f in futures], list(range(1, 101)))
        elif self.rank == 0:
            futures = [rpc.rpc_async(worker_name(2), ask, args=(worker_name(1), i)) for i in range(100)]
            self.say("asked")
            self.assertEqual([f.wait() for f in futures], list(range(1, 101)))
        self.say(f"over.{self.rank}")
        self.hear("over.0", "over.1", "over.2")
        if self.rank != 2:
            rpc.shutdown()

    def test_references_of_a_killed_worker_are_dropped_quietly(self):
        if self.rank == 1:
            self.hear("first")
            self.join()
            self.say("second")
            self.hear("made")
            os._exit(0)
        elif self.rank == 0:
            self.join()
            self.say("first")
            self.hear("second")
            refs = [rpc.remote(worker_name(1), add, args=(i, 1)) for i in range(3)]
            self.assertEqual([ref.to_here() for ref in refs], [1, 2, 3])
            self.say("made")
            self.wait_until(lambda: self.names() == [worker_name(0)])
            self.assertEqual(printed_by(refs.clear), b"")
            rpc.shutdown()

    def test_killed_worker_is_removed_and_others_join(self):
        if self.rank != 1:
            if self.rank == 2:
                self.hear("first")
            self.join()
            self.say("first" if self.rank == 0 else "second")
        self.hear("second")
        if self.rank == 2:
            self.hear("asked")
            os._exit(0)
        elif self.rank == 0:
            asked = rpc.rpc_async(worker_name(2), time.sleep, args=(3600,), timeout=0)
            self.say("asked")
            self.assertRaisesRegex(RuntimeError, worker_name(2), asked.wait)
            self.wait_until(lambda: self.names() == [worker_name(0)])
            self.say("removed")
        self.hear("removed")
        if self.rank == 1:
            self.join()
            self.say("in")
        self.hear("in")
        self.call_all()
        self.say(f"over.{self.rank}")
        self.hear("over.0", "over.1")
        rpc.shutdown()

    def test_name_that_is_taken_is_refused(self):
        if self.rank == 0:
            self.join()
            self.say("first")
        elif self.rank == 1:
            self.hear("first")
            with self.assertRaisesRegex(RuntimeError, worker_name(0)):
                rpc.init_rpc(worker_name(0), backend=rpc.BackendType.TENREC, rank=1,
                             rpc_backend_options=tenrec_torch.TenrecRpcBackendOptions(
                                 init_method=self.init_method))
            self.assertFalse(rpc.api._is_current_rpc_agent_set())
            self.say("refused")
        if self.rank == 0:
            self.hear("refused")
            self.assertEqual(self.names(), [worker_name(0)])
            rpc.shutdown()

    def test_program_that_forks_and_one_that_ends_without_shutdown_end(self):
        if self.rank == 0:
            got = subprocess.run([sys.executable, "-c", FORKS, self.file_name], capture_output=True, text=True,
                                 check=False, timeout=LIMIT_S)
            self.assertEqual((got.returncode, got.stdout), (0, "called\n"), got.stderr)

    def test_static_and_dynamic_workers_do_not_mix(self):
        if self.rank == 0:
            self.join()
            self.say("first")
        elif self.rank == 1:
            self.hear("first")
            with self.assertRaisesRegex(RuntimeError, "mixes statically and dynamically initialized members"):
                rpc.init_rpc(worker_name(1), backend=rpc.BackendType.TENREC, rank=1, world_size=2,
                             rpc_backend_options=self.rpc_backend_options)
            self.say("refused")
        if self.rank == 0:
            self.hear("refused")
            rpc.shutdown()
