# SPDX-License-Identifier: Apache-2.0
"""What the adapter uses of Ray 2.60, for machines without it."""
from . import experimental, exceptions, util  # noqa: F401
