"""One connection of a server: HTTP/1.1 requests, one after the other, and their responses.

One task reads a request and runs the ASGI application on it.  The application's ``receive`` reads the body from the
connection, and after the body waits for the client to disconnect; its ``send`` writes to the connection.
The extension ``trioformer.upgrade`` of the scope switches to another protocol; an application that does not call it
ignores the request's ``Upgrade`` header.

Every wait for the peer has a deadline except one: during a response without an end, such as a watch, the peer may be
silent.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final, TypeAlias, final
from urllib.parse import unquote

import attrs
import h11
import trio
from attrs import validators

logger: Final = logging.getLogger("trioformer.serving")

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApplication: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

READ_SIZE: Final = 16 * 1024
"""The number of bytes to read at once."""
WRITE_SIZE: Final = 64 * 1024
"""The number of bytes to write within one ``send_period``."""
LINGER: Final = 1.0
"""Seconds to read what still arrives before the connection is closed.

Closing it with unread bytes would reset it, and the client would not see the response.
"""
_LOST: Final = (trio.BrokenResourceError, trio.ClosedResourceError)


@final
@attrs.frozen(kw_only=True)
class ServerLimits:
    """Limits of what a peer can make a server keep, in connections, bytes and seconds."""

    connections: int = attrs.field(default=64, validator=validators.ge(1))
    head_size: int = attrs.field(default=16 * 1024, validator=validators.ge(1))
    """The size of an incomplete head of a request."""
    head_period: float = attrs.field(default=10.0, validator=validators.gt(0))
    """The time for the TLS handshake, and for the first head."""
    body_period: float = attrs.field(default=60.0, validator=validators.gt(0))
    idle_period: float = attrs.field(default=90.0, validator=validators.gt(0))
    """The time until the head of a later request is complete."""
    send_period: float = attrs.field(default=5.0, validator=validators.gt(0))
    """The time for the peer to read 64 KB of the response."""


@final
@attrs.define(eq=False)
class Places:
    """The places of one server's connections.

    A connection that waits for its client costs a file descriptor and does no work.  If no place is free, the one that
    has waited longest is closed.
    So clients that keep idle connections, send heads byte by byte, or do not read cannot keep others out.
    """

    limit: int
    _used: int = attrs.field(default=0, init=False)
    _waiting: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The connections that wait for their clients, in the order in which they began."""
    _released: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    async def take(self) -> None:
        """Take a place for a new connection; :meth:`release` must follow, unless the wait is cancelled."""
        while self._used >= self.limit:
            self.close_one()
            await self._released.park()
        self._used += 1

    def release(self) -> None:
        """Release a place."""
        self._used -= 1
        self._released.unpark()

    def close_one(self) -> None:
        """Close the connection that has waited longest for its client, if any waits."""
        if (scope := next(iter(self._waiting), None)) is not None:
            del self._waiting[scope]
            scope.cancel()

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[trio.CancelScope]:
        """Cancel the block after the time, or when another connection needs the place."""
        with trio.move_on_after(seconds) as scope:
            self._waiting[scope] = None
            try:
                yield scope
            finally:
                self._waiting.pop(scope, None)


