# SPDX-License-Identifier: Apache-2.0
"""program_test.py - tenrec_torch in interpreters of its own: torch as its builders cut it down, and programs
that know nothing of Tenrec."""
import os
import subprocess
import sys

from torch.testing._internal.distributed.rpc.rpc_agent_test_fixture import RpcAgentTestFixture

LIMIT_S = 60

# Calls cut() at the moment when torch imports torch.distributed.rpc, as part of its own import.
CUT = """
import sys
class Finder:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "torch.distributed.rpc":
            cut(sys.modules["torch._C"])
sys.meta_path.insert(0, Finder)
"""

WITHOUT_RPC = """
def cut(torch_C):
    del torch_C._rpc_init
import tenrec_torch
"""

# torch 2 asks for the options' base class before it imports names of the agent. torch 1 imports them in any case,
# and is cut down afterwards.
WITHOUT_TENSORPIPE = """
def cut(torch_C):
    real = torch_C._rpc_init
    def init():
        done = real()
        if version("torch") >= "2":
            take_away(torch_C._distributed_rpc)
        return done
    torch_C._rpc_init = init

def take_away(module):
    for name in "TensorPipeAgent", "_TensorPipeRpcBackendOptionsBase":
        module.__dict__.pop(name, None)

from importlib.metadata import version
import torch
import torch.distributed.rpc as rpc
if version("torch") < "2":
    class TensorPipeRpcBackendOptions:
        def __init__(self, *, num_worker_threads=16, rpc_timeout=60, init_method="env://", **others):
            super().__init__(num_worker_threads, rpc_timeout, init_method)
    rpc.TensorPipeRpcBackendOptions = rpc.options.TensorPipeRpcBackendOptions = TensorPipeRpcBackendOptions
    take_away(rpc)
    take_away(torch._C._distributed_rpc)
try:
    rpc.TensorPipeRpcBackendOptions()
except TypeError:
    print("torch has no options")

import tenrec_torch
url = "file://" + sys.argv[1]
given = dict(init_method=url, num_worker_threads=7, rpc_timeout=99)
for options in (tenrec_torch.TenrecRpcBackendOptions(**given), rpc.TensorPipeRpcBackendOptions(**given)):
    named = isinstance(options, tenrec_torch.TenrecRpcBackendOptions)
    rpc.init_rpc("w0", None if named else rpc.BackendType.TENREC, 0, 1, options)
    assert rpc.rpc_sync("w0", torch.add, args=(torch.ones(2), 1)).tolist() == [2, 2]
    info = rpc.api._get_current_rpc_agent().get_debug_info()
    assert info["agent.thread_pool_size"] == "7" and rpc.get_rpc_timeout() == 99
    rpc.shutdown()
try:
    rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(init_method=url))
except RuntimeError as error:
    print(error)
"""


class TenrecProgramTest(RpcAgentTestFixture):
    @property
    def world_size(self):
        return 1

    def run_python(self, *args, status=0, **env):
        got = subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False,
                             timeout=LIMIT_S, env=dict(os.environ, **env))
        self.assertEqual(got.returncode, status, got.stderr)
        return got

    def test_torch_without_rpc_is_refused_at_import(self):
        got = self.run_python("-c", CUT + WITHOUT_RPC, status=1)
        self.assertRegex(got.stderr, r"ImportError: tenrec_torch: torch \S+ was built without torch.distributed.rpc")

    def test_torch_without_its_own_agent_runs_on_ours(self):
        got = self.run_python("-c", CUT + WITHOUT_TENSORPIPE, self.file_name + ".store")
        self.assertRegex(got.stdout, "^torch has no options\n.*built without TensorPipe")
