# SPDX-License-Identifier: Apache-2.0
"""fixtures.py - the fixtures of the suites: one class per backend and transport.

A fixture sets the backend and the options that a rank passes to init_rpc.
"""
import importlib
import json
import os
import sys
import time
import unittest

from torch._C import _distributed_rpc
from torch.distributed import rpc
from torch.distributed.rpc import backend_registry
from torch.testing._internal.distributed.rpc.rpc_agent_test_fixture import RpcAgentTestFixture

import ranks

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tests/tools"))
from ports import free_port  # pylint: disable=wrong-import-position

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "config")

HAS_TENSORPIPE = hasattr(_distributed_rpc, "_TensorPipeRpcBackendOptionsBase")
# For a case that runs torch's own agent.
needs_tensorpipe = unittest.skipUnless(HAS_TENSORPIPE, "this torch was built without TensorPipe")


class Fixture(ranks.Ranks, RpcAgentTestFixture):
    backend = None
    options = {}

    @classmethod
    def prepare(cls):
        """Runs in the process of the case, before the case."""

    @property
    def rpc_backend(self):
        return backend_registry.BackendType[self.backend]

    @property
    def rpc_backend_options(self):
        return backend_registry.construct_rpc_backend_options(
            self.rpc_backend, init_method=self.init_method, **self.options)

    def tcp_store(self):
        """Returns the init_method of a store on a free port, the same on all ranks."""
        path = self.file_name + ".port"
        if self.rank == 0:
            with open(path + ".new", "w", encoding="utf-8") as f:
                f.write(str(free_port()))
            os.rename(path + ".new", path)
        while not os.path.exists(path):
            time.sleep(0.01)
        with open(path, encoding="utf-8") as f:
            return "tcp://127.0.0.1:" + f.read()

    def get_shutdown_error_regex(self):
        return ".*"

    def get_timeout_error_regex(self):
        return "RPC ran for more than"


def tensorpipe(transports):
    """torch's own agent, to find cases that fail there too."""
    if transports == "faulty":
        return None
    ways = {"_transports": ["uv"], "_channels": ["basic"]} if transports == "tcp" else {}

    class TensorPipe(Fixture):
        backend = "TENSORPIPE"
        options = ways
    return TensorPipe


def tenrec(transports):
    """The backend TENREC with config/<transports>.yaml."""
    class Tenrec(Fixture):
        backend = "TENREC"
        options = {"config": os.path.join(CONFIG, transports + ".yaml")}

        def get_shutdown_error_regex(self):
            return LOST
    return Tenrec


# Possible errors of a call to a lost worker.
LOST = "(?i)lost|shut ?down|connect|closed"


class Faulty(Fixture):
    """The start values of torch's fixture of its faulty agent; dist_init changes them per test."""

    backend = "FAULTY_TENSORPIPE"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fail_types = ["RREF_FORK_REQUEST", "RREF_CHILD_ACCEPT", "RREF_USER_DELETE",
                           "CLEANUP_AUTOGRAD_CONTEXT_REQ"]
        self.delays_s = {"PYTHON_CALL": 1.5, "SCRIPT_CALL": 1.5}

    @property
    def options(self):
        return {"num_worker_threads": 8, "num_fail_sends": 3,
                "messages_to_fail": self.fail_types, "messages_to_delay": self.delays_s}

    def setup_fault_injection(self, faulty_messages, messages_to_delay):
        if faulty_messages is not None:
            self.fail_types = faulty_messages
        if messages_to_delay is not None:
            self.delays_s = messages_to_delay


def use_faulty_plugin():
    """The `faulty` plugin in the place of torch's faulty agent, under its name: the
    suites ask for FAULTY_TENSORPIPE and read the options back by torch's names."""
    import tenrec_torch

    class Options(tenrec_torch.TenrecRpcBackendOptions):
        pass

    with open(os.path.join(CONFIG, "faulty.yaml"), encoding="utf-8") as f:
        quiet = f.read()

    def construct(rpc_timeout, init_method, num_worker_threads=8, messages_to_fail=(),
                  messages_to_delay=None, num_fail_sends=0):
        faults = {"messages_to_fail": list(messages_to_fail), "num_fail_sends": num_fail_sends,
                  "messages_to_delay": dict(messages_to_delay or {})}
        made = Options(rpc_timeout=rpc_timeout, init_method=init_method,
                       num_worker_threads=num_worker_threads,
                       # JSON is YAML.
                       config=quiet.replace("options: {}", "options: " + json.dumps(faults)))
        for name, value in faults.items():
            setattr(made, name, value)
        return made

    ours = backend_registry.BackendType["TENREC"].value
    backend_registry.BackendType["FAULTY_TENSORPIPE"]._value_ = backend_registry.BackendValue(
        construct_rpc_backend_options_handler=construct,
        init_backend_handler=ours.init_backend_handler)


def register_faulty():
    """Registers FAULTY_TENSORPIPE: the import does, and fails in a torch without TensorPipe."""
    if HAS_TENSORPIPE:
        importlib.import_module("torch.distributed.rpc._testing")
    else:
        ours = backend_registry.BackendType["TENREC"].value
        backend_registry.register_backend("FAULTY_TENSORPIPE", ours.construct_rpc_backend_options_handler,
                                          ours.init_backend_handler)
    rpc.BackendType = backend_registry.BackendType


def injecting(name):
    class Injecting(Faulty):
        @classmethod
        def prepare(cls):
            register_faulty()
            if name == "TENREC":
                use_faulty_plugin()
    return Injecting


def import_backend(name):
    if name == "TENREC":
        importlib.import_module("tenrec_torch")  # registers TENREC
