"""Translate failures to one-line messages that name the server, the failure and the fix."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, TypeVar

import trio

from .._certificates import reason_of
from .._text import quoted
from ..errors import ConnectionFailedError, LimitExceededError, ProxyError
from ..kubeconfig import ClusterConfig
from . import _failures as failures
from ._limits import limit_error

E = TypeVar("E", bound=BaseException)

CONNECTION_ERRORS: Final[tuple[type[Exception], ...]] = (
    failures.TransportError,
    OSError,  # ssl.SSLError is one
    UnicodeError,  # of a host name
    trio.BrokenResourceError,
    trio.ClosedResourceError,
)
"""The exceptions that a connection may raise if a request fails; callers never see these."""


class SilentConnectionError(Exception):
    """The reason for closing a silent connection.

    The read from this connection fails with an error whose cause is this exception.

    Attributes:
        server_failed: Whether the server did not respond on another connection either.
    """

    def __init__(self, text: str, *, server_failed: bool) -> None:
        super().__init__(text)
        self.server_failed: bool = server_failed


class ProxyFailedError(Exception):
    """The reason why a proxy did not connect to the server. It is a cause of the request's error.

    Attributes:
        refused: Whether no program is listening at the address of the proxy.
        permanent: Whether a retry cannot succeed.
    """

    def __init__(self, text: str, *, refused: bool = False, permanent: bool = False) -> None:
        super().__init__(text)
        self.refused = refused
        self.permanent = permanent


_LOST: Final = "the connection was lost; try again"
_SLOW: Final = "the server is overloaded, or the connection is lost"

# The first match counts, so a class comes before its bases.
_ADVICE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (failures.ConnectTimeout, "timeout while connecting; check the address, and firewalls or a VPN on the route"),
    (failures.WriteTimeout, f"timeout while sending the request; {_SLOW}"),
    (failures.TimeoutException, f"timeout while waiting for the response; {_SLOW}"),
    (failures.ConnectError, "cannot connect ({error}); check the address and that the API server runs"),
    (failures.NetworkError, _LOST),
    (failures.EarlyEndError, "{error}; try again"),  # the server may be restarting
    (failures.ProtocolError, "incomplete or invalid HTTP/1.1 response ({error}); check that it is an API server"),
    (failures.ProxyError, "the proxy failed ({error})"),
    (failures.DecodingError, "the response cannot be decompressed ({error})"),
    (failures.InvalidURL, "the URL is not valid ({error})"),
    (failures.TransportError, "the request failed ({error})"),
)


class InvalidResponseError(failures.RemoteProtocolError):
    """The received bytes are not an HTTP/1.1 response. The text of the error does not quote the bytes."""


class TooLongHeadError(InvalidResponseError):
    """The head of a response or the trailers of a body are longer than ``Limits.header_bytes``."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what} is too long")
        self.limit = limit


def _remove_quotes(causes: Iterable[BaseException]) -> None:
    """Remove quoted parts of a request or a response from the protocol errors of a caller's transport.

    The protocol errors of httpx, httpcore and h11 have the same names, and their frames contain the received bytes.
    """
    for cause in causes:
        if type(cause).__name__ in ("ProtocolError", "RemoteProtocolError", "LocalProtocolError"):
            cause.args = ("the framing is not valid",)
            cause.__traceback__ = cause.__cause__ = cause.__context__ = None


def server_text(config: ClusterConfig) -> str:
    """Return the server and the source of its configuration, for error messages.

    A configuration that was created in code has no source.
    """
    if config.source == "code":
        return config.server
    context = "" if config.context is None else f"context {config.context} of "
    return f"{config.server} ({context}{config.source})"


def credential_text(config: ClusterConfig) -> str:
    """Describe the kind of credential that client-go would use, without secrets, for authentication errors."""
    found: list[str] = []
    if config.token_file is not None:
        found.append(f"token file {config.token_file}")
    elif config.token is not None:
        found.append("token")
    elif config.username is not None:
        found.append(f"user name {quoted(config.username)} and password")
    if config.client_certificate_file is not None:
        found.append(f"client certificate {config.client_certificate_file}")
    elif config.client_certificate_data is not None:
        found.append("client certificate")
    if not found and config.exec is not None:
        found.append(f"plugin {quoted(config.exec.command)}")
    return " and ".join(found) or "none, so the user is anonymous"


