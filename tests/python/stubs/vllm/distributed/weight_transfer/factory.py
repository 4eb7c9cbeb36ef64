# SPDX-License-Identifier: Apache-2.0
class _Factory:
    @classmethod
    def register_engine(cls, name, engine):
        if name in cls.registered:
            raise ValueError(f"{name} is registered")
        cls.registered[name] = engine


class WeightTransferEngineFactory(_Factory):
    registered = {}

    @classmethod
    def create_engine(cls, config, vllm_config, device, model):
        return cls.registered[config.backend](config, vllm_config, device, model)


class WeightTransferTrainerFactory(_Factory):
    registered = {}

    @classmethod
    def trainer_init(cls, init_info, *, client, source=None):
        return cls.registered[init_info.backend].trainer_init(init_info=init_info, client=client, source=source)
