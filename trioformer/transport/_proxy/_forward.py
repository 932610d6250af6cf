"""Requests that an HTTP proxy forwards: those to servers without TLS, which need no tunnel."""

from __future__ import annotations

from typing import TypeAlias, final

import attrs
import httpx

from ._failure import CREDENTIALS_REQUIRED, rejected
from ._proxy import Proxy

_Headers: TypeAlias = list[tuple[bytes, bytes]]


@final
@attrs.frozen
class ForwardedRequests:
    """What such requests have that others do not: the whole URL as their target, and the credentials of the proxy."""

    _proxy: Proxy

    def target(self, url: httpx.URL, path: bytes) -> bytes:
        """Return the target of a request for a path, query included, of the server of a URL."""
        return b"http://" + url.netloc + path

    def headers(self, headers: _Headers) -> _Headers:
        """Add what the proxy requires."""
        authorization = self._proxy.authorization
        if authorization is None:
            return headers
        return [*headers, (b"Proxy-Authorization", authorization.reveal().encode("ascii"))]

    def check(self, code: int) -> None:
        """Check the code of a response.

        Any other code may be the server's.

        Raises:
            httpx.ProxyError: It is the proxy, which rejects the credentials.
        """
        if code == CREDENTIALS_REQUIRED:
            failure = rejected(self._proxy, code, "")
            raise httpx.ProxyError(str(failure)) from failure