@final
@attrs.define(eq=False)
class Connection:
    """The server's side of one connection."""

    _app: ASGIApplication
    _stream: trio.abc.Stream
    _limits: ServerLimits
    _places: Places
    _scheme: str
    _addresses: tuple[tuple[str, int] | None, tuple[str, int] | None]
    """The client's and the server's."""
    _access_log: logging.Logger | None
    _h11: h11.Connection = attrs.field(init=False)
    _request: h11.Request | None = attrs.field(default=None, init=False)
    _body_deadline: float = attrs.field(default=0.0, init=False)
    _code: int = attrs.field(default=0, init=False)
    """The status of the response; 0 before it begins."""
    _is_body_read: bool = attrs.field(default=False, init=False)
    _refusal: int = attrs.field(default=0, init=False)
    """The status for a request whose body is malformed or whose response failed; 0 for none."""
    _is_broken: bool = attrs.field(default=False, init=False)
    """Whether the client has disconnected, or is treated as if it had."""

    def __attrs_post_init__(self) -> None:
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_size)

    async def serve(self) -> None:
        """Serve requests until the connection ends; the caller closes the stream."""
        period = self._limits.head_period
        while True:
            request: h11.Request | None = None
            with self._places.waiting(period):
                request = await self._read_head()
            if request is None:
                return
            await self._respond(request)
            if self._is_broken or self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
                break
            self._h11.start_next_cycle()
            period = self._limits.idle_period
        if not self._is_broken and self._h11.our_state in (h11.DONE, h11.MUST_CLOSE, h11.SWITCHED_PROTOCOL):
            await self._linger()

    async def _read_head(self) -> h11.Request | None:
        """Read the head of a request; return None at the end of the connection, and after a request is refused."""
        self._request, self._refusal, self._is_body_read, self._code = None, 0, False, 0
        try:
            while (event := self._h11.next_event()) is h11.NEED_DATA:
                self._h11.receive_data(bytes(await self._stream.receive_some(READ_SIZE)))
            if not isinstance(event, h11.Request):
                return None  # the end of the connection
            self._request = event  # also if it is refused: the response to a HEAD request has no body
            if event.http_version not in (b"1.0", b"1.1"):
                await self._refuse(505)
                return None
            if not any(name in (b"content-length", b"transfer-encoding") for name, _ in event.headers):
                self._h11.next_event()  # the end of the message
        except h11.RemoteProtocolError as exc:
            if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self._h11.trailing_data[1]:
                await self._refuse(exc.error_status_hint)
            return None
        except _LOST:
            return None
        self._body_deadline = trio.current_time() + self._limits.body_period
        return event

    async def _refuse(self, code: int) -> None:
        """Respond to a request that is not valid, without a byte of it, and end the connection."""
        text = f"{code} {HTTPStatus(code).phrase.lower()}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(text)).encode()),
            (b"connection", b"close"),
        ]
        await self._send_event(h11.Response(status_code=code, headers=headers))
        if self._request is None or self._request.method != b"HEAD":
            await self._send_event(h11.Data(data=text))
        await self._send_event(h11.EndOfMessage())
        await self._linger()
        self._is_broken = True

    async def _linger(self) -> None:
        if self._is_broken:
            return
        with self._places.waiting(LINGER):
            try:
                if isinstance(self._stream, trio.abc.HalfCloseableStream):
                    await self._stream.send_eof()
                while await self._stream.receive_some(READ_SIZE):
                    pass
            except _LOST:
                return

    async def _respond(self, request: h11.Request) -> None:
        method = request.method.decode("ascii")
        try:
            await self._app(self._scope(request), self._receive, self._send)
        except Exception:
            # The boundary between the connections and the application: an error ends this response only.
            logger.exception("error in the response to a %s request", method)
            self._refusal = self._refusal or 500
        if self._refusal and not self._is_broken and self._h11.our_state is h11.SEND_RESPONSE:
            await self._refuse(self._refusal)
        if self._access_log is not None:
            client = "-" if self._addresses[0] is None else self._addresses[0][0]
            target = f"{request.target.decode('ascii')} HTTP/{request.http_version.decode('ascii')}"
            self._access_log.info('%s "%s %s" %s', client, method, target, self._code or "-")

    def _scope(self, request: h11.Request) -> Message:
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.http_version.decode("ascii"),
            "method": request.method.decode("ascii"),
            "scheme": self._scheme,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": self._addresses[0],
            "server": self._addresses[1],
            "extensions": {"trioformer.upgrade": self._upgrade},
        }

    async def _upgrade(self, headers: list[tuple[bytes, bytes]]) -> trio.abc.Stream:
        """Switch to another protocol, and return its stream; the request must have asked for it."""
        response = h11.InformationalResponse(status_code=101, headers=headers, reason="Switching Protocols")
        await self._send_event(response)
        self._code = 101
        return _Switched(self._stream, bytes(self._h11.trailing_data[0]))

    async def _receive(self) -> Message:
        """Return the next part of the body; after the last one, wait for the client to disconnect."""
        if self._is_broken or self._refusal:
            await trio.lowlevel.checkpoint()
        elif self._is_body_read:
            await self._wait_for_disconnect()
        elif self._h11.their_state is not h11.SEND_BODY:  # the request has no body
            self._is_body_read = True
            await trio.lowlevel.checkpoint()
            return {"type": "http.request", "body": b"", "more_body": False}
        else:
            with trio.move_on_at(self._body_deadline) as scope:
                data = await self._read_body()
            if scope.cancelled_caught:
                self._refusal = 408
            elif data is not None:
                return {"type": "http.request", "body": data, "more_body": not self._is_body_read}
        return {"type": "http.disconnect"}

    async def _read_body(self) -> bytes | None:
        """Return the next bytes of the body, none at its end; None if it is malformed or the client disconnects."""
        try:
            while True:
                if self._h11.they_are_waiting_for_100_continue:
                    await self._send_event(h11.InformationalResponse(status_code=100, headers=[]))
                event = self._h11.next_event()
                if isinstance(event, h11.Data):
                    return bytes(event.data)
                if event is not h11.NEED_DATA:
                    self._is_body_read = True
                    return b""
                self._h11.receive_data(bytes(await self._stream.receive_some(WRITE_SIZE)))
        except h11.RemoteProtocolError as exc:
            self._is_broken = self._h11.trailing_data[1]
            self._refusal = exc.error_status_hint
        except _LOST:
            self._is_broken = True
        return None

    async def _wait_for_disconnect(self) -> None:
        try:
            while data := await self._stream.receive_some(READ_SIZE):
                self._h11.receive_data(bytes(data))  # it belongs to the next request
                if len(self._h11.trailing_data[0]) > self._limits.head_size:
                    await trio.sleep_forever()  # read no more until this response is complete
        except _LOST:
            pass
        self._is_broken = True

    async def _send(self, message: Message) -> None:
        """Send a part of the response; do nothing if the client has disconnected."""
        if self._is_broken:
            await trio.lowlevel.checkpoint()
        elif message["type"] == "http.response.start":
            headers = [(bytes(name), bytes(value)) for name, value in message["headers"]]
            headers.append((b"date", formatdate(usegmt=True).encode("ascii")))
            # Bytes beyond the request are the rest of its body, which is not read, or requests that do not wait for
            # this response.  No common client sends these, and they could keep the server busy.
            if self._h11.their_state in (h11.SEND_BODY, h11.ERROR) or self._h11.trailing_data[0]:
                headers.append((b"connection", b"close"))
            await self._send_event(h11.Response(status_code=message["status"], headers=headers))
        else:
            body = message.get("body", b"")
            if body and self._request is not None and self._request.method != b"HEAD":
                await self._send_event(h11.Data(data=body))
            if not message.get("more_body", False):
                await self._send_event(h11.EndOfMessage())

    async def _send_event(self, event: h11.Event) -> None:
        data = memoryview(self._h11.send(event) or b"")
        if isinstance(event, h11.Response):
            self._code = event.status_code
        try:
            for start in range(0, len(data), WRITE_SIZE):
                with self._places.waiting(self._limits.send_period) as scope:
                    await self._stream.send_all(data[start : start + WRITE_SIZE])
                if scope.cancelled_caught:
                    break
            else:
                return
        except _LOST:
            pass
        self._is_broken = True
        await trio.aclose_forcefully(self._stream)  # wakes a task that waits for the client to disconnect


@final
@attrs.define(eq=False)
class _Switched(trio.abc.Stream):
    """The bytes of another protocol; the connection is closed when the application returns."""

    _stream: trio.abc.Stream
    _first: bytes
    """The bytes that arrived together with the request."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if not self._first:
            return bytes(await self._stream.receive_some(READ_SIZE if max_bytes is None else max_bytes))
        await trio.lowlevel.checkpoint()
        data, self._first = self._first, b""
        return data

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
