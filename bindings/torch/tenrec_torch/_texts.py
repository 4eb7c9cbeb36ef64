# SPDX-License-Identifier: Apache-2.0
"""Texts of exceptions that torch cannot carry.

The caller of a function reads the text of its exception as UTF-8, then as escapes of Python, then as a text of C:
a lone surrogate, as os.fsdecode makes of a file name, is an error there, and a NUL the end. Both arrive escaped.
"""
import functools
import re

from torch.distributed.rpc import internal

from . import _current

# Pairs of backslashes first: the second does not begin an escape.
_ESCAPES = re.compile(r"(\\\\)|\\(x00|u[dD][89a-fA-F][0-9a-fA-F]{2})")


def _clean(text):
    plain = text.replace("\0", r"\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    return _ESCAPES.sub(lambda found: found[1] or "\\\\" + found[2], plain)


def _with_clean_texts(run):
    @functools.wraps(run)
    def run_function(python_udf):
        result = run(python_udf)
        if isinstance(result, internal.RemoteException) and _current.agent():
            return result._replace(msg=_clean(result.msg))
        return result
    return run_function


def register():
    internal._run_function = _with_clean_texts(internal._run_function)
