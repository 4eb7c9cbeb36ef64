# SPDX-License-Identifier: Apache-2.0
"""weights_test.py WHY - state dicts of torch as versions of weights: between workers of this process, and of two."""
import os
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path[:0] = [os.path.join(ROOT, "tests/tools"), os.path.join(ROOT, "tests/python")]

import contextlib
import importlib.util
import tempfile

import cases

cases.LIMIT_S = LIMIT_S = 240 # a process that imports torch takes a minute on a loaded machine

from workers import program, programs_end, refused, started, tenrec # first: it skips where there is no package

import torch
from cases import Skipped, contains, equal, main, true
from torch import nn

from tenrec_torch import weights

STRIDED = {"turned": torch.arange(12.).reshape(3, 4).T, "part": torch.arange(40)[3:33:3], "wide": torch.ones(1, 4).expand(3, 4)}


class Tied(nn.Module):
    """Tied weights, buffers, a scalar, and types of all sizes."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(50, 16)
        self.norm = nn.BatchNorm1d(16)
        self.middle = nn.Linear(16, 16).to(torch.bfloat16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("mask", torch.rand(16) > 0.5)
        self.register_buffer("phase", torch.randn(4, dtype=torch.complex64))
        self.register_buffer("turned", torch.randn(3, 4).T)
        self.register_buffer("nothing", torch.empty(0, 4))
        self.scale = nn.Parameter(torch.randn(()))

    def forward(self, x):
        y = self.norm(self.embedding(x) * self.scale)
        return self.head(self.middle((y * self.mask).to(torch.bfloat16)).float())


@contextlib.contextmanager
def handles(n=2):
    with started(n) as workers:
        yield [w.weights("policy", keeper="w0") for w in workers]


def same(a, b, what="tensor"):
    equal((a.dtype, a.shape), (b.dtype, b.shape), f"type and shape of {what}")
    true(torch.equal(a, b), f"{what}: {a} is {b}")


def same_states(a, b):
    equal(list(a), list(b))
    for name in a:
        same(a[name], b[name], name)


def weights_of_a_module_arrive_in_another_one():
    theirs, ours = Tied(1), Tied(2)
    places = {name: p.data_ptr() for name, p in ours.named_parameters()}
    with handles() as (s0, s1):
        weights.publish_state_dict(s0, 3, theirs.state_dict())
        equal(weights.load_state_dict(s1, ours), 3)
        same_states(ours.state_dict(), theirs.state_dict())
        equal({name: p.data_ptr() for name, p in ours.named_parameters()}, places, "the memory of the parameters")
        true(ours.head.weight is ours.embedding.weight, "they are tied")
        theirs.eval(), ours.eval()
        x = torch.arange(8)
        same(ours(x), theirs(x))
        with torch.no_grad():
            theirs.scale += 1 # the set has a copy
        third = Tied(3)
        weights.load_state_dict(s0, third, version=3)
        same(third.scale, ours.scale)
        weights.publish_state_dict(s0, 4, theirs.state_dict())
        equal(weights.load_state_dict(s1, ours, after=3, timeout=LIMIT_S), 4)
        same_states(ours.state_dict(), theirs.state_dict())


def weights_of_strided_tensors_arrive_in_strided_ones():
    with handles() as (s0, s1):
        weights.publish_state_dict(s0, 1, STRIDED)
        plain = {name: torch.zeros(t.shape, dtype=t.dtype) for name, t in STRIDED.items()}
        weights.load_state_dict(s1, plain)
        same_states(plain, STRIDED)
        own = torch.zeros(60, dtype=torch.int64)
        strided = {"turned": torch.zeros(3, 4).T, "part": own[5:55:5]}
        weights.load_state_dict(s1, strided)
        for name, t in strided.items():
            same(t, STRIDED[name], name)
        equal(own.count_nonzero().item(), 10)


def weights_of_each_type_arrive():
    names = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
             "float8_e4m3fn", "float8_e5m2"]
    types = [getattr(torch, name) for name in names if hasattr(torch, name)]
    with handles() as (s0, s1):
        theirs = {str(t): (torch.rand(5) * 8).to(t) for t in types}
        ours = {str(t): torch.zeros(5).to(t) for t in types}
        theirs["conj"], ours["conj"] = torch.randn(3, dtype=torch.complex64).conj(), torch.zeros(3, dtype=torch.complex64).conj()
        theirs["imag"] = theirs["conj"].imag
        ours["imag"] = torch.zeros(3)
        weights.publish_state_dict(s0, 1, theirs)
        weights.load_state_dict(s1, ours)
        for name, t in theirs.items():
            equal(ours[name].dtype, t.dtype)
            equal(ours[name].to(torch.complex128).tolist(), t.to(torch.complex128).tolist(), name)


def weights_of_views_of_one_storage_are_each_loaded():
    flat = torch.zeros(20)
    ours = {"flat": flat, "first": flat[:10], "rest": flat[10:], "again": flat[10:]}
    source = torch.arange(20.)
    with handles() as (s0, s1):
        weights.publish_state_dict(s0, 1, {"flat": source, "first": source[:10], "rest": source[10:], "again": source[10:]})
        weights.load_state_dict(s1, ours)
        same(flat, source)
        halves = torch.zeros(20)
        weights.load_state_dict(s1, {"first": halves[:10], "rest": halves[10:]})
        same(halves, source)


def weights_in_place_are_the_tensors_themselves():
    model, ours = nn.Linear(4, 4), nn.Linear(4, 4)
    with handles() as (s0, s1):
        weights.publish_state_dict(s0, 1, model.state_dict(), in_place=True)
        with s0.held(1):
            weights.load_state_dict(s1, ours)
        same_states(ours.state_dict(), model.state_dict())
        with torch.no_grad():
            model.weight.zero_()
        true(ours.weight.count_nonzero().item() > 0, "it was withdrawn before")
        contains(str(refused(ValueError, weights.publish_state_dict, s0, 2, STRIDED, in_place=True)), "'turned' is no contiguous memory")


def weights_of_shards_that_the_caller_names():
    whole = torch.arange(24.).reshape(6, 4)
    with handles(3) as (s0, s1, s2):
        first = s0.publish_async(1, {"m": tenrec.Shard(whole[:3], (6, 4), (0, 0))}, publishers=2)
        weights.publish_state_dict(s1, 1, {"m": whole[3:]}, shards={"m": ((6, 4), (3, 0))}, publishers=2)
        first.wait(LIMIT_S)
        part = torch.zeros(2, 2)
        weights.load_state_dict(s2, {"m": part}, shards={"m": ((6, 4), (2, 1))})
        same(part, whole[2:4, 1:3])


DTENSORS = """
import torch
import torch.distributed as dist
from tenrec_torch import weights
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
rank = overrides["worker.rank"]
dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/gloo", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(20.).reshape(5, 4)
w = tenrec.Worker(f"w{rank}", overrides=overrides)
w.init_rpc()
policy = w.weights("policy", "w0")
split = {"rows": distribute_tensor(whole, mesh, [Shard(0)]), "all": distribute_tensor(whole, mesh, [Replicate()]),
         "one": distribute_tensor(whole[:1], mesh, [Shard(0)])}
