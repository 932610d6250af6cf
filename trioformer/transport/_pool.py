"""The transport of httpx: httpcore's pool of connections, with the sockets and the TLS of this package.

httpx's own transport over this pool makes the pool itself, and cannot be given a network backend.
To replace its pool would mean to give it a pool that verifies nothing first, which it would use if the attribute were
renamed.
This transport uses what httpcore documents, and a name that httpcore removes is an error before there is a connection.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, AsyncIterator
from typing import cast, final

import httpcore
import httpx

from ._health import ServerHealth
from ._httpcore_errors import clear_locals, to_httpx
from ._limits import DEFAULT_LIMITS, Limits
from ._network import _Network
from ._proxy import ForwardedRequests, Route


@final
class Connections(httpx.AsyncBaseTransport):
    """A transport of httpx over a pool of connections: HTTP/1.1, without limit.

    Args:
        context: The TLS settings; None for plain HTTP.
        socket_options: Options of every socket.
        idle_period: Seconds before an unused connection is closed.
        health: Verifies the server when a connection is silent; None if it never is for long.
        limits: Limits of what the server may send.
        route: The proxy; None for direct connections.
    """

    def __init__(
        self,
        context: ssl.SSLContext | None,
        *,
        socket_options: list[tuple[int, int, int]],
        idle_period: float,
        health: ServerHealth | None = None,
        limits: Limits = DEFAULT_LIMITS,
        route: Route | None = None,
    ) -> None:
        self._forwarded = ForwardedRequests(route.proxy) if route is not None and route.is_forwarded else None
        self._pool = httpcore.AsyncConnectionPool(
            # Without a context httpcore would use its own for an https:// server, which verifies, too.
            ssl_context=context,
            max_connections=None,
            max_keepalive_connections=None,
            keepalive_expiry=idle_period,
            http1=True,
            http2=False,
            retries=0,
            network_backend=_Network(health, limits, route=route, context=context),
            socket_options=socket_options,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url, forwarded = request.url, self._forwarded
        target = url.raw_path if forwarded is None else forwarded.target(url, url.raw_path)
        try:
            response = await self._pool.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=target),
                    headers=request.headers.raw if forwarded is None else forwarded.headers(request.headers.raw),
                    content=cast("httpx.AsyncByteStream", request.stream),
                    extensions=request.extensions,
                )
            )
            if forwarded is not None:
                try:
                    forwarded.check(response.status)
                except BaseException:
                    await response.aclose()
                    raise
        except BaseException as exc:
            clear_locals(exc)
            if (error := to_httpx(exc)) is not None:
                raise error from exc
            raise
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


@final
class _Body(httpx.AsyncByteStream):
    """The body of a response; not an async generator, which is one layer less for each chunk."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Chunks(aiter(cast("AsyncIterable[bytes]", self._response.stream)))

    async def aclose(self) -> None:
        await self._response.aclose()


@final
class _Chunks(AsyncIterator[bytes]):
    __slots__ = ("_chunks",)

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            raise
        except BaseException as exc:
            clear_locals(exc)
            if (error := to_httpx(exc)) is not None:
                raise error from exc
            raise
