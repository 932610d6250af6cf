"""A proxy before an HTTP/1.1 server that breaks a request at a given point, and passes later ones on."""

from __future__ import annotations

import enum
import re
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

import attrs
import trio

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Point(enum.Enum):
    """How far a request has got."""

    CONNECTED = "the connection is open"
    BEGUN = "the first byte has arrived"
    HEAD = "the head has arrived"
    HALF_BODY = "half of the body has arrived, and the server has this half"
    REQUEST = "the request has arrived, and the server has nothing of it"
    EXECUTED = "the server has executed it, and has responded"
    HALF_HEAD = "the client has half of the head of the response"
    HALF_RESPONSE = "the client has half of the body of the response"


class Break(enum.Enum):
    """What happens to the connection."""

    RESET = "reset"
    CLOSE = "close"
    STALL = "stall"


@final
@attrs.frozen
class Answer:
    """A response of the proxy itself."""

    code: int
    retry_after: str | None = None

    @property
    def data(self) -> bytes:
        head = f"HTTP/1.1 {self.code} Of The Proxy\r\nContent-Length: 4\r\nConnection: close\r\n"
        if self.retry_after is not None:
            head += f"Retry-After: {self.retry_after}\r\n"
        return f"{head}\r\nbusy".encode()


@final
@attrs.frozen
class Fault:
    """What the proxy does to a request, and where."""

    point: Point
    does: Break | Answer


@final
@attrs.define(eq=False)
class FaultyProxy:
    """One connection for each request; the fault hits the first one that gets to its point."""

    target: int
    fault: Fault | None
    port: int = 0
    connections: int = 0
    executed: int = 0
    """How many requests the server has received completely, and has responded to."""
    requests: list[bytes] = attrs.field(factory=list)
    """Those that have arrived completely, without the ``Host``."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, client: trio.SocketStream) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            async with client:
                await self._serve(client)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _serve(self, client: trio.SocketStream) -> None:
        if await self._is_broken(client, Point.CONNECTED):
            return
        received = await client.receive_some()
        if not received or await self._is_broken(client, Point.BEGUN):
            return
        while b"\r\n\r\n" not in received:
            received += await client.receive_some()
        head, _, body = received.partition(b"\r\n\r\n")
        if await self._is_broken(client, Point.HEAD):
            return
        found = _LENGTH.search(head)
        length = int(found[1]) if found else 0
        half = length // 2
        while len(body) < half:
            body += await client.receive_some()
        forwarded = head + b"\r\nConnection: close\r\n\r\n"
        if half and self._hits(Point.HALF_BODY):
            async with await trio.open_tcp_stream("127.0.0.1", self.target) as server:
                await server.send_all(forwarded + body[:half])
                await self._is_broken(client, Point.HALF_BODY)
            return
        while len(body) < length:
            body += await client.receive_some()
        self.requests.append(re.sub(rb"\r\nHost: [^\r]*", b"", head, flags=re.IGNORECASE) + b"\r\n\r\n" + body)
        if await self._is_broken(client, Point.REQUEST):
            return
        response = b""
        async with await trio.open_tcp_stream("127.0.0.1", self.target) as server:
            await server.send_all(forwarded + body)
            while data := await server.receive_some():
                response += data
        self.executed += 1
        if await self._is_broken(client, Point.EXECUTED):
            return
        end_of_head = response.index(b"\r\n\r\n") + 4
        for point, end in (
            (Point.HALF_HEAD, end_of_head // 2),
            (Point.HALF_RESPONSE, (end_of_head + len(response)) // 2),
        ):
            if self._hits(point):
                await client.send_all(response[:end])
                await self._is_broken(client, point)
                return
        await client.send_all(response)

    def _hits(self, point: Point) -> bool:
        return self.fault is not None and self.fault.point is point

    async def _is_broken(self, client: trio.SocketStream, point: Point) -> bool:
        """Apply the fault if this is its point."""
        if not self._hits(point):
            return False
        assert self.fault is not None
        does, self.fault = self.fault.does, None
        if does is Break.RESET:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return True
        if isinstance(does, Answer):
            await client.send_all(does.data)
        if does is not Break.STALL:
            await client.send_eof()
        while await client.receive_some():  # a connection that is closed with unread bytes is reset
            pass
        return True


@asynccontextmanager
async def faulty_proxy(target: int, fault: Fault | None) -> AsyncIterator[FaultyProxy]:
    """Run such a proxy before a port of this machine."""
    proxy = FaultyProxy(target, fault)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, proxy.serve, 0)
        proxy.port = listeners[0].socket.getsockname()[1]
        yield proxy
        nursery.cancel_scope.cancel()
