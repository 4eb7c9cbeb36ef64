# SPDX-License-Identifier: Apache-2.0
"""worker_test.py - tenrec_torch.worker: calls between Python, C and torch by name."""
import os
import subprocess
import sys
import threading
from unittest import mock

import tenrec_rpc as tenrec
import torch
from torch.testing._internal.distributed.rpc.rpc_agent_test_fixture import RpcAgentTestFixture

from tenrec_torch import worker

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
LIMIT_S = 90

PROGRAM = """
import sys, tenrec_torch.worker as worker
worker.register("f", lambda: None)
worker.init_rpc("one", overrides={"init_method": "file://" + sys.argv[1]})
print("here", flush=True)
"""


def refuse():
    raise ValueError("no luck")


class TenrecWorkerTest(RpcAgentTestFixture):
    @property
    def world_size(self):
        return 2

    def start(self, **functions):
        os.environ.update(RANK=str(self.rank), WORLD_SIZE="2")
        for name, function in functions.items():
            worker.register(name, function)
        worker.init_rpc(f"w{self.rank}", overrides={"init_method": "file://" + self.file_name})
        return f"w{1 - self.rank}"

    def test_values_come_back_as_they_went(self):
        other = self.start(echo=lambda x: x)
        for x in [None, True, -(1 << 62), 2.5, "", "ä\0b", b"\0\xff", [], [1, [2, None]], {}, {"a": {"b": [1.0]}}]:
            self.assertEqual(worker.call(other, "echo", x), x)
        self.assertEqual(worker.call(other, "echo", (1, 2)), [1, 2])
        worker.shutdown()

    def test_tensors_come_back_as_they_went(self):
        other = self.start(echo=lambda x: x)
        base = torch.arange(24.0).reshape(2, 3, 4)
        for x in [base, torch.ones(3, requires_grad=True), base[1], base.transpose(0, 2), torch.tensor(3), torch.empty(0, 4),
                  torch.ones(2, dtype=torch.bfloat16), torch.arange(1 << 21)]:
            y = worker.call(other, "echo", x)
            self.assertIsInstance(y, torch.Tensor)
            self.assertEqual(y.dtype, x.dtype)
            self.assertEqual(y, x)
            y.add_(1)  # received tensors are writable
        worker.shutdown()

    def test_tensors_that_are_conjugated_or_negated_when_read(self):
        other = self.start(echo=lambda x: x)
        z = torch.tensor([1 + 2j, 3 - 4j])
        self.assertEqual(worker.call(other, "echo", z.conj()), torch.tensor([1 - 2j, 3 + 4j]))
        self.assertEqual(worker.call(other, "echo", z.conj().imag), torch.tensor([-2.0, 4.0]))
        worker.shutdown()

    def test_value_that_cannot_be_sent_is_named(self):
        other = self.start(echo=lambda x: x, odd=lambda: {1: 2})
        with self.assertRaisesRegex(TypeError, r"\{1\} cannot be sent"):
            worker.call(other, "echo", {1})
        with self.assertRaisesRegex(RuntimeError, "a key of a dict is 1"):
            worker.call(other, "odd")
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(ValueError, "nested"):
            worker.call(other, "echo", endless)
        worker.shutdown()

    def test_errors_have_their_class(self):
        other = self.start(refuse=refuse, wait=lambda: threading.Event().wait(2))
        with self.assertRaisesRegex(RuntimeError, "ValueError: no luck"):
            worker.call(other, "refuse")
        with self.assertRaisesRegex(LookupError, "'nothing'"):
            worker.call(other, "nothing")
        with self.assertRaisesRegex(LookupError, "nobody"):
            worker.call("nobody", "refuse")
        with self.assertRaisesRegex(TimeoutError, "0.05|50 ms|timed out"):
            worker.call(other, "wait", timeout=0.05)
        worker.shutdown()

    def test_calls_without_waiting(self):
        other = self.start(double=lambda x: 2 * x)
        futures = [worker.call_async(other, "double", i) for i in range(100)]
        self.assertEqual([f.wait(LIMIT_S) for f in futures], [2 * i for i in range(100)])
        self.assertTrue(all(f.done() for f in futures))
        worker.shutdown()

    def test_functions_may_call_back(self):
        def ping(n):
            return n if n == 0 else worker.call(f"w{1 - self.rank}", "ping", n - 1)
        other = self.start(ping=ping)
        self.assertEqual(worker.call(other, "ping", 5), 0)
        worker.shutdown()

    def test_functions_may_call_back_while_their_worker_ends(self):
        leaves = threading.Event()

        def ask_back(n):
            leaves.wait(LIMIT_S)
            return worker.call(f"w{1 - self.rank}", "echo", n)
        other = self.start(ask_back=ask_back, echo=lambda x: x)
        if self.rank == 0:
            self.assertEqual(worker.call(other, "ask_back", 7, timeout=LIMIT_S), 7)
            worker.shutdown()
            return
        ends = tenrec.Worker.shutdown

        def shutdown(self, *how):
            leaves.set()
            ends(self, *how)
        with mock.patch.object(tenrec.Worker, "shutdown", shutdown):
            worker.shutdown()

    def run_alone(self, text):
        env = dict(os.environ, RANK="0", WORLD_SIZE="1")
        return subprocess.run([sys.executable, "-c", PROGRAM + text, self.file_name], env=env, text=True,
                              capture_output=True, timeout=LIMIT_S, check=False)

    def test_program_that_ends_without_shutdown_ends(self):
        if self.rank == 0:
            done = self.run_alone("")
            self.assertEqual((done.returncode, done.stdout), (0, "here\n"), done.stderr)

    def test_second_worker_of_the_process_has_its_own_calls(self):
        if self.rank == 0:
            done = self.run_alone("""
two = worker.Worker("two", overrides={"init_method": "file://" + sys.argv[1] + "2"})
two.register("name", lambda: "two")
two.init_rpc()
print([m.name for m in two.members()], two.call("two", "name"), worker.call("one", "f"))
two.shutdown()
""")
            self.assertEqual((done.returncode, done.stdout), (0, "here\n['two'] two None\n"), done.stderr)

    def test_hello_of_the_page_runs(self):
        if self.rank == 0:
            done = subprocess.run([os.path.join(os.environ["TENREC_TEST_BUILD"], "tools/tenrec"), "run", "-n", "3", "--", sys.executable,
                                   os.path.join(ROOT, "examples/python/hello_torch.py")], text=True, capture_output=True, timeout=LIMIT_S, check=False)
            self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, [f"[{i}] worker0 says 42" for i in range(3)]), done.stderr)

    def test_c_and_torch_programs_call_each_other(self):
        if self.rank == 0:
            done = subprocess.run([os.path.join(ROOT, "examples/mixed/run"), os.environ["TENREC_TEST_BUILD"]], text=True,
                                  env=dict(os.environ, PYTHON=sys.executable),
                                  capture_output=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("smoothed [1.5, 1.0, 2.0, 1.0, 2.0, 1.5]", done.stdout)
            self.assertIn("the norm is 68.381", done.stdout)
            self.assertIn("float32 of [2,2], expected float32 of [*]", done.stdout)
