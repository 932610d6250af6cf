"""Requests from the httpx client for programs.

The credentials are for one server, so requests to other servers, including redirects, are rejected before anything is
sent.
"""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import final

import attrs
import httpx

from ..errors import ConnectionFailedError, LimitExceededError
from ._connection import Transport
from .http._httpx_transport import httpx_error, request_of, response_of
from .http._messages import READ_PATIENCE, Headers, Request


def open_http_client(transport: Transport) -> httpx.AsyncClient:
    """Open an httpx client for URLs below the server's URL. The client ignores cookies and the environment."""
    return httpx.AsyncClient(
        transport=_ClusterTransport(transport),
        base_url=transport.server,
        headers={"User-Agent": transport._headers.user_agent},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        timeout=READ_PATIENCE,
        trust_env=False,
    )


@final
class _ClusterTransport(httpx.AsyncBaseTransport):
    """An httpx transport that sends requests to the server of a client.

    Closing the transport does not close the client.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._server = httpx.URL(transport.server)
        self._prefix = self._server.raw_path.rstrip(b"/")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, with retries, and return the last response."""
        sent = await self._request_of(request)
        try:
            body = await self._transport.open(sent, self._transport._retries_of(sent, may_retry=True))
        except (ConnectionFailedError, LimitExceededError) as exc:
            raise httpx_error(exc) from exc
        body.end_turn()  # its reader may keep it open for as long as it wants
        return response_of(body.head, body.receive_some, body.aclose)

    async def _request_of(self, request: httpx.Request) -> Request:
        url, server = request.url, self._server
        if _origin_of(url) != _origin_of(server):
            raise httpx.UnsupportedProtocol(f"requests of this client are for {server}, not for {_shown(url)}")
        path = url.raw_path
        if not (path + b"/").replace(b"?", b"/").startswith(self._prefix + b"/"):
            raise httpx.UnsupportedProtocol(f"requests of this client are below {server}, not for {_shown(url)}")
        sent = await request_of(request, where=f"{request.method} {url.path}")
        impersonation = self._transport._headers.impersonation
        return attrs.evolve(
            sent,
            path=path[len(self._prefix) :].decode("ascii"),
            headers=Headers([*sent.headers.items, *impersonation]),
            has_authorization="authorization" in request.headers,
            read_patience=request.extensions.get("timeout", {}).get("read"),
        )


def _origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"https": 443, "http": 80}.get(url.scheme)


def _shown(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"
