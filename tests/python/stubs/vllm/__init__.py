# SPDX-License-Identifier: Apache-2.0
"""What the adapter uses of vLLM 0.29 to 0.33, in the shape of 0.33."""
