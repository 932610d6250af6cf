"""The connections to one server with one set of certificates: HTTP/1.1, without limit of their number.

A request takes the connection that was used last, or opens one; those that were used before it expire in the meantime.
"""

from __future__ import annotations

import ssl
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

import attrs
import httpx
import trio

from .._errors import RetiredConnectionError
from ..auth._tls import client_context
from ._connection import MAX_HEAD, Connection, NotAvailableError, State
from ._messages import CONNECT_PATIENCE, SWITCHED, WRITE_PATIENCE, Head, Header, Request

if TYPE_CHECKING:
    from ..._secret import Secret
    from .._proxy._forward import ForwardedRequests
    from ._network import Network
    from ._sockets import NetworkStream
    from ._upgraded import UpgradedStream

MIN_WATCH: Final = 1.1
"""Seconds that a watch has at least before its end is reported: one of less than a second looks refused."""


@final
@attrs.frozen
class Origin:
    """Where requests go."""

    is_tls: bool
    host: str
    """The name in ASCII, or the address without brackets."""
    port: int
    netloc: bytes
    """The header ``Host``."""
    prefix: str
    """What the path of each request begins with; empty, or with a leading slash and without one at the end."""
    server_name: str
    """What TLS sends, and the certificate must be valid for."""

    @classmethod
    def of(cls, server: str, server_name: str | None = None) -> Origin:
        """Make it of the server's URL."""
        url = httpx.URL(server)
        host, is_tls = url.raw_host.decode("ascii"), url.scheme == "https"
        port = url.port if url.port is not None else 443 if is_tls else 80
        prefix = url.raw_path.decode("ascii").rstrip("/")
        return cls(is_tls, host, port, url.netloc, prefix, server_name or host)


@final
class Pool:
    """Sends requests on connections that are kept for the next ones.

    Args:
        origin: The server.
        context: The TLS settings; None for the default ones.
        network: Opens connections.
        idle_period: Seconds before an unused connection is closed.
        forwarded: What requests are for a proxy that forwards them; None without one.
        header_bytes: The limit of the head of a response.

    Attributes:
        is_closed: Whether the client is closed.
        is_retired: Whether other connections have replaced them: none is used for another request.
        has_ended_watches: Whether watches on them were ended on this side.
    """

    def __init__(
        self,
        origin: Origin,
        context: ssl.SSLContext | None,
        network: Network,
        *,
        idle_period: float,
        forwarded: ForwardedRequests | None = None,
        header_bytes: int = MAX_HEAD,
    ) -> None:
        self.origin: Final = origin
        self.is_closed: bool = False
        self.is_retired: bool = False
        self.has_ended_watches: bool = False
        self._context = context
        self._network = network
        self._idle_period = idle_period
        self._forwarded = forwarded
        self._header_bytes = header_bytes
        self._idle: deque[tuple[float, Connection]] = deque()
        """Those that no request uses, and when they expire; the one that was used last at the end."""
        self._open: set[Connection] = set()
        self._connecting: set[NetworkStream] = set()
        """Those whose handshake has not ended."""
        self._lists: set[Connection] = set()
        """Watches that begin with a list, until these end."""

    @property
    def connections(self) -> list[Connection]:
        """All connections that are open."""
        return list(self._open)

    @property
    def is_empty(self) -> bool:
        """Whether all connections are closed."""
        return not self._open

    async def send(self, request: Request, authorization: Secret[str] | None) -> PooledResponse:
        """Send a request on a connection that is idle, or else on a new one, and receive the head of its response.

        Raises:
            httpx.TransportError: There is no response.
            LimitPassedError: Its head is too long.

        Cancellation: closes the connection.
        """
        ends_at = trio.current_time() + MIN_WATCH if request.for_watch else 0.0
        try:
            connection, head = await self._exchange(request, authorization)
        except BaseException as exc:
            clear_locals(exc)
            raise
        if request.for_watch and b"sendInitialEvents=true" in request.target():
            self._lists.add(connection)
        return PooledResponse(connection, head, self, ends_at, request.patience)

    async def _exchange(self, request: Request, authorization: Secret[str] | None) -> tuple[Connection, Head]:
        origin, forwarded = self.origin, self._forwarded
        target, more = request.target(origin.prefix), list[Header]()
        if authorization is not None and not request.has_authorization:
            more.append((b"Authorization", authorization.reveal().encode("ascii")))
        if forwarded is not None:
            target = forwarded.target(origin.netloc, target)
            more += forwarded.headers()
        encoded = request.encode(origin.netloc, target, more)
        more.clear()
        while True:
            connection = self._take_idle() or await self.connect(CONNECT_PATIENCE)
            try:
                await connection.send(encoded, WRITE_PATIENCE)
                head = await connection.receive_head(request.patience, is_alone=request.method == "HEAD")
                if forwarded is not None:
                    forwarded.check(head.code)
            except NotAvailableError:
                self.close_connection(connection)
            except BaseException:
                self.close_connection(connection)
                raise
            else:
                return connection, head

    def _take_idle(self) -> Connection | None:
        """Take the connection that was used last, and close those that have expired."""
        idle, now = self._idle, trio.current_time()
        while idle and idle[0][0] < now:
            self.close_connection(idle.popleft()[1])
        while idle:
            connection = idle.pop()[1]
            if not connection.is_closed:
                return connection
            self.close_connection(connection)
        return None

    async def connect(self, patience: float) -> Connection:
        """Open a connection."""
        origin = self.origin
        stream = await self._network.connect(origin.host, origin.port, patience)
        if self.is_closed or self.is_retired:
            stream.close()
            raise httpx.ConnectError("the client is closed" if self.is_closed else "the certificates have changed")
        if origin.is_tls:
            self._connecting.add(stream)
            try:
                tls = await stream.start_tls(self._context or client_context(None), origin.server_name, patience)
            finally:
                self._connecting.discard(stream)
            stream = tls
        connection = Connection(stream, self._header_bytes)
        self._open.add(connection)
        return connection

    def close_connection(self, connection: Connection) -> None:
        """Close a connection."""
        connection.close()
        self._open.discard(connection)
        self._lists.discard(connection)

    def release(self, connection: Connection) -> None:
        """Take a connection back after a response."""
        connection.release()
        self._lists.discard(connection)
        if connection.state is State.IDLE and not (self.is_retired or self.is_closed):
            self._idle.append((trio.current_time() + self._idle_period, connection))
        else:
            self.close_connection(connection)

    def close(self) -> None:
        """Close every connection, and let none be opened."""
        self.is_closed = True
        for stream in self._connecting:
            stream.close()
        for connection in self.connections:
            self.close_connection(connection)

    def retire(self) -> None:
        """Let no connection be used for another request, and none be opened; those that are idle are closed."""
        self.is_retired = True
        while self._idle:
            self.close_connection(self._idle.pop()[1])

    def end_watches(self, *, spares_lists: bool) -> None:
        """Close the connections of watches, which then end without an error; those that begin with a list on demand."""
        self.has_ended_watches = True
        for stream in self._connecting:
            stream.close()
        for connection in self.connections:
            if not (spares_lists and connection in self._lists):
                connection.stream.close()  # its reader ends the use


