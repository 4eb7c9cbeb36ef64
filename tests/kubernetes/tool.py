# SPDX-License-Identifier: Apache-2.0
"""tool.py - the store tool with the options of kubernetes."""
import store_tool


class Tool(store_tool.Tool):
    plugin = "KUBERNETES"
    logs = ("cannot renew the lease", "does not answer, and is tried again")
