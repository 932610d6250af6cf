"""A way to a server that breaks when a test wants it to: a TCP proxy on loopback, which never looks inside."""

from __future__ import annotations

import contextlib
import math
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import attrs
import trio

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@attrs.define(eq=False)
class _Connection:
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    is_frozen: bool = False


@attrs.define(eq=False)
class TcpProxy:
    """Passes connections on to a port of this machine."""

    target: int
    port: int = 0
    is_reachable: bool = True
    """Whether new connections get through; the others are reset at once."""
    is_silent: bool = False
    """Whether new connections stay open and nothing passes through them."""
    accepted: int = 0
    """How many connections have got through so far."""
    attempts: list[float] = attrs.field(factory=list)
    """When each connection was made, whether it got through or not, on trio's clock."""
    given_up: list[float] = attrs.field(factory=list)
    """When each connection ended that the client closed while the server had it open."""
    _connections: set[_Connection] = attrs.field(factory=set)
    _news: trio.Event = attrs.field(factory=trio.Event)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def wait_for(self, condition: Callable[[int], bool]) -> None:
        """Wait until the number of open connections fulfils ``condition``."""
        while not condition(self.open_connections):
            self._news = trio.Event()
            await self._news.wait()

    async def wait_until_accepted(self, count: int) -> None:
        """Wait until that many connections have got through, since the beginning."""
        while self.accepted < count:
            self._news = trio.Event()
            await self._news.wait()

    def cut(self) -> None:
        """Reset every open connection."""
        for each in self._connections:
            each.scope.cancel()

    def freeze(self) -> None:
        """Let every open connection stay open, and nothing more pass through it; new ones are not concerned."""
        for each in self._connections:
            each.is_frozen = True

    def noticed_after(self, moment: float) -> float:
        """Return the seconds from a moment until the client closed a connection or made one; infinite if it did not."""
        signs = (when - moment for when in (*self.attempts, *self.given_up) if when > moment)
        return min(signs, default=math.inf)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, self._serve, self.port, host="127.0.0.1")
            listeners: list[trio.SocketListener] = await nursery.start(serve)
            self.port = listeners[0].socket.getsockname()[1]
            task_status.started()

    async def _serve(self, client: trio.SocketStream) -> None:
        connection = _Connection(is_frozen=self.is_silent)
        self.attempts.append(trio.current_time())
        with contextlib.suppress(OSError, trio.BrokenResourceError), connection.scope:
            if not self.is_reachable:
                connection.scope.cancel()
                await trio.lowlevel.checkpoint()
            # A connection that is still being made is one of those that are cut.
            self._connections.add(connection)
            try:
                server = await self._connect(connection)
                self.accepted += 1
                self._news.set()
                async with server, trio.open_nursery() as nursery:
                    nursery.start_soon(self._pump, server, client, connection)
                    await self._pump(client, server, connection)
                    self.given_up.append(trio.current_time())
                    nursery.cancel_scope.cancel()
            finally:
                self._connections.remove(connection)
                self._news.set()
        if connection.scope.cancelled_caught:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)

    async def _connect(self, connection: _Connection) -> trio.SocketStream:
        """Connect to the target; when nobody listens there, reset the client's connection, which is open already."""
        try:
            return await trio.open_tcp_stream("127.0.0.1", self.target)
        except OSError:
            connection.scope.cancel()
            await trio.lowlevel.checkpoint()
            raise

    @staticmethod
    async def _pump(source: trio.SocketStream, sink: trio.SocketStream, connection: _Connection) -> None:
        """Pass bytes on until the source ends; a frozen connection is read to notice its end, and nothing passes."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in source:
                if not connection.is_frozen:
                    await sink.send_all(data)
        if not connection.is_frozen:
            connection.scope.cancel()


@asynccontextmanager
async def proxy_before(url: str) -> AsyncIterator[TcpProxy]:
    """Run a proxy before a server, such as ``https://127.0.0.1:6443``, beside the block."""
    proxy = TcpProxy(int(url.rpartition(":")[2]))
    async with trio.open_nursery() as nursery:
        await nursery.start(proxy.run)
        yield proxy
        nursery.cancel_scope.cancel()
