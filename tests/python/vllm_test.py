# SPDX-License-Identifier: Apache-2.0
"""vllm_test.py WHY - the weight transfer engines for vLLM: on its classes where it is installed, else on their shape. vLLM's workers are not run."""
import importlib.util
import json
import os
import sys
import types

from cases import contains, equal, main, true
from workers import at_once, refused, tenrec

found = importlib.util.find_spec("torch")  # the folder tests/torch is another
if found is None or found.origin is None:
    print("1..0 # SKIP no torch")
    sys.exit(0)
if importlib.util.find_spec("vllm") is None:
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stubs"))

import torch  # pylint: disable=wrong-import-position
from vllm.config import WeightTransferConfig  # pylint: disable=wrong-import-position
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory  # pylint: disable=wrong-import-position

from tenrec_rpc.adapters import vllm as adapter  # pylint: disable=wrong-import-position

WEIGHTS = {"embed.weight": torch.arange(12.0).reshape(4, 3), "scale": torch.tensor(0.5), "half": torch.ones(3, dtype=torch.bfloat16),
           "mask": torch.tensor([True, False])}


class Model:
    """Of vLLM: loads tensors by name."""

    def __init__(self, fails=""):
        self.loaded, self.steps, self.fails = {}, [], fails

    def load_weights(self, pairs):
        for name, tensor in pairs:
            if name == self.fails:
                raise KeyError(f"no parameter {name}")
            self.loaded[name] = tensor.clone()


class Config:
    model_config, parallel_config = "the model's", None


# In place of vLLM's, which take models of vLLM only.
sys.modules["vllm.model_executor.model_loader.reload"] = types.SimpleNamespace(
    initialize_layerwise_reload=lambda model: model.steps.append("start"),
    finalize_layerwise_reload=lambda model, config: model.steps.append(("finish", config)))
if hasattr(torch, "accelerator") and not torch.accelerator.is_available():
    torch.accelerator.synchronize = lambda: None  # vLLM waits for its device
adapter.register()


class Meta:
    def __init__(self, name, owners=None):
        self.name, self.owners = name, owners


class Source:
    """Of vLLM 0.33."""

    def __init__(self, weights, owners=None):
        self.weights, self.passes = weights, 0
        self.metadata = [Meta(name, owners) for name in weights]

    def iter_full(self):
        self.passes += 1
        return iter(self.weights.items())


class Inference:
    """Engines of vLLM's workers, and the client that a trainer drives them by. Its messages are plain, as over HTTP."""

    def __init__(self, *models):
        self.models = models
        self.engines = [WeightTransferEngineFactory.create_engine(WeightTransferConfig(backend="tenrec"), Config, torch.device("cpu"), model)
                        for model in models]

    def _all(self, method, *args):
        at_once(*(lambda engine=engine: getattr(engine, method)(*args) for engine in self.engines))

    def init_weight_transfer_engine(self, values):
        values = json.loads(json.dumps(values))
        at_once(*(lambda engine=engine: engine.init_transfer_engine(engine.parse_init_info(values)) for engine in self.engines))

    def start_weight_update(self):
        self._all("start_weight_update")

    def update_weights(self, values):
        self._all("update_weights", json.loads(json.dumps(values)))

    def finish_weight_update(self):
        self._all("finish_weight_update")

    def shutdown(self):
        self._all("shutdown")


def trainer(client, source, rank=0):
    return WeightTransferTrainerFactory.trainer_init(adapter.TenrecTrainerInitInfo(rank=rank, timeout_s=30.0), client=client, source=source)


def vllm_models_have_each_version_that_was_sent():
    weights = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    client = Inference(Model(), Model())
    engine = trainer(client, Source(weights))
    for _ in range(3):
        engine.send_weights()
        for model in client.models:
            true(model.loaded.keys() == weights.keys() and all(torch.equal(model.loaded[name], weights[name]) for name in weights), "the weights are the same")
            equal(model.steps[-2:], ["start", ("finish", "the model's")])
        weights["embed.weight"] += 1  # nobody reads it any more
        weights["mask"].logical_not_()
    states = {h["state"] for h in engine._node.weights.holders() if h["version"] == 3 and h["worker"].startswith("vllm-")}
    equal(states, {"applied"})
    client.shutdown()
    engine.shutdown()


def vllm_trainer_learns_why_a_worker_failed_and_goes_on():
    client = Inference(Model(), Model(fails="scale"))
    engine = trainer(client, list(WEIGHTS.items()))  # as before vLLM 0.33
    contains(str(refused(KeyError, engine.send_weights)), "no parameter scale")
    errors = {h["error"] for h in engine._node.weights.holders() if h["state"] == "failed"}
    true(any("no parameter scale" in error for error in errors), f"the record has the error: {errors}")
    client.models[1].fails = ""
    engine.send_weights()
    equal(set(client.models[1].loaded), set(WEIGHTS))
    client.shutdown()
    engine.shutdown()


def vllm_ranks_that_do_not_send_read_the_source_only():
    source = Source(WEIGHTS)
    engine = trainer(None, source, rank=1)
    engine.send_weights()
    equal(source.passes, 1)
    engine.shutdown()


def vllm_trainer_refuses_weights_that_rank_0_lacks():
    client = Inference(Model())
    refused(ValueError, trainer, client, None)
    for source in (Source(WEIGHTS, owners=(1,)), [("scale", None)]):
        engine = trainer(client, source)
        contains(str(refused(ValueError, engine.send_weights)), "rank 0")
        engine.shutdown()
    client.shutdown()


def vllm_engine_refuses_what_it_cannot_load():
    client = Inference(Model())
    engine, = client.engines
    good = {"version": 1, "names": ["x"], "dtype_names": ["float32"], "shapes": [[2]]}
    contains(str(refused(RuntimeError, engine.update_weights, good)), "init_transfer_engine")
    refused(ValueError, engine.init_transfer_engine, adapter.TenrecInitInfo("no base64!"))
    contains(str(refused(tenrec.Error, engine.init_transfer_engine, adapter.TenrecInitInfo("bm9uZQ=="))), "no record of a link")
    sender = trainer(client, Source({"x": torch.ones(2)}))
    contains(str(refused(ValueError, engine.update_weights, {**good, "dtype_names": ["load"]})), "'load'")
    refused(ValueError, engine.update_weights, {**good, "shapes": []})
    client.update_weights = lambda values: Inference.update_weights(client, {**values, "shapes": [[3]]})
    refused(tenrec.InvalidError, sender.send_weights)
    client.shutdown()
    sender.shutdown()
    refused(RuntimeError, sender.send_weights)


def vllm_engines_are_registered_by_name():
    adapter.register()  # again
    client = Inference(Model())
    engine = trainer(client, Source(WEIGHTS))
    equal((type(client.engines[0]), type(engine)), (adapter.TenrecEngine, adapter.TenrecTrainerEngine))
    client.shutdown()
    engine.shutdown()


def vllm_client_can_be_a_proxy_of_a_worker():
    inference = Inference(Model())
    with tenrec.pair() as (a, b):
        for name in ("init_weight_transfer_engine", "start_weight_update", "update_weights", "finish_weight_update"):
            b.register(name, getattr(inference, name))
        engine = trainer(a.proxy("b", timeout=60), Source(WEIGHTS))
        engine.send_weights()
        equal(set(inference.models[0].loaded), set(WEIGHTS))
        inference.shutdown()
        engine.shutdown()


if __name__ == "__main__":
    main(globals(), "vllm_", "python_vllm")
