# SPDX-License-Identifier: Apache-2.0
"""ray_test.py WHY - tensors of Ray's actors by regions: the transport alone on the shape of Ray's interface, and with Ray where it is installed."""
import importlib.util
import os
import sys

from cases import Skipped, contains, environment, equal, main, run, true
from workers import refused, tenrec

REAL = importlib.util.find_spec("ray") is not None
if not REAL:
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stubs"))

try:
    import numpy
    from tenrec_rpc.adapters import ray as adapter
except ImportError:
    print("1..0 # SKIP no numpy")
    sys.exit(0)

ACTORS = """
import numpy, ray
from ray.experimental import set_target_for_ref
from tenrec_rpc.adapters.ray import register

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
register(numpy.ndarray)

@ray.remote(num_cpus=0, enable_tensor_transport=True)
class Producer:
    @ray.method(tensor_transport="tenrec")
    def make(self, n):
        return {"x": numpy.arange(n, dtype=numpy.float64), "empty": numpy.zeros((0, 3)), "label": "made"}

@ray.remote(num_cpus=0, enable_tensor_transport=True)
class Consumer:
    def total(self, made):
        return float(made["x"].sum()), tuple(made["empty"].shape), made["label"]

producer, consumers = Producer.remote(), [Consumer.remote(), Consumer.remote()]
ref = producer.make.remote(4096)
print([ray.get(consumer.total.remote(ref), timeout=50) for consumer in consumers])
print(ray.get(ref, timeout=50)["x"][:4].tolist())
put = ray.put([numpy.ones(5)], _tensor_transport="tenrec")
print(float(ray.get(put)[0].sum()))
ray.kill(producer)
late = producer.make.remote(3)
try:
    ray.get(consumers[0].total.remote(late), timeout=50)
except Exception as e:
    print("refused:", type(e).__name__)
print(ray.get(consumers[1].total.remote({"x": numpy.ones(2), "empty": numpy.zeros(1), "label": "alive"}), timeout=50))
ray.shutdown()
"""


def has_torch():
    found = importlib.util.find_spec("torch")  # the folder tests/torch is another
    return found is not None and found.loader is not None and found.origin is not None


class Two:
    """Two transports, as of two actors."""

    def __enter__(self):
        self.owner, self.reader = adapter.TenrecTransport(), adapter.TenrecTransport()
        return self.owner, self.reader

    def __exit__(self, *error):
        for transport in (self.owner, self.reader):
            if transport._worker:
                transport._links.clear()
                transport._worker.shutdown(graceful=False)


def fetched(owner, reader, tensors, into=None):
    meta = owner.extract_tensor_transport_metadata("o", tensors)
    return reader.recv_multiple_tensors("o", meta, reader.get_communicator_metadata(None, None), into)


def ray_tensors_arrive_with_type_and_shape():
    with Two() as (owner, reader):
        sent = [numpy.arange(6, dtype=numpy.int16).reshape(2, 3), numpy.array(2.5), numpy.zeros((0, 4)), numpy.array([True, False])]
        got = fetched(owner, reader, sent)
        equal([(t.dtype, t.shape, t.tolist()) for t in got], [(t.dtype, t.shape, t.tolist()) for t in sent])
        equal(owner.extract_tensor_transport_metadata("none", []).tensor_device, None)
        equal((owner.is_one_sided(), owner.can_abort_transport(), owner.tensor_transport_backend()), (True, True, "TENREC"))


def ray_tensors_of_torch_arrive():
    if not has_torch():
        raise Skipped("no torch")
    import torch
    with Two() as (owner, reader):
        sent = [torch.arange(4, dtype=torch.bfloat16), torch.ones(2, 2, requires_grad=True), torch.tensor(True)]
        for a, b in zip(fetched(owner, reader, sent), sent):
            true(a.dtype == b.dtype and torch.equal(a, b.detach()), f"{a} is as {b}")
        into = [torch.zeros(4)]
        meta = owner.extract_tensor_transport_metadata("p", [torch.arange(4.0)])
        true(reader.recv_multiple_tensors("p", meta, None, into)[0] is into[0], "the buffer is the given one")
        equal(into[0].tolist(), [0, 1, 2, 3])