@final
class PooledResponse:
    """Implements :class:`~._connection.ResponseStream`."""

    __slots__ = ("_connection", "_ends_at", "_is_closed", "_patience", "_pool", "_upgraded", "head")

    def __init__(self, connection: Connection, head: Head, pool: Pool, ends_at: float, patience: float | None) -> None:
        self.head: Final = head
        self._connection = connection
        self._pool = pool
        self._ends_at = ends_at
        self._patience = patience
        self._is_closed = False
        self._upgraded: UpgradedStream | None = None
        if head.code == SWITCHED:
            from ._upgraded import UpgradedStream  # noqa: PLC0415  # most clients run nothing in pods

            self._upgraded = UpgradedStream(connection)

    @property
    def upgraded(self) -> UpgradedStream | None:
        return self._upgraded

    async def receive(self) -> bytes:
        try:
            return await self._connection.receive(self._patience)
        except BaseException as exc:
            self._pool.close_connection(self._connection)
            clear_locals(exc)
            if not (isinstance(exc, httpx.TransportError) and self._pool.has_ended_watches):
                raise
        await trio.sleep_until(self._ends_at)
        raise RetiredConnectionError

    async def aclose(self) -> None:
        if not self._is_closed:  # another request may use the connection
            self._is_closed = True
            self._pool.release(self._connection)


def clear_locals(error: BaseException) -> None:
    """Clear the local variables of the frames of this package, and of h11, which have requests with their credentials.

    Applies to the tracebacks of an error, its causes and contexts; which lines failed can still be seen.
    Frames of other modules may belong to an exception that the caller is handling: to clear the frame of a suspended
    coroutine would end it.
    """
    cleared = ("h11.", "trioformer.transport.http.", "trioformer.transport._proxy.")
    seen: set[int] = set()  # errors may refer to each other
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        traceback = each.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_globals.get("__name__", "").startswith(cleared):
                with suppress(RuntimeError):  # it is still running
                    traceback.tb_frame.clear()
            traceback = traceback.tb_next
        pending += (each.__cause__, each.__context__)
