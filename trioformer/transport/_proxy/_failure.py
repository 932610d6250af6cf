"""Why a proxy gave no connection to the server, in words that name the proxy and say what to do."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Final

from .._errors import ProxyFailedError
from ._proxy import Proxy

CREDENTIALS_REQUIRED: Final = 407
_FORBIDDEN: Final = 403
_FIRST_SERVER_ERROR: Final = 500


def rejected(proxy: Proxy, code: int, target: str) -> ProxyFailedError:
    """Make the error for a proxy that responds with a code instead of a connection."""
    if code == CREDENTIALS_REQUIRED:
        return credentials_rejected(proxy, "HTTP 407")
    if code == _FORBIDDEN:
        return not_permitted(proxy, target, "HTTP 403")
    if code < _FIRST_SERVER_ERROR:
        return failed(proxy, f"rejected CONNECT {target} (HTTP {code}); check that it is a proxy", permanent=True)
    return failed(proxy, f"cannot connect to {target} (HTTP {code}); check that it can reach the server")


def not_permitted(proxy: Proxy, target: str, answer: str) -> ProxyFailedError:
    """Make the error for a proxy whose rules exclude the server."""
    advice = ", or add the host to NO_PROXY" if proxy.is_from_environment else ""
    text = f"does not permit connections to {target} ({answer}); check its rules{advice}"
    return failed(proxy, text, permanent=True)


def credentials_rejected(proxy: Proxy, answer: str) -> ProxyFailedError:
    """Make the error for a proxy that does not accept its user, or requires one."""
    if proxy.user is None:
        text = f"requires a user and a password ({answer}); write them into its URL: {proxy.scheme}://user:password@…"
    else:
        text = f"rejected the user and password of its URL ({answer}); check them"
    return failed(proxy, text, permanent=True)


def failed(proxy: Proxy, text: str, *, refused: bool = False, permanent: bool = False) -> ProxyFailedError:
    """Make an error about a proxy."""
    return ProxyFailedError(f"the proxy {proxy} {text}", refused=refused, permanent=permanent)


def failure_of(proxy: Proxy, error: BaseException) -> ProxyFailedError:
    """Make the error for an exception that was raised while a proxy was connected to, or asked for a connection.

    The exception is its cause: httpcore drops that of its own errors.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ProxyFailedError):
            return cause
    failure = _describe(proxy, causes)
    failure.__cause__ = error
    return failure


def _describe(proxy: Proxy, causes: Iterable[BaseException]) -> ProxyFailedError:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = getattr(cause, "verify_message", "") or str(cause)
            text = f"has a certificate that does not verify ({reason}); check the certificate authority and its name"
            return failed(proxy, text, permanent=True)
        if isinstance(cause, ssl.SSLError):
            return _tls_failed(proxy, cause)
        if isinstance(cause, ConnectionRefusedError):
            return failed(proxy, "refuses connections; check its address and that it runs", refused=True)
        if isinstance(cause, socket.gaierror):
            return failed(proxy, f"has a host name that cannot be resolved ({cause.strerror}); check the name and DNS")
    return failed(proxy, "lost the connection; try again")


def _tls_failed(proxy: Proxy, error: ssl.SSLError) -> ProxyFailedError:
    reason = getattr(error, "reason", None) or str(error)
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason:
        return failed(proxy, "does not use TLS; check whether its URL should begin with http://", permanent=True)
    is_rejection = "ALERT" in reason and any(word in reason for word in ("CERT", "UNKNOWN_CA", "ACCESS_DENIED"))
    if is_rejection:
        return failed(proxy, f"rejected the client certificate ({reason}); check the certificate", permanent=True)
    return failed(proxy, f"failed to do TLS ({reason})")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes; trio raises a group if none of several addresses can be connected to."""
    yield error
    inner: list[object] = [*error.args, error.__cause__]
    if isinstance(error, BaseExceptionGroup):
        inner += error.exceptions
    for each in inner:
        if isinstance(each, BaseException):
            yield from _causes(each)
