# SPDX-License-Identifier: Apache-2.0
from .rdt.tensor_transport_manager import CommunicatorMetadata, TensorTransportManager, TensorTransportMetadata  # noqa: F401

registered = {}


def register_tensor_transport(name, devices, manager, data_type):
    registered[name] = devices, manager, data_type
