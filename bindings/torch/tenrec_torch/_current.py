# SPDX-License-Identifier: Apache-2.0
"""The agent of this process."""
from torch.distributed.rpc import api

from . import _C


def agent():
    """Returns the current agent; None if there is none, or one of another backend."""
    current = api._get_current_rpc_agent() if api._is_current_rpc_agent_set() else None
    return current if isinstance(current, _C.TenrecAgent) else None
