# SPDX-License-Identifier: Apache-2.0
"""callbacks.py - the thread on which callbacks of futures run that no asyncio loop runs."""
from __future__ import annotations

import os
import select
import threading
import weakref

from . import _core


def _run(worker: weakref.ref[_core.Worker], fd: int, end: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(end, select.POLLIN)
    while not any(ready == end for ready, _ in poll.poll()):
        here = worker()
        if here:
            here._dispatch()  # pylint: disable=protected-access
        del here  # the wait must not keep the worker
    os.close(fd)
    os.close(end)


class Callbacks:
    """Runs the callbacks of a worker until it is stopped, or collected.

    fd  readable when the worker has callbacks to run
    """

    def __init__(self, worker: _core.Worker, fd: int) -> None:
        # The thread has a descriptor of its own: the worker's may be closed, and used again, before the thread looks.
        end, told = os.pipe()
        self.stop = weakref.finalize(self, _stop, told, os.getpid())
        self.stop.atexit = False
        threading.Thread(target=_run, name="tenrec-callbacks", args=(weakref.ref(worker), os.dup(fd), end), daemon=True).start()


def _stop(told: int, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has no such thread, and shares the pipe with that of its parent
        os.write(told, b"x")
    os.close(told)
