"""An httpx transport that reaches the embedded server without sockets, and streams.

::

    client's task                                     task in APIServer.run's nursery
    handle_async_request ──Exchange──(channel of 0)──▶ Exchange.serve ─▶ application
      waits for the head ◀───────────── event ──────── http.response.start
      ResponseStream     ◀── chunks (channel of 16) ── http.response.body
      aclose()           ─────────── event ──────────▶ http.disconnect

The client's side owns nothing: a response that is closed or cancelled is a disconnect to the application, whose task
ends in the server's nursery.
Chunks wait in a bounded channel, so a client that does not read holds the application up, as a socket would.

The stream is a class and not an async generator, because a generator that is left in the middle waits for the garbage
collector.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable
from typing import final

import attrs
import httpx
import trio

from ._serving._app import Application, Message

BUFFER = 16
"""How many chunks of a response may wait for the client."""


@final
@attrs.define(eq=False)
class Exchange:
    """One request and its response, between two tasks."""

    scope: Message
    body: bytes
    chunks: trio.MemorySendChannel[bytes]
    head: tuple[int, list[tuple[bytes, bytes]]] | None = None
    has_head: trio.Event = attrs.field(factory=trio.Event)
    """Set when there is a head, or there will be none."""
    is_gone: trio.Event = attrs.field(factory=trio.Event)
    """Set when the client has left."""
    is_complete: bool = False
    """Whether the application sent the end of the body."""
    _body_sent: bool = False

    async def serve(self, app: Application) -> None:
        """Run the application on this request."""
        try:
            await app(self.scope, self._receive, self._send)
        finally:
            # In this order, and without a checkpoint: a reader that sees the end must find is_complete decided.
            self.chunks.close()
            self.has_head.set()

    async def _receive(self) -> Message:
        if not self._body_sent:
            self._body_sent = True
            await trio.lowlevel.checkpoint()
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.is_gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.head = (message["status"], list(message["headers"]))
            self.has_head.set()
            await trio.lowlevel.checkpoint()
        elif message["body"]:
            try:
                await self.chunks.send(message["body"])
            except trio.BrokenResourceError:
                # The client has left; http.disconnect says so.
                await trio.lowlevel.checkpoint()
        if not message.get("more_body", True):
            self.is_complete = True


@final
class ResponseStream(httpx.AsyncByteStream):
    """The body of a response, as it comes."""

    def __init__(self, exchange: Exchange, chunks: trio.MemoryReceiveChannel[bytes], read_after: float) -> None:
        self._exchange = exchange
        self._chunks = chunks
        self._read_after = read_after

    def __aiter__(self) -> ResponseStream:
        return self

    async def __anext__(self) -> bytes:
        with trio.move_on_after(self._read_after):
            try:
                return await self._chunks.receive()
            except trio.EndOfChannel:
                if self._exchange.is_complete:
                    raise StopAsyncIteration from None
                raise httpx.RemoteProtocolError(
                    "peer closed connection without sending complete message body"
                ) from None
        raise httpx.ReadTimeout(f"the embedded API server sent nothing for {self._read_after:g} s")

    async def aclose(self) -> None:
        """Leave: the application is told, and its task ends soon."""
        self._exchange.is_gone.set()
        self._chunks.close()


@final
class InMemoryTransport(httpx.AsyncBaseTransport):
    """Hands requests to the task that runs the server."""

    def __init__(self, inbox: Callable[[], trio.abc.SendChannel[Exchange]]) -> None:
        self._inbox = inbox

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; returns when the response's head is there.

        Raises:
            RuntimeError: The server is not running.
            httpx.TransportError: The server ended or refuses connections, or httpx's read timeout passed.
        """
        body = await request.aread()
        inbox = self._inbox()
        send, receive = trio.open_memory_channel[bytes](BUFFER)
        exchange = Exchange(_scope(request), body, send)
        read_after = _read_timeout(request)
        stream = ResponseStream(exchange, receive, read_after)
        try:
            await inbox.send(exchange)
            with trio.move_on_after(read_after):
                await exchange.has_head.wait()
        except trio.BrokenResourceError:  # run() ended while this waited to be taken
            exchange.has_head.set()
        except BaseException:
            await stream.aclose()
            raise
        if exchange.head is not None:
            code, headers = exchange.head
            return httpx.Response(code, headers=headers, stream=stream, request=request)
        await stream.aclose()
        if exchange.has_head.is_set():
            raise httpx.RemoteProtocolError("server disconnected without sending a response")
        raise httpx.ReadTimeout(f"the embedded API server did not answer for {read_after:g} s")


def connection_refused() -> httpx.ConnectError:
    """Build the error of a server that does not listen, with the cause that a socket would give it."""
    error = httpx.ConnectError("the embedded API server refuses connections")
    error.__cause__ = ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    return error


def _read_timeout(request: httpx.Request) -> float:
    wanted = request.extensions.get("timeout", {}).get("read")
    return math.inf if wanted is None else float(wanted)


def _scope(request: httpx.Request) -> Message:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(key.lower(), value) for key, value in request.headers.raw],
        "client": None,
        "server": (url.host, url.port),
    }
