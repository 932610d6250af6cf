"""One connection to the server: its requests are read, and the application is called for each of them.

A task reads a whole request, including the body, before it calls the application, so a client that sends slowly never
occupies the application.  The application's ``receive`` then waits for the client to disconnect.

The application can switch to another protocol with the ``trioformer.upgrade`` extension in the ASGI scope.  Otherwise
the ``Upgrade`` header of a request is ignored, as HTTP allows.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Literal, TypeAlias, final
from urllib.parse import unquote

import attrs
import trio

from .._asgi import Message, Receive, Send
from .._surroundings import wall_time
from ._requests import Header, Request, RequestParser

logger: Final = logging.getLogger("trioformer.serving")

ASGIApplication: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

READ_SIZE: Final = 16 * 1024
"""How many bytes are read at once."""
WRITE_SIZE: Final = 64 * 1024
"""How many bytes are written within one ``send_period``."""
LINGER: Final = 1.0
"""Seconds for reading remaining bytes before a close, because unread bytes would cause a reset of the connection."""
_BODILESS: Final = (204, 304)
"""The statuses of responses that have no body."""
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
"""The client has disconnected."""


@final
@attrs.frozen(kw_only=True)
class ServerLimits:
    """Limits on the server's resources that a client can use, and on the time for which a client can hold them."""

    connections: int = 64
    """The maximum number of connections."""
    head_size: int = 16 * 1024
    """The maximum number of bytes in the head of a request. A head may exceed the maximum by up to two reads."""
    body_size: int = 16 * 1024
    """The maximum number of bytes in the body of a request."""
    request_period: float = 10.0
    """Seconds from the first byte of a request to its last; for the first request, from the start of the connection."""
    idle_period: float = 90.0
    """Seconds for which a connection stays open without a request."""
    send_period: float = 5.0
    """Seconds within which the client must read 64 KB of the response."""


