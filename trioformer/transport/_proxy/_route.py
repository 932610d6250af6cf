"""The interface between a proxy and the rest of the transport."""

from __future__ import annotations

import socket
import ssl
from typing import final

import attrs

from ..._certificates import reason_of
from .. import _failures as failures
from .._errors import ProxyFailedError, causes_of, is_rejection, is_without_tls, verify_problem
from ._proxy import CREDENTIALS_REQUIRED, Proxy


@final
@attrs.frozen
class ForwardedRequests:
    """The additions to requests without TLS, which an HTTP proxy forwards to the server.

    The target of such a request is a URL.
    """

    _proxy: Proxy

    def target(self, netloc: bytes, path: bytes) -> bytes:
        """Return the target of a request for a server's path, including the query."""
        return b"http://" + netloc + path

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that the proxy requires."""
        authorization = self._proxy.authorization
        return [] if authorization is None else [(b"Proxy-Authorization", authorization.reveal().encode("ascii"))]

    def check(self, code: int) -> None:
        """Raise an error if the status code shows that the proxy rejected the request.

        All other status codes may come from the server.

        Raises:
            failures.ProxyError: The proxy rejects the credentials.
        """
        if code == CREDENTIALS_REQUIRED:
            failure = self._proxy.rejected(code, "")
            raise failures.ProxyError(str(failure)) from failure


@final
@attrs.frozen
class Route:
    """The route to a server through a proxy."""

    proxy: Proxy
    """The proxy."""
    is_forwarded: bool
    """Whether the proxy forwards requests with the server's URL as their target, instead of opening a tunnel."""

    @property
    def forwarded(self) -> ForwardedRequests | None:
        """The additions to forwarded requests, or None if requests are not forwarded."""
        return ForwardedRequests(self.proxy) if self.is_forwarded else None

    def timed_out(self) -> ProxyFailedError:
        """Return the error for a proxy that does not accept a connection or does not complete its TLS handshake."""
        return self.proxy.failed("did not accept the connection in time; check its address, and firewalls on the route")

    def failure_of(self, error: BaseException) -> ProxyFailedError:
        """Return the error for an exception that was raised while a connection was being opened.

        The exception becomes the cause of the error.
        """
        failure = self._describe(error)
        if failure is not error and failure.__cause__ is None:
            failure.__cause__ = error
        return failure

    def _describe(self, error: BaseException) -> ProxyFailedError:
        failed = self.proxy.failed
        for cause in causes_of(error):
            match cause:
                case ProxyFailedError():
                    return cause
                case ssl.SSLCertVerificationError():
                    problem = verify_problem(cause)
                    text = f"has a certificate that does not verify ({problem}); check the authority and its name"
                    return failed(text, permanent=True)
                case ssl.SSLError():
                    reason = reason_of(cause)
                    hint = "; check whether its URL should begin with http://" if is_without_tls(reason) else ""
                    return failed(
                        f"failed the TLS handshake ({reason}){hint}", permanent=bool(hint) or is_rejection(reason)
                    )
                case ConnectionRefusedError():
                    return failed("refuses connections; check its address and that it runs", refused=True)
                case socket.gaierror():
                    return failed(f"has a host name that cannot be resolved ({cause.strerror}); check the name and DNS")
        return failed("lost the connection; try again")
