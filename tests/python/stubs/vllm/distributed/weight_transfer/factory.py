# SPDX-License-Identifier: Apache-2.0
class WeightTransferEngineFactory:
    registered = {}

    @classmethod
    def register_engine(cls, name, engine):
        if name in cls.registered:
            raise ValueError(f"{name} is registered")
        cls.registered[name] = engine


class WeightTransferTrainerFactory(WeightTransferEngineFactory):
    registered = {}