@final
@attrs.define(eq=False)
class Places:
    """The limited number of connections that a server can have at a time.

    A connection that waits for its client uses a file descriptor but does no work.  When the limit is reached, the
    connection that has been waiting longest is closed.  So clients that keep connections idle, or that send or read
    very slowly, cannot lock out other clients.
    """

    limit: int
    """The maximum number of connections."""
    _used: int = attrs.field(default=0, init=False)
    phase: Literal["serving", "draining", "closing"] = attrs.field(default="serving", init=False)
    """While the server is draining, each connection is closed after its response.  While it is closing, idle
    connections are closed, too."""
    _waiting: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The connections that are waiting for their clients, starting with the longest wait."""
    idle: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    """The waiting connections that have not received any part of a request."""

    @contextmanager
    def take(self) -> Iterator[trio.CancelScope | None]:
        """Reserve a place for a connection in the block, and yield the cancel scope of the block.

        Yields None if all places are used by connections that are not waiting.
        """
        if self._used >= self.limit:
            longest = next(iter(self._waiting), None)
            if longest is None:
                yield None
                return
            del self._waiting[longest]
            longest.cancel()
        self._used += 1
        try:
            with trio.CancelScope() as scope:
                yield scope
        finally:
            self._used -= 1

    @contextmanager
    def waiting(self, scope: trio.CancelScope, seconds: float) -> Iterator[None]:
        """Mark a connection as waiting for its client during the block.

        Its scope is cancelled when the time limit expires, or when another connection needs the place.
        """
        self._waiting[scope] = None
        scope.deadline = trio.current_time() + seconds
        try:
            yield
        finally:
            self._waiting.pop(scope, None)
            scope.deadline = math.inf

    def close_idle(self) -> None:
        """Close the connections that are waiting for a request, and those that will wait for one."""
        self.phase = "closing"
        for scope in self.idle:
            scope.cancel()


@final
@attrs.define(eq=False)
class Connection:
    """The server's side of one connection."""

    _app: ASGIApplication
    _stream: trio.abc.Stream
    _limits: ServerLimits
    _places: Places
    _scope: trio.CancelScope
    """The scope of the connection, and of the application that it calls."""
    _scheme: str
    _access_log: logging.Logger | None
    _parser: RequestParser = attrs.field(init=False)
    _request: Request = attrs.field(factory=Request, init=False)
    """The request that the application responds to."""
    _body: bytes | None = attrs.field(default=None, init=False)
    """The body of the request; None after the application has received it."""
    _status: int = attrs.field(default=0, init=False)
    """The status of the response; 0 before it begins."""
    _head: bytes = attrs.field(default=b"", init=False)
    """The head of a response that is sent together with the beginning of its body."""
    _is_chunked: bool = attrs.field(default=False, init=False)
    """Whether the body of the response is sent in chunks, because its length is unknown."""
    _phase: Literal["request", "response", "complete", "switched", "broken"] = attrs.field(
        default="request", init=False
    )
    """``response`` while a part of the response has been sent, ``switched`` to another protocol, ``broken`` when the
    client has disconnected."""
    _keeps_alive: bool = attrs.field(default=True, init=False)
    """Whether another request can follow."""

    def __attrs_post_init__(self) -> None:
        self._parser = RequestParser(self._limits.head_size, self._limits.body_size)

    async def serve(self) -> None:
        """Serve requests until the connection ends. The caller closes the stream."""
        period = self._limits.request_period
        while (request := await self._read_request(period)) is not None:
            await self._respond(request)
            if self._phase != "complete" or not self._keeps_alive or self._places.phase == "closing":
                break  # a response that began before the end of the server did not announce it, so one more follows
            self._phase = "request"
            period = self._limits.request_period if self._parser.has_begun else self._limits.idle_period
        if self._phase != "broken":
            await self._linger()

    async def _linger(self) -> None:
        with suppress(*_GONE), self._places.waiting(self._scope, LINGER):
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            while await self._stream.receive_some(READ_SIZE):
                pass

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _read_request(self, period: float) -> Request | None:
        """Read the next request and its body, and return it if there was one."""
        parser = self._parser
        try:
            with self._places.waiting(self._scope, period):
                while not (parser.complete or parser.refusal):
                    if data := parser.unread:
                        parser.unread = b""
                    elif not (data := await self._read_more()):
                        break
                    parser.feed(data)
        except _GONE:
            self._phase = "broken"
            return None
        if parser.complete:
            return parser.complete.popleft()
        if parser.refusal or parser.has_begun:
            await self._refuse(parser.refusal or 400)
        return None

    async def _read_more(self) -> bytes:
        if self._parser.awaits_continue:
            self._parser.awaits_continue = False
            await self._stream.send_all(_encode_head(100, []))
        if self._parser.has_begun:
            return bytes(await self._stream.receive_some(READ_SIZE))
        if self._places.phase == "closing":
            self._scope.cancel()  # before its first bytes, a server that ends may close the connection
        self._places.idle.add(self._scope)
        try:
            data = await self._stream.receive_some(READ_SIZE)
        finally:
            self._places.idle.discard(self._scope)
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + self._limits.request_period)
        return bytes(data)

    async def _refuse(self, code: int) -> None:
        """End the connection. If no response has begun, first send a response that has only a status."""
        self._keeps_alive = False
        if self._phase == "request":
            self._phase = "complete"
            await self._write(_encode_head(code, [(b"content-length", b"0"), (b"connection", b"close")]))

    # --- responses ----------------------------------------------------------------------------------------------------

    async def _respond(self, request: Request) -> None:
        self._request, self._body, self._status, self._head = request, bytes(request.body), 0, b""
        request.body.clear()  # an idle connection keeps no body
        path, _, query = request.target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.version,
            "method": request.method,
            "scheme": self._scheme,
            "path": unquote(path.decode("ascii")),
            "query_string": query,
            "headers": request.headers,
            "extensions": {"trioformer.upgrade": self._upgrade},
        }
        try:
            await self._app(scope, self._receive, self._send)
        except Exception:
            logger.exception("error in the response to a %s request", request.method)
            await self._refuse(500)
        if self._access_log is not None:
            target = request.target.decode("ascii")
            self._access_log.info('"%s %s" %s', request.method, target, self._status or "-")

    async def _upgrade(self, headers: Iterable[Header]) -> trio.abc.Stream:
        """Switch to another protocol, and return its stream. The request must have asked for this protocol."""
        self._phase, self._status = "switched", 101
        await self._write(_encode_head(101, headers))
        return _Switched(self._stream, self._parser.unread)

    async def _receive(self) -> Message:
        """Return the body on the first call. On later calls, wait for the client to disconnect."""
        body, self._body = self._body, None
        if body is not None:
            await trio.lowlevel.checkpoint_if_cancelled()  # other tasks run when the response is sent
            return {"type": "http.request", "body": body, "more_body": False}
        with suppress(*_GONE):
            while data := await self._stream.receive_some(READ_SIZE):
                self._parser.unread += data  # it belongs to the next request
                if len(self._parser.unread) > self._limits.head_size:
                    await trio.sleep_forever()  # no more until this response is complete
        self._phase = "broken"
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        """Send a part of the response. This does nothing if the client has disconnected."""
        if self._phase == "broken":
            await trio.lowlevel.checkpoint()
        elif message["type"] == "http.response.start":
            self._status = message["status"]
            has_length, head = self._begin(message["headers"])
            if has_length:
                self._head = head  # the body follows; a stream of unknown length may not begin for a long time
                await trio.lowlevel.checkpoint_if_cancelled()
            else:
                self._phase = "response"
                await self._write(head)
        else:
            body, is_last = message["body"], not message.get("more_body", False)
            parts, self._head, self._phase = [self._head], b"", "complete" if is_last else "response"
            if self._request.method == "HEAD":
                pass  # there is no body
            elif self._is_chunked:
                parts += [b"%x\r\n" % len(body), body, b"\r\n"] if body else []
                parts += [b"0\r\n\r\n"] if is_last else []
            else:
                parts.append(body)
            await self._write(b"".join(parts))

    def _begin(self, headers: Iterable[Header]) -> tuple[bool, bytes]:
        """Return whether the length of the body is known, and the head."""
        headers = [*headers, (b"date", _date(int(wall_time())))]
        has_length = any(name == b"content-length" for name, _ in headers)
        self._is_chunked = not has_length and self._status not in _BODILESS and self._request.version == "1.1"
        if self._is_chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        self._keeps_alive = self._request.keeps_alive and self._places.phase == "serving"
        if not self._keeps_alive:
            headers.append((b"connection", b"close"))
        return has_length, _encode_head(self._status, headers)

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            for start in range(0, len(data), WRITE_SIZE):
                with self._places.waiting(self._scope, self._limits.send_period):
                    await self._stream.send_all(view[start : start + WRITE_SIZE])
        except _GONE:
            self._phase = "broken"
            await trio.aclose_forcefully(self._stream)  # it also ends a task that waits for the client to disconnect


@final
@attrs.define(eq=False)
class _Switched(trio.abc.Stream):
    """A stream of bytes in another protocol.

    Closing it does nothing, because the connection closes the underlying stream.
    """

    _stream: trio.abc.Stream
    _first: bytes
    """The bytes that arrived together with the request."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        first, self._first = self._first, b""
        return first or bytes(await self._stream.receive_some(max_bytes))

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus} | {
    413: "Request Entity Too Large",
    416: "Requested Range Not Satisfiable",
    422: "Unprocessable Entity",
}
"""The reason phrases.  Python 3.13 has other phrases for some codes than Go."""


def phrase_of(code: int) -> str:
    """Return the reason phrase for a status code, as Go servers send it."""
    return _PHRASES.get(code, "")


def _encode_head(code: int, headers: Iterable[Header]) -> bytes:
    lines = [b"HTTP/1.1 %d %b" % (code, phrase_of(code).encode())]
    lines += [b"%b: %b" % (name, value) for name, value in headers]
    head = b"\r\n".join((*lines, b"", b""))
    if not len(lines) + 1 == head.count(b"\n") == head.count(b"\r"):
        raise ValueError("a header of a response must not contain a line break")
    return head


@lru_cache(maxsize=1)
def _date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()
