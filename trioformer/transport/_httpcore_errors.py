"""The errors of httpcore and h11 as errors of httpx, without the local variables of their frames.

Tracebacks may print local variables, and httpcore and h11 have the request with its ``Authorization`` header in theirs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import h11
import httpcore
import httpx

_ERRORS: Final[dict[type[Exception], type[httpx.TransportError]]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.TimeoutException: httpx.TimeoutException,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.NetworkError: httpx.NetworkError,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
    httpcore.ProtocolError: httpx.ProtocolError,
    httpcore.ProxyError: httpx.ProxyError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable: httpx.NetworkError,  # the pool handles it
    h11.LocalProtocolError: httpx.LocalProtocolError,
    h11.RemoteProtocolError: httpx.RemoteProtocolError,
    h11.ProtocolError: httpx.ProtocolError,
}
_CLEARED: Final = (
    "httpcore.",
    "h11.",
    f"{__package__}._http11",
    f"{__package__}._network",
    f"{__package__}._probe_connection",
    f"{__package__}._proxy",
)


def to_httpx(error: BaseException) -> httpx.TransportError | None:
    """Make httpx's error of an error of httpcore or h11; None for every other exception."""
    found = next((_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS), None)
    return None if found is None else found(str(error))


def clear_locals(error: BaseException) -> None:
    """Clear the local variables of the frames of httpcore, h11 and this package's network modules.

    Applies to the tracebacks of an error, its causes and contexts; which lines failed can still be seen.
    Frames of other modules may belong to an exception that the caller is handling: to clear the frame of a suspended
    coroutine would end it.
    """
    seen: set[int] = set()  # errors may refer to each other
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        traceback = each.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_globals.get("__name__", "").startswith(_CLEARED):
                with suppress(RuntimeError):  # it is still running
                    traceback.tb_frame.clear()
            traceback = traceback.tb_next
        pending += (each.__cause__, each.__context__)
