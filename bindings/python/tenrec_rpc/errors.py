# SPDX-License-Identifier: Apache-2.0
"""errors.py - each failure of Tenrec is an Error, with its status and, where Python has a fitting
built-in exception, of that class too: `except TimeoutError` and `except tenrec.Error` both work.
"""
from __future__ import annotations

import builtins
import concurrent.futures
import re
import traceback
from typing import Any

from ._places import places_of, split_places, to_note, with_places


class Error(Exception):
    """A failure of Tenrec, or of a function that another worker called.

    A registered function that raises an Error ends the call of its caller with the same status.
    Any other exception becomes EREMOTE there.
    """

    #: Name of the status, such as "ETIMEDOUT"; docs/errors.md lists them.
    status: str = "EREMOTE"
    #: Name of the worker that failed, or "".
    worker: str = ""
    #: True if the called function raised it; False for a failure on the way.
    from_callee: bool = False
    #: Text without the status.
    text: str
    #: Where the called function failed, the innermost place first; also a note, which a traceback of Python shows.
    places: tuple[str, ...] = ()

    def __init__(self, text: str, *, status: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        if status is not None:
            self.status = status

    def __str__(self) -> str:
        return f"{self.status}: {self.text}"


class TimeoutError(Error, builtins.TimeoutError):  # pylint: disable=redefined-builtin
    """No answer before the deadline."""

    status = "ETIMEDOUT"


class ConnectionError(Error, builtins.ConnectionError):  # pylint: disable=redefined-builtin
    """The connection to a worker broke, or could not be made."""

    status = "EPEER_LOST"


class PermissionError(Error, builtins.PermissionError):  # pylint: disable=redefined-builtin
    """No proof of membership, or a rule forbids the call."""

    status = "EPERM"


class InvalidError(Error, ValueError):
    """An argument or the configuration is wrong."""

    status = "EINVAL"


class NotFoundError(Error, LookupError):
    """No worker, function, key or value of that name."""

    status = "ENOTFOUND"


class StaleError(Error):
    """A region, or a version of weights, that was ended or replaced."""

    status = "ESTALE"


class ExistsError(Error):
    """Such as a version of weights that is not newer than the newest."""

    status = "EEXIST"


class UnsupportedError(Error, NotImplementedError):
    """The backend or this build cannot do that, such as send an object that does not travel."""

    status = "EUNSUPPORTED"


class CanceledError(Error, concurrent.futures.CancelledError):
    """Canceled by the caller or by a shutdown."""

    status = "ECANCELED"


class RemoteError(Error, RuntimeError):
    """The called function failed, and gave no status: its exception was not an Error."""

    status = "EREMOTE"


class NoMemoryError(Error, MemoryError):
    """Out of memory."""

    status = "ENOMEM"


class SystemError(Error, OSError):  # pylint: disable=redefined-builtin
    """The operating system refused; `errno` says why."""

    status = "EOS"


_CLASSES: dict[str, type[Error]] = {
    "ETIMEDOUT": TimeoutError,
    "EPEER_LOST": ConnectionError,
    "ECONNECT": ConnectionError,
    "EPERM": PermissionError,
    "EINVAL": InvalidError,
    "ECONFIG": InvalidError,
    "EPEER_UNKNOWN": NotFoundError,
    "ENOFUNCTION": NotFoundError,
    "ENOTFOUND": NotFoundError,
    "ESTALE": StaleError,
    "EEXIST": ExistsError,
    "EUNSUPPORTED": UnsupportedError,
    "ECANCELED": CanceledError,
    "EREMOTE": RemoteError,
    "ENOMEM": NoMemoryError,
    "EOS": SystemError,
}


#: Not restored: they need more than a text, or end loops and coroutines of the caller.
_UNFIT = (StopIteration, StopAsyncIteration, UnicodeError, BaseExceptionGroup)
_restored: dict[str, type[Error]] = {}


def _remote_class(text: str) -> type[Error]:
    """The class for an exception of a function, whose text begins with the name of its class: of the built-in class, too."""
    named = re.match(r"(\w+)(: | \(|$)", text)
    built_in = getattr(builtins, named[1], None) if named else None
    if not isinstance(built_in, type) or not issubclass(built_in, Exception) or issubclass(built_in, _UNFIT) or issubclass(RemoteError, built_in):
        return RemoteError
    name = built_in.__name__
    if name not in _restored:
        def reduce(self: Error) -> Any:
            return make, (self.status, self.text, self.worker, self.from_callee, 0), self.__dict__
        _restored[name] = type(name, (RemoteError, built_in), {"__module__": __name__, "__reduce__": reduce,
                                                               "__doc__": f"A {name} of the called function."})
    return _restored[name]


def make(status: str, text: str, worker: str, from_callee: bool, errno: int) -> Error:
    """Makes the exception of an error of the library."""
    raised = status == "EREMOTE" and from_callee
    kind = _remote_class(text) if raised else _CLASSES.get(status, Error)
    message, places = split_places(text) if raised else (text, [])
    made = kind(f"{message} ({places[0]})" if places else text, status=status)
    if places:
        made.places = tuple(places)
        made.add_note(to_note(worker, places))
    made.worker = worker
    made.from_callee = from_callee
    if errno and isinstance(made, OSError):
        made.errno = errno
    return made


def _plain(text: object) -> str:
    """Any text as one that travels: no zero character, no half of a surrogate pair, which is what
    os.fsdecode makes of file names."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def describe(error: BaseException) -> tuple[str, str]:
    """Returns status and text for the caller of a function that raised `error`."""
    if isinstance(error, Error):
        if not error.places:
            return _plain(error.status), _plain(error.text)
        message, places = split_places(error.text)[0], [*error.places, *places_of(error)]  # it has passed another worker
        return _plain(error.status), with_places(_plain(message), [_plain(place) for place in places])
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return "EREMOTE", with_places(_plain(text), [_plain(place) for place in places_of(error)])
