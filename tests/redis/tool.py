# SPDX-License-Identifier: Apache-2.0
"""tool.py - the store tool with the options of redis."""
import store_tool


class Tool(store_tool.Tool):
    plugin = "REDIS"
