"""Why a proxy gave no connection to the server, in words that name the proxy and say what to do."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import Final

from ..._certificates import reason_of
from .._errors import ProxyFailedError, causes_of, is_rejection, is_without_tls, verify_problem
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
    causes = list(causes_of(error))
    for cause in causes:
        if isinstance(cause, ProxyFailedError):
            return cause
    failure = _describe(proxy, causes)
    failure.__cause__ = error
    return failure


def _describe(proxy: Proxy, causes: Iterable[BaseException]) -> ProxyFailedError:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            problem = verify_problem(cause)
            text = f"has a certificate that does not verify ({problem}); check the certificate authority and its name"
            return failed(proxy, text, permanent=True)
        if isinstance(cause, ssl.SSLError):
            return _tls_failed(proxy, cause)
        if isinstance(cause, ConnectionRefusedError):
            return failed(proxy, "refuses connections; check its address and that it runs", refused=True)
        if isinstance(cause, socket.gaierror):
            return failed(proxy, f"has a host name that cannot be resolved ({cause.strerror}); check the name and DNS")
    return failed(proxy, "lost the connection; try again")


def _tls_failed(proxy: Proxy, error: ssl.SSLError) -> ProxyFailedError:
    reason = reason_of(error)
    if is_without_tls(reason):
        return failed(proxy, "does not use TLS; check whether its URL should begin with http://", permanent=True)
    if is_rejection(reason):
        return failed(proxy, f"rejected the client certificate ({reason}); check the certificate", permanent=True)
    return failed(proxy, f"failed to do TLS ({reason})")
