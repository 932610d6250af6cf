"""An httpx transport that reaches the embedded server without sockets, and streams responses.

::

    client's task                                     task in APIServer.run's nursery
    handle_async_request ──Exchange──(channel of 0)──▶ Exchange.serve ─▶ application
      waits for the head ◀───────────── event ──────── http.response.start
      ResponseStream     ◀── chunks (channel of 16) ── http.response.body
      aclose()           ─────────── event ──────────▶ http.disconnect

The client side owns no task.
When the response is closed or the request is cancelled, the application receives ``http.disconnect``, and its task in
the server's nursery ends.  Chunks are sent through a bounded channel, so a client that does not read blocks the
application, as with a socket.

The response stream is a class, because only the garbage collector closes an async generator that is not exhausted.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import final

import attrs
import httpx
import trio

from .._asgi import Message
from .._surroundings import is_operator
from ..client import Client, ClientOptions, open_client
from ..client._internal import confirms_write
from ..kubeconfig import ClusterConfig
from ..transport._internal import CUT_OFF, NO_RESPONSE
from ._serving._access import OPERATOR, operator_actions
from ._serving._app import Application, complete, send_response
from ._serving._messages import encode
from ._serving._pod_processes import UPGRADE
from ._serving._responses import Response

MAX_BUFFERED_CHUNKS = 16
"""The number of chunks of a response that may wait for the client."""

CLIENT_OPTIONS = ClientOptions(protobuf=False)
"""Options of the clients of a server in memory.  The server stores JSON, and would convert each object to protobuf."""


def open_in_memory(
    config: ClusterConfig, transport: InMemoryTransport, field_manager: str | None
) -> AbstractAsyncContextManager[Client]:
    """Open a client for a server in memory."""
    return open_client(config, http_transport=transport, field_manager=field_manager, options=CLIENT_OPTIONS)


@final
@attrs.define(eq=False)
class PipeStream(trio.abc.Stream):
    """One end of an in-memory connection that has switched to another protocol."""

    _to_peer: trio.MemorySendChannel[bytes]
    _from_peer: trio.MemoryReceiveChannel[bytes]
    _rest: bytes = b""

    @classmethod
    def pair(cls) -> tuple[PipeStream, PipeStream]:
        """Return the two connected ends of a new connection."""
        one, other = (trio.open_memory_channel[bytes](MAX_BUFFERED_CHUNKS) for _ in range(2))
        return cls(one[0], other[1]), cls(other[0], one[1])

    @property
    def is_readable(self) -> bool:
        """Whether data has arrived or the peer has closed the connection."""
        buffer = self._from_peer.statistics()
        return bool(self._rest or buffer.current_buffer_used or not buffer.open_send_channels)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes.  This method blocks while the peer is not receiving."""
        if data:
            await self._to_peer.send(bytes(data))
        else:
            await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        """Return immediately."""
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive bytes.  The result is ``b""`` if the peer has closed the connection."""
        if self._rest:
            await trio.lowlevel.checkpoint()
        else:
            try:
                self._rest = await self._from_peer.receive()
            except trio.EndOfChannel:
                return b""
        most = len(self._rest) if max_bytes is None else max_bytes
        data, self._rest = self._rest[:most], self._rest[most:]
        return data

    def close(self) -> None:
        """Close both directions of the connection."""
        self._rest = b""
        self._to_peer.close()
        self._from_peer.close()

    async def aclose(self) -> None:
        """Close both directions of the connection."""
        self.close()
        await trio.lowlevel.checkpoint()


@final
@attrs.define(eq=False)
class Exchange:
    """A request and its response, shared by the client's task and the application's task."""

    scope: Message
    body: bytes
    chunks: trio.MemorySendChannel[bytes]
    ready: Response | Exception | None = None
    """The response or the error of the application, which has already handled the request."""
    head: tuple[int, list[tuple[bytes, bytes]]] | None = None
    response_started: trio.Event = attrs.field(factory=trio.Event)
    """An event that is set when ``head`` is set or the application has ended without a response."""
    disconnected: trio.Event = attrs.field(factory=trio.Event)
    """An event that is set when the client has disconnected."""
    is_complete: bool = False
    """Whether the application has sent the end of the body."""
    upgraded: PipeStream | None = None
    """The client's end of the connection after it has switched to another protocol."""
    _switched: PipeStream | None = None
    """The application's end of the connection after it has switched to another protocol."""
    _body_sent: bool = False

    async def serve(self, app: Application) -> None:
        """Run the application for this request, or send the response that is ready."""
        try:
            if isinstance(self.ready, Exception):
                raise self.ready
            if self.ready is not None:
                await send_response(await encode(self.ready), self._send)
                return
            await app({**self.scope, "extensions": {UPGRADE: self._upgrade}}, self._receive, self._send)
        finally:
            if self._switched is not None:
                self._switched.close()
            # is_complete is final before the channel is closed, so a reader at its end can rely on it.
            self.chunks.close()
            self.response_started.set()

    async def _upgrade(self, headers: list[tuple[bytes, bytes]]) -> trio.abc.Stream:
        """Switch the request's connection to another protocol.

        The application calls this method as an ASGI extension.
        """
        self.upgraded, self._switched = PipeStream.pair()
        if self.disconnected.is_set():
            self.upgraded.close()
        self.head = (101, headers)
        self.response_started.set()
        await trio.lowlevel.checkpoint()
        return self._switched

    async def _receive(self) -> Message:
        if not self._body_sent:
            self._body_sent = True
            await trio.lowlevel.checkpoint()
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.head = (message["status"], list(message["headers"]))
            self.response_started.set()
            await trio.lowlevel.checkpoint()
        elif message["body"] and self.scope["method"] != "HEAD":  # as on a socket
            try:
                await self.chunks.send(message["body"])
            except trio.BrokenResourceError:
                # The client has disconnected; the application learns it from http.disconnect.
                await trio.lowlevel.checkpoint()
        if not message.get("more_body", True):
            self.is_complete = True


