"""The transport of httpx: a pool of connections, with the sockets and the TLS of this package.

The pool is as small as it can be, because the number of connections has no limit: a request takes the connection that
was used last, or opens one.  Those that were used before it expire in the meantime.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, cast, final
from weakref import WeakSet

import httpcore
import httpx
import trio

from ._errors import RetiredConnectionError
from ._health import ServerHealth
from ._http11 import Head, Http11Connection
from ._httpcore_errors import clear_locals, to_httpx
from ._limits import DEFAULT_LIMITS, Limits
from ._network import _Network
from ._response import SWITCHED
from ._tls import _client_context
from ._upgraded_stream import UpgradedStream

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
        self._context = context
        self._socket_options = socket_options
        self._idle_period = idle_period
        self._network = _Network(health, limits, route=route, context=context)
        self._idle: deque[Http11Connection] = deque()
        """Those that no request uses, the one that was used last at the end."""
        self._open: set[Http11Connection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        forwarded = self._forwarded
        began_at = trio.current_time()
        try:
            connection, head = await self._exchange(request)
            if forwarded is not None:
                try:
                    forwarded.check(head.code)
                except BaseException:
                    self._close_connection(connection)
                    raise
        except BaseException as exc:
            clear_locals(exc)
            if (error := to_httpx(exc)) is not None:
                raise error from exc
            raise
        if b"sendInitialEvents=true" in (request.extensions.get("target") or request.url.query):
            self._lists.add(_socket_of(connection))
        if head.code == SWITCHED:
            stream = UpgradedStream(connection, connection.received_after_head())
            return httpx.Response(
                head.code,
                headers=head.headers,
                stream=_Upgraded(connection, self),
                extensions={"http_version": head.version, "reason_phrase": head.reason, "network_stream": stream},
            )
        return httpx.Response(
            head.code,
            headers=head.headers,
            stream=_Body(connection, self, began_at, request.extensions["timeout"].get("read")),
            extensions={
                "http_version": head.version,
                "reason_phrase": head.reason,
                "network_stream": connection.stream,
            },
        )

    async def _exchange(self, request: httpx.Request) -> tuple[Http11Connection, Head]:
        """Send a request on a connection that is idle, or else on a new one, and receive the head of its response."""
        while True:
            connection = self._take_idle() or await self._connect(request)
            try:
                return connection, await connection.request(request, self._forwarded)
            except httpcore.ConnectionNotAvailable:
                self._close_connection(connection)
            except BaseException:
                self._close_connection(connection)
                raise

    def _take_idle(self) -> Http11Connection | None:
        """Take the connection that was used last, and close those that have expired."""
        idle = self._idle
        while idle and idle[0].has_expired:
            self._close_connection(idle.popleft())
        while idle:
            connection = idle.pop()
            if not connection.has_expired:
                return connection
            self._close_connection(connection)
        return None

    async def _connect(self, request: httpx.Request) -> Http11Connection:
        url, patience = request.url, request.extensions["timeout"].get("connect")
        if url.scheme not in ("http", "https"):
            raise httpcore.UnsupportedProtocol(f"Request URL has an unsupported protocol '{url.scheme}://'.")
        host, is_tls = url.raw_host.decode("ascii"), url.scheme == "https"
        port = url.port if url.port is not None else 443 if is_tls else 80
        stream = await self._network.connect_tcp(host, port, timeout=patience, socket_options=self._socket_options)
        if self.is_closed or self.is_retired:
            stream.close()
            why = "the client is closed" if self.is_closed else "the certificates have changed"
            raise httpcore.ConnectError(why)
        self._sockets.add(stream.get_extra_info("socket"))
        if is_tls:
            context = self._context or _client_context(None)
            context.set_alpn_protocols(["http/1.1"])
            stream = await stream.start_tls(context, request.extensions.get("sni_hostname") or host, patience)
        connection = Http11Connection(stream, self._idle_period)
        self._open.add(connection)
        return connection

    def _close_connection(self, connection: Http11Connection) -> None:
        connection.close()
        self._open.discard(connection)

    def _release(self, connection: Http11Connection) -> None:
        """Take a connection back after a response."""
        connection.release()
        if connection.is_idle:
            self._idle.append(connection)
        else:
            self._open.discard(connection)

    async def aclose(self) -> None:
        self.close()
        for connection in list(self._open):
            self._close_connection(connection)

    def close(self) -> None:
        """Close every socket, and let none be opened; the pool does not know those that are still connecting."""
        self.is_closed = True
        for sock in list(self._sockets):
            sock.close()

    @property
    def connections(self) -> list[Http11Connection]:
        """All connections that are open."""
        return list(self._open)

    @property
    def is_empty(self) -> bool:
        """Whether all connections are closed."""
        return not self._open

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
        """Close the connections that are not used."""
        while self._idle:
            self._close_connection(self._idle.pop())


def _socket_of(connection: Http11Connection) -> trio.socket.SocketType:
    return cast("trio.socket.SocketType", connection.stream.get_extra_info("socket"))


@final
class _Upgraded(httpx.AsyncByteStream):
    """The body of a response with status 101: it has none, and its end is that of the connection."""

    def __init__(self, connection: Http11Connection, connections: Connections) -> None:
        self._connection = connection
        self._connections = connections

    async def __aiter__(self) -> AsyncIterator[bytes]:
        nothing: tuple[bytes, ...] = ()
        for piece in nothing:
            yield piece

    async def aclose(self) -> None:
        self._connections._close_connection(self._connection)
        await trio.lowlevel.checkpoint()


@final
class _Body(httpx.AsyncByteStream):
    """The body of a response; not an async generator, which is one layer less for each chunk."""

    def __init__(
        self, connection: Http11Connection, connections: Connections, began_at: float, patience: float | None
    ) -> None:
        self._connection = connection
        self._connections = connections
        self._began_at = began_at
        self._patience = patience
        self._is_closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Chunks(self._connection, self._connections, self._began_at + MIN_WATCH, self._patience)

    async def aclose(self) -> None:
        if self._is_closed:
            return  # another request may use the connection
        self._is_closed = True
        self._connections._lists.discard(_socket_of(self._connection))
        self._connections._release(self._connection)
        if self._connections.is_retired:
            await self._connections.close_idle()


@final
class _Chunks(AsyncIterator[bytes]):
    __slots__ = ("_connection", "_connections", "_ends_at", "_is_over", "_patience")

    def __init__(
        self, connection: Http11Connection, connections: Connections, ends_at: float, patience: float | None
    ) -> None:
        self._connection = connection
        self._connections = connections
        self._ends_at = ends_at
        self._patience = patience
        self._is_over = False

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        try:
            data = await self._connection.receive(self._patience)
        except BaseException as exc:
            self._is_over = True
            self._connections._close_connection(self._connection)
            clear_locals(exc)
            error = to_httpx(exc)
            if error is None:
                raise
            if not self._connections.has_ended_watches:
                raise error from exc
        else:
            if data is not None:
                return data
            self._is_over = True
            raise StopAsyncIteration
        await trio.sleep_until(self._ends_at)
        raise RetiredConnectionError
