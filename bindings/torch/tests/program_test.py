# SPDX-License-Identifier: Apache-2.0
"""program_test.py - tenrec_torch in interpreters of its own: torch as its builders cut it down, and programs
that never import Tenrec."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

from torch.testing._internal.distributed.rpc.rpc_agent_test_fixture import RpcAgentTestFixture

from fixtures import needs_tensorpipe

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tests/tools"))
from ports import free_port  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 100

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

# A torch that can be built without TensorPipe asks whether it was before it imports the names of its agent. An
# older one imports them in any case, and is cut down afterwards.
WITHOUT_TENSORPIPE = """
def cut(torch_C):
    real = torch_C._rpc_init
    def init():
        done = real()
        if asks():
            take_away(torch_C._distributed_rpc)
        return done
    torch_C._rpc_init = init

def asks():
    with open(os.path.join(os.path.dirname(torch_file), "distributed", "rpc", "__init__.py")) as source:
        return "_is_tensorpipe_available" in source.read()

def take_away(module):
    for name in "TensorPipeAgent", "_TensorPipeRpcBackendOptionsBase":
        module.__dict__.pop(name, None)

import importlib.util, os
torch_file = importlib.util.find_spec("torch").origin
import torch
import torch.distributed.rpc as rpc
if not asks():
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

# Names no backend, and knows no Tenrec. argv: what it does, the store.
PROGRAM = """
import multiprocessing, os, sys, threading
import torch, torch.distributed.rpc as rpc, torch.multiprocessing as mp
import beside  # this file's folder is searched

def agent():
    return type(rpc.api._get_current_rpc_agent()).__name__

def meet(rank, url):
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method=url, num_worker_threads=4))
    assert rpc.rpc_sync(f"w{1 - rank}", agent) == agent()
    if rank == 0:
        print(agent(), flush=True)
    rpc.shutdown()

def meet_from_child(rank, url):
    mp.spawn(meet, args=(url,), nprocs=2)

def late():
    threading.main_thread().join()
    rpc.init_rpc("w0", rank=0, world_size=1)
    assert rpc.rpc_sync("w0", agent) == "TenrecAgent"
    rpc.shutdown()
    print("late", flush=True)

if __name__ == "__main__":
    what, store = sys.argv[1:]
    assert (__file__, sys.modules["__main__"].meet) == (sys.argv[0], meet)
    if what == "spawn":
        mp.spawn(meet, args=("file://" + store,), nprocs=2)
    elif what == "grandchildren":
        mp.spawn(meet_from_child, args=("file://" + store,), nprocs=1)
    elif what in ("fork", "forkserver"):
        ctx = multiprocessing.get_context(what)
        ranks = [ctx.Process(target=meet, args=(rank, "file://" + store)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
            assert rank.exitcode == 0
    elif what == "tensorpipe":
        rpc.init_rpc("w0", rpc.BackendType.TENSORPIPE, 0, 1, rpc.TensorPipeRpcBackendOptions(
            init_method="file://" + store))
        print(agent())
        rpc.shutdown()
    elif what == "late":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=store)
        threading.Thread(target=late).start()
    elif what == "status":
        sys.exit(3)
    elif what == "exception":
        raise ValueError("on purpose")
"""

# What torch's import does with the entry points of its group, from version 2.5 on.
IMPORTS = """
import importlib.metadata, sys
import torch
if not hasattr(torch, "_import_device_backends"):
    for entry in importlib.metadata.entry_points(group="torch.backends"):
        entry.load()()
print("tenrec_torch" in sys.modules)
"""