weights.publish_state_dict(policy, 1, split, publishers=2)
ours = {"rows": distribute_tensor(torch.zeros(5, 4), mesh, [Shard(1)]), "all": distribute_tensor(torch.zeros(5, 4), mesh, [Shard(0)]),
        "one": torch.zeros(1, 4)}
weights.load_state_dict(policy, ours)
for name in "rows", "all":
    assert torch.equal(ours[name].full_tensor(), whole), ours[name].full_tensor()
assert torch.equal(ours["one"], whole[:1]), ours["one"]
try:
    weights.publish_state_dict(policy, 2, {"sum": DTensor.from_local(whole, mesh, [Partial()])})
    raise AssertionError("a partial sum is no part")
except TypeError as e:
    assert "'sum' is a DTensor with the placements" in str(e), e
w.barrier()
policy.close()
w.shutdown()
dist.destroy_process_group()
"""


def weights_of_dtensors_are_parts():
    if not importlib.util.find_spec("torch.distributed.tensor"):
        raise Skipped(f"torch {torch.__version__} has no torch.distributed.tensor")
    with tempfile.TemporaryDirectory(prefix="tenrec-torch-") as folder:
        programs_end(*(program(DTENSORS, folder, rank=rank, world=2, folder=folder) for rank in range(2)))


def weights_that_are_loaded_are_a_change_for_autograd():
    if not hasattr(torch.autograd.graph, "increment_version"):
        raise Skipped(f"torch {torch.__version__} has no increment_version")
    x = torch.ones(3)
    w = torch.ones(3, requires_grad=True)
    with handles() as (s0, s1):
        weights.publish_state_dict(s0, 1, {"x": torch.zeros(3)})
        y = (w * x).sum()
        weights.load_state_dict(s1, {"x": x})
        contains(str(refused(RuntimeError, y.backward)), "modified by an inplace operation")


def weights_refuse_what_has_no_memory():
    with handles() as (s0, s1):
        for value, text in [(7, "'x' is a int, expected a tensor"), ({}, "'x' is a dict"), (torch.ones(2).to_sparse(), "'x' has no plain memory"),
                            (torch.empty(2, device="meta"), "on meta")]:
            contains(str(refused(TypeError, weights.publish_state_dict, s0, 1, {"x": value})), text)
            contains(str(refused(TypeError, weights.load_state_dict, s1, {"x": value})), text)
        weights.publish_state_dict(s0, 1, {"x": torch.ones(2)})
        contains(str(refused(tenrec.NotFoundError, weights.load_state_dict, s1, nn.Linear(2, 2))), "'weight'")
        contains(str(refused(tenrec.InvalidError, weights.load_state_dict, s1, {"x": torch.ones(2).double()})), "float32")
        refused(tenrec.TimeoutError, weights.load_state_dict, s1, {"x": torch.ones(2)}, after=1, timeout=0.05)


GENERATOR = """
sys.path.insert(0, sys.argv[1])
sys.argv[1] = ""
from weights_test import Tied, weights
w = tenrec.Worker("generator", overrides=overrides)
w.init_rpc()
model = Tied(2)
with w.weights("policy", keeper="trainer") as policy:
    for version in 1, 2:
        weights.load_state_dict(policy, model, version)
        policy.report(version, None if float(model.scale) == version else f"the scale is {float(model.scale)}")
    w.barrier()
w.shutdown()
"""


def weights_reach_another_process():
    with tempfile.TemporaryDirectory(prefix="tenrec-torch-") as folder:
        here = os.path.dirname(os.path.abspath(__file__))
        generator = program(GENERATOR, here, rank=1, world=2, folder=folder)
        w = tenrec.Worker("trainer", overrides={"init_method": f"file://{folder}/store", "worker.world_size": 2, "worker.rank": 0,
                                                "worker.rpc_timeout": f"{LIMIT_S}s", "worker.init_timeout": f"{LIMIT_S}s"})
        w.init_rpc()
        model = Tied(1)
        with w.weights("policy", keeper="trainer") as policy:
            for version in 1, 2:
                with torch.no_grad():
                    model.scale.fill_(version)
                weights.publish_state_dict(policy, version, model.state_dict())
                holders = {h["worker"]: h for h in policy.wait(version, reports=1)["holders"]}
                equal((holders["generator"]["state"], holders["generator"]["error"]), ("applied", ""))
            w.barrier()
        w.shutdown()
        programs_end(generator)


if __name__ == "__main__":
    main(globals(), "weights_", "torch_weights")
