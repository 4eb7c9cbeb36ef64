# SPDX-License-Identifier: Apache-2.0
import dataclasses


@dataclasses.dataclass
class WeightTransferConfig:
    backend: str = "nccl"
