"""One connection to the server: its requests are read, and the application is called for each of them.

A task reads a whole request, including the body, before it calls the application, so a client that sends slowly never
occupies the application.  The application's ``receive`` then waits for the client to disconnect.

The application can switch to another protocol with the ``trioformer.upgrade`` extension in the ASGI scope.  Otherwise
the ``Upgrade`` header of a request is ignored, as HTTP allows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Literal, TypeAlias, final
from urllib.parse import unquote

import attrs
import h11
import trio

from .._asgi import Message, Receive, Send

logger: Final = logging.getLogger("trioformer.serving")

ASGIApplication: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

READ_SIZE: Final = 16 * 1024
"""How many bytes are read at once."""
WRITE_SIZE: Final = 64 * 1024
"""How many bytes are written within one ``send_period``."""
LINGER: Final = 1.0
"""Seconds for reading remaining bytes before a close, because unread bytes would cause a reset of the connection."""
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)
"""The client has disconnected, or the server gives up on it."""


@final
@attrs.frozen(kw_only=True)
class ServerLimits:
    """Limits on the server's resources that a client can use, and on the time for which a client can hold them."""

    connections: int = 64
    """The maximum number of connections."""
    head_size: int = 16 * 1024
    """The maximum number of bytes in the head of a request. A head may exceed the maximum by up to one read."""
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
    def take(self) -> Iterator[bool]:
        """Reserve a place for a connection in the block.

        Yields False if all places are used by connections that are not waiting.
        """
        has_place = self._used < self.limit or bool(self._waiting)
        if self._used >= self.limit and has_place:
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            longest.cancel()
        self._used += has_place
        try:
            yield has_place
        finally:
            self._used -= has_place

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[trio.CancelScope]:
        """Mark the connection as waiting for its client during the block.

        Raises:
            TooSlowError: The time limit has expired, or another connection needs the place.
        """
        with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:  # fail_after() is a generator, too
            self._waiting[scope] = None
            try:
                yield scope
            finally:
                self._waiting.pop(scope, None)
        if scope.cancelled_caught:
            raise trio.TooSlowError

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
    _scheme: str
    _access_log: logging.Logger | None
    _h11: h11.Connection = attrs.field(init=False)
    _request: h11.Request | None = attrs.field(default=None, init=False)
    _body: bytes | None = attrs.field(default=None, init=False)
    """The body of the request; None after the application has received it."""
    _status: int = attrs.field(default=0, init=False)
    """The status of the response; 0 before it begins."""
    _head: h11.Response | None = attrs.field(default=None, init=False)
    """The head of a response that is sent together with the beginning of its body."""
    _is_broken: bool = attrs.field(default=False, init=False)
    """Whether the client has disconnected, or the server has given up on it."""

    def __attrs_post_init__(self) -> None:
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_size)

    async def serve(self) -> None:
        """Serve requests until the connection ends. The caller closes the stream."""
        period = self._limits.request_period
        while await self._read_request(period):
            await self._respond()
            if self._places.phase != "serving":
                break  # even if the response began before, and does not announce it
            if self._is_broken or self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
                break
            self._h11.start_next_cycle()
            has_begun = bool(self._h11.trailing_data[0])
            period = self._limits.request_period if has_begun else self._limits.idle_period
        if not self._is_broken:
            await self._linger()

    async def _linger(self) -> None:
        with suppress(*_GONE), self._places.waiting(LINGER):
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            while await self._stream.receive_some(READ_SIZE):
                pass

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _read_request(self, period: float) -> bool:
        """Read the next request and its body, and return whether there was a request."""
        self._request, self._head, self._status, body = None, None, 0, bytearray()
        try:
            with self._places.waiting(period) as scope:
                while True:
                    event = self._h11.next_event()
                    if event is h11.NEED_DATA:
                        await self._read_more(scope)
                    elif isinstance(event, h11.Request):
                        self._request = event
                    elif isinstance(event, h11.Data):
                        body += event.data
                        if len(body) > self._limits.body_size:
                            await self._refuse(413)
                            return False
                    else:  # the end of the body or of the connection
                        self._body = bytes(body)
                        return isinstance(event, h11.EndOfMessage)
        except h11.RemoteProtocolError as exc:
            await self._refuse(exc.error_status_hint)
        except _GONE:
            self._is_broken = True
        return False

    async def _read_more(self, scope: trio.CancelScope) -> None:
        if self._h11.they_are_waiting_for_100_continue:
            await self._write(h11.InformationalResponse(status_code=100, headers=[]))
        has_begun = self._request is not None or bool(self._h11.trailing_data[0])
        if has_begun:
            data = await self._stream.receive_some(READ_SIZE)
        else:
            data = await self._receive_first(scope)
        self._h11.receive_data(bytes(data))

    async def _receive_first(self, scope: trio.CancelScope) -> bytes | bytearray:
        """Receive the first bytes of a request.  Before them, a server that ends may close the connection."""
        if self._places.phase == "closing":
            scope.cancel()
        self._places.idle.add(scope)
        try:
            data = await self._stream.receive_some(READ_SIZE)
        finally:
            self._places.idle.discard(scope)
        scope.deadline = min(scope.deadline, trio.current_time() + self._limits.request_period)
        return data

    async def _refuse(self, code: int) -> None:
        """End the connection. If no response has begun, first send a response that has only a status."""
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            await self._write(
                h11.Response(status_code=code, headers=headers, reason=phrase_of(code)), h11.EndOfMessage()
            )

    # --- responses ----------------------------------------------------------------------------------------------------

    async def _respond(self) -> None:
        request = self._request
        assert request is not None  # the caller has read it
        method, target = request.method.decode("ascii"), request.target.decode("ascii")
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.http_version.decode("ascii"),
            "method": method,
            "scheme": self._scheme,
            "path": unquote(path),
            "query_string": query.encode("ascii"),
            "headers": list(request.headers),
            "extensions": {"trioformer.upgrade": self._upgrade},
        }
        try:
            await self._app(scope, self._receive, self._send)
        except Exception:
            logger.exception("error in the response to a %s request", method)
            await self._refuse(500)
        if self._access_log is not None:
            self._access_log.info('"%s %s" %s', method, target, self._status or "-")

    async def _upgrade(self, headers: list[tuple[bytes, bytes]]) -> trio.abc.Stream:
        """Switch to another protocol, and return its stream. The request must have asked for this protocol."""
        await self._write(h11.InformationalResponse(status_code=101, headers=headers, reason=phrase_of(101)))
        self._status = 101
        return _Switched(self._stream, bytes(self._h11.trailing_data[0]))

    async def _receive(self) -> Message:
        """Return the body on the first call. On later calls, wait for the client to disconnect."""
        body, self._body = self._body, None
        if body is not None:
            await trio.lowlevel.checkpoint()
            return {"type": "http.request", "body": body, "more_body": False}
        with suppress(*_GONE):
            while data := await self._stream.receive_some(READ_SIZE):
                self._h11.receive_data(bytes(data))  # it belongs to the next request
                if len(self._h11.trailing_data[0]) > self._limits.head_size:
                    await trio.sleep_forever()  # no more until this response is complete
        self._is_broken = True
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        """Send a part of the response. This does nothing if the client has disconnected."""
        if self._is_broken:
            await trio.lowlevel.checkpoint()
        elif message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [(bytes(name), bytes(value)) for name, value in message["headers"]]
            headers.append((b"date", formatdate(usegmt=True).encode()))
            if self._places.phase != "serving":
                headers.append((b"connection", b"close"))
            head = h11.Response(status_code=self._status, headers=headers, reason=phrase_of(self._status))
            if any(name == b"content-length" for name, _ in headers):
                self._head = head  # the body follows; a stream of unknown length may not begin for a long time
                await trio.lowlevel.checkpoint()
            else:
                await self._write(head)
        else:
            events: list[h11.Event] = [] if self._head is None else [self._head]
            self._head = None
            if message["body"] and self._request is not None and self._request.method != b"HEAD":
                events.append(h11.Data(data=message["body"]))
            if not message.get("more_body", False):
                events.append(h11.EndOfMessage())
            await self._write(*events)

    async def _write(self, *events: h11.Event) -> None:
        data = memoryview(b"".join(self._h11.send(event) or b"" for event in events))
        try:
            for start in range(0, len(data), WRITE_SIZE):
                with self._places.waiting(self._limits.send_period):
                    await self._stream.send_all(data[start : start + WRITE_SIZE])
        except _GONE:
            self._is_broken = True
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
