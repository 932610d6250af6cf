"""The transport of httpx: httpcore's pool of connections, with the sockets and the TLS of this package.

httpx's own transport over this pool makes the pool itself, and cannot be given a network backend.
To replace its pool would mean to give it a pool that verifies nothing first, which it would use if the attribute were
renamed.
This transport uses what httpcore documents, and a name that httpcore removes is an error before there is a connection.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Final, cast, final
from weakref import WeakSet

import httpcore
import httpx
import trio

from ._errors import RetiredConnectionError
from ._health import ServerHealth
from ._httpcore_errors import clear_locals, to_httpx
from ._limits import DEFAULT_LIMITS, Limits
from ._network import _Network

if TYPE_CHECKING:
    from ._proxy._route import Route

MIN_WATCH: Final = 1.1
"""Seconds that a watch has at least before its end is reported: one of less than a second looks refused."""


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

    Attributes:
        is_closed: Whether the client is closed.
        is_retired: Whether other connections have replaced them: none is used for another request.
        has_ended_watches: Whether watches on them were ended on this side.
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
        self._forwarded = None if route is None else route.forwarded
        self.is_closed = False
        self.is_retired = False
        self.has_ended_watches = False
        self._sockets: WeakSet[trio.socket.SocketType] = WeakSet()
        self._lists: WeakSet[trio.socket.SocketType] = WeakSet()
        """Sockets of watches that begin with a list, until these end."""
        self._pool = httpcore.AsyncConnectionPool(
            # Without a context httpcore would use its own for an https:// server, which verifies, too.
            ssl_context=context,
            max_connections=None,
            max_keepalive_connections=None,
            keepalive_expiry=idle_period,
            http1=True,
            http2=False,
            retries=0,
            network_backend=_Backend(_Network(health, limits, route=route, context=context), self),
            socket_options=socket_options,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url, forwarded = request.url, self._forwarded
        target = url.raw_path if forwarded is None else forwarded.target(url, url.raw_path)
        began_at = trio.current_time()
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
        if b"sendInitialEvents=true" in url.query:
            self._lists.add(_socket_of(response))
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response, self, began_at),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        self.close()
        await self._pool.aclose()

    def close(self) -> None:
        """Close every socket, and let none be opened; the pool does not know those that are still connecting."""
        self.is_closed = True
        for sock in list(self._sockets):
            sock.close()

    @property
    def is_empty(self) -> bool:
        """Whether all connections are closed."""
        return all(connection.is_closed() for connection in self._pool.connections)

    def retire(self) -> None:
        """Let no connection be used for another request, and none be opened."""
        self.is_retired = True

    def end_watches(self, *, spares_lists: bool) -> None:
        """Close the connections of watches, which then end without an error; those that begin with a list on demand."""
        self.has_ended_watches = True
        for sock in list(self._sockets):
            if not (spares_lists and sock in self._lists):
                sock.close()

    async def close_idle(self) -> None:
        """Close the connections that are not used; a cancellation takes effect afterwards."""
        with trio.CancelScope(shield=True):
            for connection in self._pool.connections:
                if connection.is_idle():
                    await connection.aclose()


def _socket_of(response: httpcore.Response) -> trio.socket.SocketType:
    return cast("trio.socket.SocketType", response.extensions["network_stream"].get_extra_info("socket"))


@final
class _Backend(httpcore.AsyncNetworkBackend):
    """Opens the connections of a pool, and knows their sockets also before the pool has a connection of them."""

    def __init__(self, network: _Network, connections: Connections) -> None:
        self._network = network
        self._connections = connections

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._network.connect_tcp(
            host, port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )
        if self._connections.is_closed or self._connections.is_retired:
            stream.close()
            why = "the client is closed" if self._connections.is_closed else "the certificates have changed"
            raise httpcore.ConnectError(why)
        self._connections._sockets.add(stream.get_extra_info("socket"))
        return stream

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


@final
class _Body(httpx.AsyncByteStream):
    """The body of a response; not an async generator, which is one layer less for each chunk."""

    def __init__(self, response: httpcore.Response, connections: Connections, began_at: float) -> None:
        self._response = response
        self._connections = connections
        self._began_at = began_at

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Chunks(
            aiter(cast("AsyncIterable[bytes]", self._response.stream)), self._connections, self._began_at + MIN_WATCH
        )

    async def aclose(self) -> None:
        if self._connections._lists:  # another watch may use the connection
            self._connections._lists.discard(_socket_of(self._response))
        await self._response.aclose()
        if self._connections.is_retired:
            await self._connections.close_idle()


@final
class _Chunks(AsyncIterator[bytes]):
    __slots__ = ("_chunks", "_connections", "_ends_at")

    def __init__(self, chunks: AsyncIterator[bytes], connections: Connections, ends_at: float) -> None:
        self._chunks = chunks
        self._connections = connections
        self._ends_at = ends_at

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            raise
        except BaseException as exc:
            clear_locals(exc)
            error = to_httpx(exc)
            if error is None:
                raise
            if not self._connections.has_ended_watches:
                raise error from exc
        await trio.sleep_until(self._ends_at)
        raise RetiredConnectionError
