"""How the connections and requests to one server go through a proxy: all that the rest of the transport needs of it."""

from __future__ import annotations

import socket
import ssl
from typing import final

import attrs
import httpx

from ..._certificates import reason_of
from .._errors import ProxyFailedError, causes_of, is_rejection, is_without_tls, verify_problem
from ._proxy import CREDENTIALS_REQUIRED, Proxy


@final
@attrs.frozen
class ForwardedRequests:
    """Requests that an HTTP proxy forwards to servers without TLS: their target is a URL."""

    _proxy: Proxy

    def target(self, netloc: bytes, path: bytes) -> bytes:
        """Return the target of a request for a path, query included, of a server."""
        return b"http://" + netloc + path

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return what the proxy requires."""
        authorization = self._proxy.authorization
        return [] if authorization is None else [(b"Proxy-Authorization", authorization.reveal().encode("ascii"))]

    def check(self, code: int) -> None:
        """Check the code of a response; any other code may be the server's.

        Raises:
            httpx.ProxyError: It is the proxy, which rejects the credentials.
        """
        if code == CREDENTIALS_REQUIRED:
            failure = self._proxy.rejected(code, "")
            raise httpx.ProxyError(str(failure)) from failure


@final
@attrs.frozen
class Route:
    """How the connections to one server reach it, if not directly."""

    proxy: Proxy
    """The proxy."""
    is_forwarded: bool
    """Whether requests have the URL of the server as their target, instead of a tunnel to it."""

    @property
    def forwarded(self) -> ForwardedRequests | None:
        """What such requests have that others do not."""
        return ForwardedRequests(self.proxy) if self.is_forwarded else None

    def timed_out(self) -> ProxyFailedError:
        """Make the error for a proxy that does not accept a connection, or does not end its TLS handshake."""
        return self.proxy.failed("did not connect in time; check its address, and firewalls on the route")

    def failure_of(self, error: BaseException) -> ProxyFailedError:
        """Make the error for an exception that was raised while a connection was opened; that is its cause."""
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
                    return failed(f"failed to do TLS ({reason}){hint}", permanent=bool(hint) or is_rejection(reason))
                case ConnectionRefusedError():
                    return failed("refuses connections; check its address and that it runs", refused=True)
                case socket.gaierror():
                    return failed(f"has a host name that cannot be resolved ({cause.strerror}); check the name and DNS")
        return failed("lost the connection; try again")
