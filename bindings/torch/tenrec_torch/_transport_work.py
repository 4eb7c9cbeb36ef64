# SPDX-License-Identifier: Apache-2.0
"""A transfer under way. A thread of Tenrec completes it: there is no loop that polls."""
import threading
from datetime import timedelta

import torch
from torch.distributed import Work
from torch.distributed._transport._work import _validate_timeout


def as_raised(error):
    """An error of a transfer, as programs for torch expect it: a lost peer stays a ConnectionError."""
    if isinstance(error, (OSError, RuntimeError)) or not isinstance(error, Exception):
        return error
    made = RuntimeError(str(error))
    made.__cause__ = error
    return made


class TenrecWork(Work):
    """Its result is []. It is never reset, and several threads may wait for it."""

    def __init__(self, views, timeout):
        super().__init__()
        self.views = views  # their memory is used until the end
        self._limit = timeout  # seconds, of wait()
        self._done = threading.Event()
        self._error = None
        self._lock = threading.Lock()  # guards the next
        self._future = None  # made when it is asked for

    def finish(self, error=None):
        """Completes the transfer, once."""
        self._error = None if error is None else as_raised(error)
        with self._lock:
            self._done.set()
            future = self._future
        if future is not None:
            self._settle(future)

    def _settle(self, future):
        if self._error is None:
            future.set_result([])
        else:
            future.set_exception(self._error if isinstance(self._error, Exception) else RuntimeError(str(self._error)))

    def wait(self, timeout=timedelta(0)):
        """Returns True, or raises the error of the transfer; TimeoutError leaves it under way."""
        seconds = timeout.total_seconds()
        _validate_timeout(seconds)
        if not self._done.wait(seconds or self._limit):
            raise TimeoutError("the transfer has not ended within the limit; it goes on, and its buffers are in use")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self):
        """Returns True also after a failure."""
        return self._done.is_set()

    def is_success(self):
        """Returns True if the bytes have arrived."""
        return self._done.is_set() and self._error is None

    def exception(self):
        """Returns the error; None without one, or before the end."""
        return self._error

    def get_future(self):
        """Returns a torch.futures.Future of []."""
        with self._lock:
            made = self._future is None
            if made:
                self._future = torch.futures.Future()
            settle = made and self._done.is_set()
        if settle:
            self._settle(self._future)
        return self._future

    def result(self):
        """Waits, and returns []."""
        self.wait()
        return []

    def synchronize(self):
        """Waits."""
        self.wait()
