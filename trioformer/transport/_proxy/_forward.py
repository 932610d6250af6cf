"""Requests that an HTTP proxy forwards: those to servers without TLS, which need no tunnel."""

from __future__ import annotations

from typing import final

import attrs
import httpx

from ._failure import CREDENTIALS_REQUIRED, rejected
from ._proxy import Proxy


@final
@attrs.frozen
class ForwardedRequests:
    """What such requests have that others do not: the whole URL as their target, and the credentials of the proxy."""

    _proxy: Proxy

    def target(self, netloc: bytes, path: bytes) -> bytes:
        """Return the target of a request for a path, query included, of a server."""
        return b"http://" + netloc + path

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return what the proxy requires."""
        authorization = self._proxy.authorization
        return [] if authorization is None else [(b"Proxy-Authorization", authorization.reveal().encode("ascii"))]

    def check(self, code: int) -> None:
        """Check the code of a response.

        Any other code may be the server's.

        Raises:
            httpx.ProxyError: It is the proxy, which rejects the credentials.
        """
        if code == CREDENTIALS_REQUIRED:
            failure = rejected(self._proxy, code, "")
            raise httpx.ProxyError(str(failure)) from failure
