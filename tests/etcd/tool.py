# SPDX-License-Identifier: Apache-2.0
"""tool.py - the store tool with the options of etcd."""
import store_tool


class Tool(store_tool.Tool):
    plugin = "ETCD"
    logs = ("cannot renew the lease", "does not answer, and is tried again")
