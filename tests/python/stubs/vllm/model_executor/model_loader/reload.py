# SPDX-License-Identifier: Apache-2.0
def initialize_layerwise_reload(model):
    model.steps.append("start")


def finalize_layerwise_reload(model, model_config):
    model.steps.append(("finish", model_config))
