# SPDX-License-Identifier: Apache-2.0
"""tenrec_rpc.adapters - Tenrec below other packages, each of which its module imports; docs/adapters.md.

    ray   tensors of actors of Ray, by regions
    vllm  weights of a trainer for vLLM, by versions of weights
"""
