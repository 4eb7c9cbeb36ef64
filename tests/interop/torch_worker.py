# SPDX-License-Identifier: Apache-2.0
"""torch_worker.py - a torch worker with its default transports and channels.

It executes the orders of stdin and reports each result on stdout.

  start [ADDRESS]   address IP:PORT, where it listens; a worker "tenrec" is at ADDRESS
  pickle LENGTH     pickle HEX, the call operator.add(tensor of LENGTH bytes, 1)
  pickle_views LENGTH  pickle HEX, the call views(tensor of LENGTH bytes, the last 3/4 of it)
  call LENGTH       same | differs: what "tenrec" sent back of that call's tensor
  call_views LENGTH same | differs: the same of both views, which share a storage
"""
import operator
import os
import sys
import tempfile

os.environ["TP_SOCKET_IFNAME"] = "lo"
try:
    import torch
    import torch.distributed as dist
    from torch.distributed import autograd, rpc
    from torch.distributed.rpc.internal import PythonUDF, _internal_rpc_pickler
except ImportError:
    print("no torch", flush=True)
    sys.exit(0)


def start(folder, address):
    """Starts the agent alone: init_rpc would also meet the other workers, which would
    have to be torch's."""
    store = dist.PrefixStore("rpc_prefix_0", dist.FileStore(os.path.join(folder, "store"), 1))
    if address:
        store.set("names/1", "tenrec")
        store.set("addrs/tenrec", "uv://" + address)
    agent = rpc.TensorPipeAgent(store, "torch", 0, 2 if address else 1,
                                rpc.TensorPipeRpcBackendOptions(num_worker_threads=4), {}, [])
    autograd._init(0)
    rpc.api._init_rpc_states(agent)
    return store.get("addrs/torch").decode().removeprefix("uv://")


def tensor(length):
    return torch.arange(length, dtype=torch.int64).to(torch.uint8)


def views(whole, part):
    assert whole.storage().data_ptr() == part.storage().data_ptr()
    whole.add_(1)  # shows in both
    return whole, part


def both(length):
    whole = tensor(length)
    return whole, whole[length // 4:]


def pickle(function, args):
    data, _ = _internal_rpc_pickler.serialize(PythonUDF(function, args, {}))
    print("pickle", data.hex(), flush=True)


def call_views(length):
    sent = both(length)
    back = rpc.rpc_sync("tenrec", views, sent, timeout=30).args
    equal = torch.equal(back[0], sent[0]) and torch.equal(back[1], sent[1])
    return "same" if equal and back[0].storage().data_ptr() == back[1].storage().data_ptr() else "differs"


def call(length):
    sent = tensor(length)
    # "tenrec" answers with the call itself.
    back = rpc.rpc_sync("tenrec", operator.add, (sent, 1), timeout=30)
    return "same" if torch.equal(back.args[0], sent) else "differs"


with tempfile.TemporaryDirectory() as scratch:
    for line in sys.stdin:
        what, *words = line.split()
        if what == "start":
            print("address", start(scratch, words[0] if words else None), flush=True)
        elif what == "pickle":
            pickle(operator.add, (tensor(int(words[0])), 1))
        elif what == "pickle_views":
            pickle(views, both(int(words[0])))
        elif what == "call":
            print(call(int(words[0])), flush=True)
        elif what == "call_views":
            print(call_views(int(words[0])), flush=True)
sys.stdout.flush()
os._exit(0)  # the other side is no torch worker that could be waited for