ENTERS = IMPORTS + """
import torch.distributed.rpc as rpc
rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
    init_method="file://" + sys.argv[1]))
print(type(rpc.api._get_current_rpc_agent()).__name__)
rpc.shutdown()
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

    def run_program(self, what, module=False, store=None, **kwargs):
        """Runs PROGRAM on TENREC from its path, or as a module; the store is a file, unless it is given."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in ("program.py", PROGRAM), ("beside.py", ""):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
            args = ["-m", "program"] if module else [os.path.join(folder, "program.py")]
            if module:
                kwargs["PYTHONPATH"] = folder + ":" + os.environ["PYTHONPATH"]
            return self.run_python("-m", "tenrec_torch", *args, what, store or os.path.join(folder, "store"), **kwargs)

    def test_program_that_names_no_backend_runs_on_ours(self):
        self.assertEqual(self.run_program("fork").stdout, "TenrecAgent\n")

    def test_module_that_names_no_backend_runs_on_ours(self):
        self.assertEqual(self.run_program("spawn", module=True).stdout, "TenrecAgent\n")

    def test_spawned_children_and_theirs_run_on_ours(self):
        self.assertEqual(self.run_program("grandchildren").stdout, "TenrecAgent\n")

    def test_children_of_a_fork_server_run_on_ours(self):
        self.assertEqual(self.run_program("forkserver").stdout, "TenrecAgent\n")

    @needs_tensorpipe
    def test_program_that_names_a_backend_keeps_it(self):
        self.assertEqual(self.run_program("tensorpipe").stdout, "TensorPipeAgent\n")

    def test_thread_that_outlives_the_program_finds_its_functions(self):
        self.assertEqual(self.run_program("late", store=str(free_port())).stdout, "late\n")

    def test_exit_status_is_that_of_the_program(self):
        self.run_program("status", status=3)
        self.assertIn("ValueError: on purpose", self.run_program("exception", status=1).stderr)

    def test_program_that_is_missing_is_named(self):
        for args, text in [(["nosuch.py"], "no such file: 'nosuch.py'"),
                           (["-m", "nosuch"], "no module named 'nosuch'")]:
            self.assertEqual(self.run_python("-m", "tenrec_torch", *args, status=1).stderr, f"tenrec_torch: {text}\n")
        self.assertRegex(self.run_python("-m", "tenrec_torch", "-m", status=2).stderr, "^usage: ")

    def forge(self, folder, **built):
        """Puts the package into the folder as if it was built for something else; without its extension, which it must not reach."""
        package = os.path.join(folder, "tenrec_torch")
        shutil.copytree(os.path.dirname(importlib.util.find_spec("tenrec_torch").origin), package,
                        ignore=shutil.ignore_patterns("_C.*", "__pycache__"))
        with open(os.path.join(package, "_built.py"), "a", encoding="utf-8") as f:
            f.writelines(f"{name} = {value!r}\n" for name, value in built.items())

    def refusal(self, library=None, **built):
        """What the import of a forged package says, beside a tenrec_rpc with this text."""
        with tempfile.TemporaryDirectory() as folder:
            self.forge(folder, **built)
            if library is not None:
                with open(os.path.join(folder, "tenrec_rpc.py"), "w", encoding="utf-8") as f:
                    f.write(library)
            got = self.run_python("-c", "import tenrec_torch", status=1, PYTHONPATH=folder + ":" + os.environ["PYTHONPATH"])
        return got.stderr.splitlines()[-1]

    def test_package_for_another_torch_is_refused_before_its_extension(self):
        self.assertRegex(self.refusal(TORCH="1.0.0"),
                         r"^ImportError: tenrec_torch was built for torch 1\.0\.0 \(C\+\+ ABI [01]\), this is torch [^ +]+ \(C\+\+ ABI [01]\): build it again")

    def test_package_for_another_abi_is_refused_before_its_extension(self):
        self.assertRegex(self.refusal(CXX11_ABI=7), r"^ImportError: tenrec_torch was built for torch \S+ \(C\+\+ ABI 7\), this is torch")

    def test_package_of_a_stranger_in_the_place_of_the_library_is_refused(self):
        self.assertRegex(self.refusal(library="__version__ = '9.9'"), r"^ImportError: .*, this is the package of another project in .*tenrec_rpc\.py: install")

    def test_library_of_another_version_is_refused(self):
        self.assertRegex(self.refusal(TENREC="9.9.9"), r"^ImportError: tenrec_torch was built for tenrec-rpc 9\.9\.9, this is tenrec-rpc ")

    def test_default_that_does_not_fit_leaves_the_import_of_torch_alone(self):
        got = self.enter(IMPORTS, built={"TORCH": "1.0.0"}, TENREC_TORCH_DEFAULT="1")
        self.assertEqual(got.stdout, "False\n")
        self.assertEqual(got.stderr.count("TENREC_TORCH_DEFAULT has no effect: tenrec_torch was built for torch 1.0.0 "), 1, got.stderr)

    def enter(self, program=ENTERS, built=None, **kwargs):
        """Runs a program with what pip installs next to the package, as in sys.path of an installed one."""
        with tempfile.TemporaryDirectory() as folder:
            if built:
                self.forge(folder, **built)
            info = os.path.join(folder, "tenrec_torch-0.dist-info")
            os.mkdir(info)
            shutil.copy(os.path.join(HERE, "../tenrec_torch_autoload.py"), folder)
            for name, text in [("METADATA", "Metadata-Version: 2.1\nName: tenrec-torch\nVersion: 0\n"),
                               ("entry_points.txt", "[torch.backends]\ntenrec = tenrec_torch_autoload:autoload\n")]:
                with open(os.path.join(info, name), "w", encoding="utf-8") as f:
                    f.write(text)
            return self.run_python("-c", program, os.path.join(folder, "store"),
                                   PYTHONPATH=folder + ":" + os.environ["PYTHONPATH"], **kwargs)

    def test_entry_point_makes_ours_the_default_where_that_is_asked_for(self):
        self.assertEqual(self.enter(TENREC_TORCH_DEFAULT="1").stdout, "True\nTenrecAgent\n")

    @needs_tensorpipe
    def test_entry_point_changes_nothing_by_itself(self):
        self.assertEqual(self.enter(TENREC_TORCH_DEFAULT="").stdout, "False\nTensorPipeAgent\n")

    def test_default_that_is_neither_yes_nor_no_is_refused(self):
        self.assertIn("ValueError: TENREC_TORCH_DEFAULT is 'yes', expected 1, or 0",
                      self.enter(TENREC_TORCH_DEFAULT="yes", status=1).stderr)
