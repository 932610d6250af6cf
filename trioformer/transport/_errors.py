"""httpx's errors → the library's own: one line with the server, what went wrong, and what to do."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx
import trio

from ..errors import ConnectionFailedError

CONNECTION_ERRORS: Final[tuple[type[Exception], ...]] = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    httpx.CookieConflict,
    OSError,  # ssl.SSLError is one
    trio.BrokenResourceError,
    trio.ClosedResourceError,
)
"""What a transport, httpx's own or another, may raise when no answer comes; nothing of it reaches a caller."""

_LOST: Final = "the connection was lost; try again"

# The first that fits; a class stands before its bases.
_ADVICE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (httpx.ConnectTimeout, "it does not answer; check the address and what lies between, such as a firewall or VPN"),
    (httpx.ReadTimeout, "no answer came in time; it is overloaded, or the network has dropped the connection"),
    (httpx.WriteTimeout, "it stopped reading the request; it is overloaded, or the network has dropped the connection"),
    (httpx.PoolTimeout, "no connection was free in time"),
    (httpx.TimeoutException, "it took too long"),
    (httpx.ConnectError, "cannot connect ({error}); check the address and that the API server runs"),
    (httpx.ReadError, _LOST),
    (httpx.WriteError, _LOST),
    (httpx.CloseError, _LOST),
    (httpx.NetworkError, _LOST),
    # What h11 says of a header that cannot be sent quotes the header, which may be a token.
    (httpx.LocalProtocolError, "the request cannot be sent as HTTP"),
    (httpx.RemoteProtocolError, "it broke off or does not speak HTTP/1.1 ({error}); check that it is an API server"),
    (httpx.ProtocolError, "it does not speak HTTP/1.1; check that it is an API server"),
    (httpx.ProxyError, "the proxy failed ({error})"),
    (httpx.UnsupportedProtocol, "the server's URL must begin with https:// or http://"),
    (httpx.DecodingError, "its answer cannot be decompressed ({error})"),
    (httpx.TooManyRedirects, "it redirects without end; check that it is an API server"),
    (httpx.InvalidURL, "the URL is not valid ({error})"),
    (httpx.TransportError, "the request failed ({error})"),
)


def connection_failed(error: BaseException, server: str) -> ConnectionFailedError:
    """Make the library's error for what httpx, ssl or a socket raised; the caller raises it ``from`` that."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _failed(server, _certificate_advice(cause), permanent=True)
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            return _tls_failed(server, cause)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return _failed(server, "connection refused; check the port and that the API server runs", refused=True)
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return _failed(server, f"its name cannot be resolved ({cause.strerror}); check the name and DNS")
    for kind, advice in _ADVICE:
        if isinstance(error, kind):
            return _failed(server, advice.format(error=str(error) or type(error).__name__))
    return _failed(server, f"{_LOST} ({str(error) or type(error).__name__})")


def _failed(server: str, text: str, *, refused: bool = False, permanent: bool = False) -> ConnectionFailedError:
    return ConnectionFailedError(f"{server}: {text}", refused=refused, permanent=permanent)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it came from, and so on; also through groups, which trio makes when several addresses failed.

    httpcore cuts ``__cause__`` off but keeps the cause as the argument of its own error.
    ``__context__`` is not followed: it may be an error that the caller was just handling.
    """
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        cause = todo.pop()
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            todo += cause.exceptions
        todo += [*cause.args, cause.__cause__]


def _certificate_advice(error: ssl.SSLCertVerificationError) -> str:
    reason = getattr(error, "verify_message", "") or str(error)
    return (
        f"its certificate does not verify ({reason}); "
        "check the certificate authority and the tls-server-name of the configuration"
    )


def _tls_failed(server: str, error: ssl.SSLError) -> ConnectionFailedError:
    # Which of the two it is depends on the version of Python, and on how far the handshake had come.
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _failed(server, "it closed the connection while TLS was being set up; try again")
    reason = getattr(error, "reason", None) or str(error)
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason:
        return _failed(server, "it does not speak TLS; should the address begin with http://?")
    if "ALERT" in reason and any(word in reason for word in ("CERT", "UNKNOWN_CA", "ACCESS_DENIED")):
        return _failed(server, f"it refuses the client certificate ({reason}); check the user's", permanent=True)
    return _failed(server, f"TLS failed ({reason})")