def connection_failed(error: BaseException, server: str, where: str = "") -> ConnectionFailedError | LimitExceededError:
    """Translate a failure, or an exception from ssl or a socket. The caller raises the result ``from`` that exception.

    Quoted parts of the response are removed from the exception.
    The text begins with the operation (``where``) and the server, which is described as in :func:`server_text`.
    """
    causes = list(causes_of(error))
    _remove_quotes(causes)

    def first(kind: type[E]) -> E | None:
        return next((cause for cause in causes if isinstance(cause, kind)), None)

    if head := first(TooLongHeadError):
        return limit_error(where or server, "header_bytes", head.limit, str(head))
    server = f"{where}: {server}" if where else server
    if silent := first(SilentConnectionError):
        return _failed(server, str(silent))
    if proxy := first(ProxyFailedError):
        return ProxyError(f"{server}: {proxy}", refused=proxy.refused, permanent=proxy.permanent)
    if refused := first(ssl.SSLCertVerificationError):
        advice = "check the certificate authority and the tls-server-name of the configuration"
        text = f"the server's certificate does not verify ({verify_problem(refused)}); {advice}"
        return _failed(server, text, permanent=True)
    if tls := first(ssl.SSLError):
        return _tls_failed(server, tls)
    if first(ConnectionRefusedError):
        return _failed(server, "connection refused; check the port and that the API server runs", refused=True)
    if unknown := first(socket.gaierror):
        return _failed(server, f"the host name cannot be resolved ({unknown.strerror}); check the name and DNS")
    if isinstance(error, UnicodeError):
        error.__traceback__ = error.__context__ = None
        return _failed(server, "a host name is not valid; check the URL, and that it is an API server")
    for kind, advice in _ADVICE:
        if isinstance(error, kind):
            return _failed(server, advice.format(error=str(error) or type(error).__name__))
    return _failed(server, f"{_LOST} ({str(error) or type(error).__name__})")


def is_about_certificates(error: BaseException) -> bool:
    """Return whether one side of a TLS handshake has rejected the other's certificate."""
    return any(
        isinstance(cause, ssl.SSLCertVerificationError)
        or (isinstance(cause, ssl.SSLError) and is_rejection(reason_of(cause)))
        for cause in causes_of(error)
    )


def is_rejection(reason: str) -> bool:
    """Return whether the reason of an ``ssl.SSLError`` shows that the peer has rejected a client certificate."""
    return "ALERT" in reason and any(word in reason for word in ("CERT", "UNKNOWN_CA", "ACCESS_DENIED"))


def is_without_tls(reason: str) -> bool:
    """Return whether the reason of an ``ssl.SSLError`` shows that the peer does not use TLS."""
    return "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason


def verify_problem(error: ssl.SSLCertVerificationError) -> str:
    """Return the reason why the verification of a certificate failed."""
    return getattr(error, "verify_message", "") or str(error)


def shows_failing_server(error: BaseException) -> bool:
    """Return whether an error shows that the server is unreachable, rather than that one connection was closed."""
    causes = list(causes_of(error))
    if any(isinstance(cause, TooLongHeadError) for cause in causes):
        return False
    return all(cause.server_failed for cause in causes if isinstance(cause, SilentConnectionError))


def _failed(server: str, text: str, *, refused: bool = False, permanent: bool = False) -> ConnectionFailedError:
    return ConnectionFailedError(f"{server}: {text}", refused=refused, permanent=permanent)


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, including the errors in groups.

    In a caller's transport, httpcore drops ``__cause__`` but passes the cause as an argument to its own error.
    ``__context__`` is not followed, because it may be an error that the caller is handling.
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


def _tls_failed(server: str, error: ssl.SSLError) -> ConnectionFailedError:
    # Which of the two it is depends on the version of Python and the state of the handshake.
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _failed(server, "the server closed the connection during the TLS handshake; try again")
    reason = reason_of(error)
    if is_without_tls(reason):
        return _failed(server, "the server does not use TLS; check whether the URL should begin with http://")
    if is_rejection(reason):
        text = f"the server rejected the client certificate ({reason}); check the user's certificate"
        return _failed(server, text, permanent=True)
    return _failed(server, f"TLS failed ({reason})")


def clear_locals(error: BaseException) -> None:
    """Clear the local variables in frames of this package and of h11, because they contain requests with credentials.

    This applies to the tracebacks of an error, its causes and its contexts. The tracebacks still show the lines that
    failed.
    The frames of other modules are left unchanged, because such a frame may belong to a suspended coroutine, and
    clearing the frame would end the coroutine.
    """
    cleared = ("h11.", "trioformer.transport.http.", "trioformer.transport._proxy.")
    seen: set[int] = set()  # errors may refer to each other
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        traceback = each.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_globals.get("__name__", "").startswith(cleared):
                with suppress(RuntimeError):  # it is still running
                    traceback.tb_frame.clear()
            traceback = traceback.tb_next
        pending += (each.__cause__, each.__context__)
