# SPDX-License-Identifier: Apache-2.0
"""transports.py - what the tests of the transport `tenrec` share.

torch has torch.distributed._transport from 2.15 on. Its files are pure Python and work beside an older torch: they are
searched in the folder that TORCH_TRANSPORT names, and in build/venv-torch-2.15*, which `script/ci/torch-venv --download 2.15.0`
makes. Without them the tests skip."""
import base64
import contextlib
import glob
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/tools"))


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


if sys.argv[1]:
    skip(sys.argv[1])

import torch
import torch.distributed


def _lay():
    """Puts the files beside a torch that lacks them."""
    if importlib.util.find_spec("torch.distributed._transport"):
        return
    found = [os.environ["TORCH_TRANSPORT"]] if "TORCH_TRANSPORT" in os.environ else sorted(
        glob.glob(f"{ROOT}/build/venv-torch-2.15*/lib/python*/site-packages/torch/distributed/_transport"))
    if not found:
        skip(f"torch {torch.__version__} has no torch.distributed._transport, and no torch 2.15 is at hand")
    spec = importlib.util.spec_from_file_location("torch.distributed._transport", f"{found[0]}/__init__.py",
                                                  submodule_search_locations=found[:1])
    torch.distributed._transport = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])


_lay()

from cases import Failed, environment, until
from torch.distributed._transport import new_transport, register_transport

from tenrec_torch.transport import TenrecTransport

LIMIT_S = 240  # a process that imports torch takes a minute on a loaded machine

try:
    importlib.metadata.distribution("tenrec-torch")  # a wheel announces the transport
except importlib.metadata.PackageNotFoundError:
    register_transport("tenrec", TenrecTransport)


def made(**options):
    """A transport whose peers are on this host."""
    return new_transport("tenrec", host="127.0.0.1", **options)


@contextlib.contextmanager
def pair(**options):
    """Two transports of this process that are connected with each other."""
    first, second = made(**options), made(**options)
    records = first.bind(), second.bind()
    first.connect(records[1])
    second.connect(records[0])
    try:
        yield first, second
    finally:
        first.close()
        second.close()


def remote(memory):
    """What the peer gets by way of bytes."""
    buffer = memory.to_remote_buffer()
    return type(buffer).deserialize(buffer.serialize())


def refused(error, part, function, *args, **more):
    """Calls a function that has to raise this error with this text, and returns the error."""
    try:
        function(*args, **more)
    except error as e:
        if part not in str(e):
            raise Failed(f"{part!r} is not in {str(e)!r}") from e
        return e
    raise Failed(f"{error.__name__} was not raised")


HEAD = """
import sys
sys.argv[1:2] = [""]
sys.path.insert(0, {folder!r})
import base64, os, signal, threading, time
from transports import *
from cases import Failed, contains, equal, true, until

def tell(*data):
    print(*(base64.b64encode(d).decode() for d in data), flush=True)

def heard():
    return [base64.b64decode(word) for word in sys.stdin.readline().split()]

def receive(buffer):
    from tenrec_torch._transport_memory import TenrecRemoteBuffer
    return TenrecRemoteBuffer.deserialize(buffer)
"""


class Process:
    """A process that runs a text; what it tells and is heard are lines of byte strings."""

    def __init__(self, text, *args, **env):
        head = HEAD.format(folder=os.path.dirname(os.path.abspath(__file__)))
        self._process = subprocess.Popen([sys.executable, "-c", head + text, "", *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, env=environment(PYTHONPATH=os.environ["PYTHONPATH"], **env))
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def tell(self, *data):
        self._process.stdin.write(" ".join(base64.b64encode(d).decode() for d in data) + "\n")
        self._process.stdin.flush()

    def heard(self):
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"a process ended, and printed {self._process.communicate()[1]}")
        return [base64.b64decode(word) for word in line.split()]

    def stop(self):
        """Stops all its threads."""
        os.kill(self.pid, signal.SIGSTOP)
        until(self._stands, "the process is stopped")

    def _stands(self):
        for stat in glob.glob(f"/proc/{self.pid}/task/*/stat"):
            with open(stat, encoding="ascii", errors="replace") as f:
                if f.read().rsplit(")", 1)[1].split()[0] != "T":
                    return False
        return True

    def kill(self):
        self._process.kill()
        self._process.wait()

    def end(self):
        """Waits for its regular end."""
        out, err = self._process.communicate(timeout=LIMIT_S)
        if self._process.returncode:
            raise Failed(f"a process ended with {self._process.returncode}, and printed {out} {err}")
        return out