def ray_object_is_offered_once_and_ends_with_its_reference():
    with Two() as (owner, reader):
        x = numpy.ones(3)
        meta = owner.extract_tensor_transport_metadata("o", [x])
        equal(owner.extract_tensor_transport_metadata("o", [x]).refs, meta.refs)
        other = owner.extract_tensor_transport_metadata("p", [x])
        owner.garbage_collect("o", meta, [x])
        owner.garbage_collect("o", meta, [x])
        e = refused(adapter.RayDirectTransportError, reader.recv_multiple_tensors, "o", meta, None)
        contains(str(e), "object o was not read by Tenrec: ESTALE")
        equal(reader.recv_multiple_tensors("p", other, None)[0].tolist(), [1, 1, 1])


def ray_transport_refuses_what_is_no_plain_memory():
    with Two() as (owner, reader):
        contains(str(refused(ValueError, fetched, owner, reader, [numpy.ones((3, 3))[:, 1]])), "tensor 0 is not contiguous")
        contains(str(refused(TypeError, fetched, owner, reader, [numpy.ones(1), numpy.array([None])])), "tensor 1 is ndarray, expected")
        meta = owner.extract_tensor_transport_metadata("good", [numpy.ones(4)])
        meta.tensor_meta = [((9,), numpy.dtype("float64"))]
        contains(str(refused(ValueError, reader.recv_multiple_tensors, "good", meta, None)), "target 0 has 72 bytes, and its tensor 32")
        meta.tensor_meta = [((4,), numpy.dtype(object))]
        refused(TypeError, reader.recv_multiple_tensors, "good", meta, None)
        meta.refs = []
        refused(ValueError, reader.recv_multiple_tensors, "good", meta, None)
        meta.tensor_meta, meta.refs, meta.record = [((4,), numpy.dtype("float64"))], [bytes(184)], b"none"
        refused(ValueError, reader.recv_multiple_tensors, "good", meta, None)
        refused(TypeError, reader.recv_multiple_tensors, "good", None, None)


def ray_abort_ends_a_wait_and_nothing_else():
    with Two() as (owner, reader):
        meta = owner.extract_tensor_transport_metadata("o", [numpy.ones(1 << 20)])
        fetch = reader.fetch_multiple_tensors("o", meta, None)
        reader.abort_transport("o", None)
        reader.abort_transport("unknown", None)
        try:
            reader.wait_fetch_complete(fetch)
        except adapter.RayDirectTransportError as e:
            contains(str(e), "ECANCELED")
        equal(reader.recv_multiple_tensors("o", meta, None)[0].sum(), 1 << 20)


def exchange(program):
    """Runs the program, whose library of arrays makes the same with the names that numpy has."""
    if not REAL:
        raise Skipped("no ray")
    done = run(sys.executable, "-c", program, env=environment(PYTHONPATH=os.environ["PYTHONPATH"], RAY_USAGE_STATS_ENABLED="0"), cwd="/", limit_s=300)  # a folder here is called torch
    equal(done.returncode, 0, f"exit status of a program that printed {done.stdout}{done.stderr[-3000:]}")
    lines = done.stdout.splitlines()
    equal(lines[0], "[(8386560.0, (0, 3), 'made'), (8386560.0, (0, 3), 'made')]")
    equal(lines[1:3], ["[0.0, 1.0, 2.0, 3.0]", "5.0"])
    contains(lines[3], "refused: ")
    equal(lines[4], "(2.0, (1,), 'alive')")


def ray_actors_exchange_arrays():
    exchange(ACTORS)


def ray_actors_exchange_tensors_of_torch():
    if not has_torch():
        raise Skipped("no torch")
    exchange(ACTORS.replace("numpy.ndarray", "").replace("numpy", "torch"))


if __name__ == "__main__":
    main(globals(), "ray_", "python_ray")