@final
@attrs.define(eq=False)
class ResponseStream(httpx.AsyncByteStream):
    """The body of a response, as a stream."""

    _exchange: Exchange
    _chunks: trio.MemoryReceiveChannel[bytes]
    _read_timeout: float

    def __aiter__(self) -> ResponseStream:
        return self

    async def __anext__(self) -> bytes:
        with trio.move_on_after(self._read_timeout):
            try:
                return await self._chunks.receive()
            except trio.EndOfChannel:
                if self._exchange.is_complete:
                    raise StopAsyncIteration from None
                raise EarlyEndError(CUT_OFF) from None
        raise httpx.ReadTimeout(f"the embedded API server sent nothing for {self._read_timeout:g} s")

    async def aclose(self) -> None:
        """Disconnect from the application.  The application receives ``http.disconnect``, and its task ends."""
        self._exchange.disconnected.set()
        if self._exchange.upgraded is not None:
            self._exchange.upgraded.close()
        self._chunks.close()


@final
@attrs.define(eq=False)
class InMemoryTransport(httpx.AsyncBaseTransport):
    """An httpx transport that sends requests to the task that runs the server."""

    _get_exchanges: Callable[[], trio.abc.SendChannel[Exchange]]
    _app: Application
    _is_operator: bool = attrs.field(default=False, alias="is_operator")  # what pyright does not derive
    """Whether all requests are those of an operator, not only those that `run_controllers` sends."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return when the head of the response has been received.

        Raises:
            RuntimeError: The server is not running.
            httpx.TransportError: The server has ended, the server refuses connections, or httpx's read timeout expired.
        """
        body, scope = await request.aread(), _scope(request)
        if (observer := operator_actions.get()) is not None and (self._is_operator or is_operator()):
            scope[OPERATOR] = partial(observer.allows, confirms_write=confirms_write.get())
        exchanges = self._get_exchanges()
        await trio.lowlevel.checkpoint()
        ready: Response | Exception | None = None
        try:
            ready = self._app.respond(scope, body)
        except Exception as error:  # noqa: BLE001  # raised in the server's task
            ready = error
        if isinstance(ready, Response) and (whole := complete(ready)) is not None:
            headers, content = whole
            content = b"" if request.method == "HEAD" else content
            return httpx.Response(ready.code, headers=headers, content=content, request=request)
        send, receive = trio.open_memory_channel[bytes](MAX_BUFFERED_CHUNKS)
        exchange = Exchange(scope, body, send, ready)
        read_timeout = _read_timeout_of(request)
        stream = ResponseStream(exchange, receive, read_timeout)
        try:
            await exchanges.send(exchange)
            with trio.move_on_after(read_timeout):
                await exchange.response_started.wait()
        except trio.BrokenResourceError:  # run() ended before it received the exchange
            exchange.response_started.set()
        except BaseException:
            await stream.aclose()
            raise
        if exchange.head is not None:
            code, headers = exchange.head
            switched = {} if exchange.upgraded is None else {"network_stream": exchange.upgraded}
            return httpx.Response(code, headers=headers, stream=stream, request=request, extensions=switched)
        await stream.aclose()
        if exchange.response_started.is_set():
            raise EarlyEndError(NO_RESPONSE)
        raise httpx.ReadTimeout(f"the embedded API server did not respond for {read_timeout:g} s")


@final
class EarlyEndError(httpx.RemoteProtocolError):
    """The server closed the connection before a response began or ended.

    The client converts this error to the failure with the same name.
    """


def connection_refused() -> httpx.ConnectError:
    """Return the error of a refused connection, with the same cause as on a socket."""
    error = httpx.ConnectError("the embedded API server refuses connections")
    error.__cause__ = ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    return error


def _read_timeout_of(request: httpx.Request) -> float:
    timeout = request.extensions.get("timeout", {}).get("read")
    return math.inf if timeout is None else float(timeout)


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
