"""One connection of a server: HTTP/1.1 requests, one after the other, and their responses.

One task does it all, so nothing is left when it ends: it reads a request, and runs the ASGI application on it.
The application's ``receive`` reads the body from the connection, and after the body waits for the client to disconnect;
its ``send`` writes to the connection.
A request to change the protocol is granted if the application says so, by the extension ``trioformer.upgrade`` of
the scope; otherwise its ``Upgrade`` header is ignored, as HTTP allows.

Every wait for the peer has a deadline but one: while the application sends a response that has no end, such as a watch,
the peer may be silent.
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
"""How many bytes are read at once."""
WRITE_SIZE: Final = 64 * 1024
"""How many bytes are written within one ``send_period``."""
LINGER: Final = 1.0
"""Seconds for which what is still arriving is read before the connection is closed.

To close it with unread bytes would reset it, and the client would not see the response.
"""


@final
@attrs.frozen(kw_only=True)
class ServerLimits:
    """What a peer can make a server keep, and for how long."""

    connections: int = attrs.field(default=64, validator=validators.ge(1))
    """How many connections there may be."""
    head_size: int = attrs.field(default=16 * 1024, validator=validators.ge(1))
    """How many bytes the head of a request may have."""
    head_period: float = attrs.field(default=10.0, validator=validators.gt(0))
    """Seconds for the head of a request, and before that for the TLS handshake."""
    body_period: float = attrs.field(default=60.0, validator=validators.gt(0))
    """Seconds for the body of a request."""
    idle_period: float = attrs.field(default=90.0, validator=validators.gt(0))
    """Seconds that a connection stays open without a request."""
    send_period: float = attrs.field(default=5.0, validator=validators.gt(0))
    """Seconds within which the peer has to read 64 KB of the response."""


@final
@attrs.define(eq=False)
class Places:
    """The places of one server's connections.

    A connection that waits for a request, for the rest of its head, or for its client to read the response costs a file
    descriptor and does no work: when no place is free, the one that has waited longest is closed.
    Clients that keep many idle connections, send heads byte by byte, or do not read therefore cannot keep others out.
    """

    limit: int
    """How many connections there may be."""
    _used: int = attrs.field(default=0, init=False)
    _waiting: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The connections that wait for their clients, the one that began first in front."""
    _released: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    async def take(self) -> None:
        """Take a place for a new connection; :meth:`release` has to follow.

        Cancellation:
            No place is taken.
        """
        while self._used >= self.limit:
            self.close_one()
            await self._released.park()
        self._used += 1

    def release(self) -> None:
        """Release a place."""
        self._used -= 1
        self._released.unpark()

    def close_one(self) -> None:
        """Close the connection that has waited longest for its client, if one waits."""
        for scope in self._waiting:
            del self._waiting[scope]
            scope.cancel()
            return

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[trio.CancelScope]:
        """Wait for the client in the block; cancels it after the time, or when another connection needs the place."""
        with trio.move_on_after(seconds) as scope:
            self._waiting[scope] = None
            try:
                yield scope
            finally:
                self._waiting.pop(scope, None)


@final
@attrs.define(eq=False)
class Connection:
    """One connection, as the server's side has it."""

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
    """Whether the application has received the end of the body."""
    _refusal: int = attrs.field(default=0, init=False)
    """The status for a request whose body is malformed or late; 0 for none."""
    _is_broken: bool = attrs.field(default=False, init=False)
    """Whether the client has disconnected, or is treated as if it had."""

    def __attrs_post_init__(self) -> None:
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_size)

    async def serve(self) -> None:
        """Serve requests until the connection ends; the caller closes the stream.

        Cancellation:
            At any time; a response breaks off.
        """
        deadline = self._limits.head_period
        while True:
            request: h11.Request | None = None
            with self._places.waiting(deadline) as scope:
                request = await self._read_head(scope)
            if request is None:
                return
            await self._respond(request)
            if self._is_broken or self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
                break
            self._h11.start_next_cycle()
            deadline = self._limits.idle_period
        if not self._is_broken and self._h11.our_state in (h11.DONE, h11.MUST_CLOSE, h11.SWITCHED_PROTOCOL):
            await self._linger()

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _read_head(self, scope: trio.CancelScope) -> h11.Request | None:
        """Read the head of a request; returns None at the end of the connection, and for a request that is refused."""
        has_begun = False
        self._request = None
        size = len(self._h11.trailing_data[0])
        try:
            while True:
                event = self._h11.next_event()
                if isinstance(event, h11.Request):
                    self._request = event  # also when it is refused: to a HEAD request h11 sends no body
                    size -= len(self._h11.trailing_data[0])
                    break
                if event is not h11.NEED_DATA:  # the end of the connection
                    return None
                if not has_begun and self._h11.trailing_data[0]:
                    has_begun = True
                    scope.deadline = min(scope.deadline, trio.current_time() + self._limits.head_period)
                data = bytes(await self._stream.receive_some(READ_SIZE))
                size += len(data)
                self._h11.receive_data(data)
            if size > self._limits.head_size:  # h11 only checks it while a part is missing
                await self._refuse(431)
                return None
            if event.http_version not in (b"1.0", b"1.1"):
                await self._refuse(505)
                return None
            if not any(name in (b"content-length", b"transfer-encoding") for name, _ in event.headers):
                self._h11.next_event()  # the end of the message
        except h11.RemoteProtocolError as exc:
            if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self._h11.trailing_data[1]:
                await self._refuse(exc.error_status_hint)
            return None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return None
        self._body_deadline = trio.current_time() + self._limits.body_period
        self._refusal = 0
        self._is_body_read = False
        self._code = 0
        return event

    async def _refuse(self, code: int) -> None:
        """Respond to a request that is not valid, without a byte of it."""
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

    async def _linger(self) -> None:
        if self._is_broken:
            return
        with self._places.waiting(LINGER):
            try:
                if isinstance(self._stream, trio.abc.HalfCloseableStream):
                    await self._stream.send_eof()
                while await self._stream.receive_some(READ_SIZE):
                    pass
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return

    # --- responses ----------------------------------------------------------------------------------------------------

    async def _respond(self, request: h11.Request) -> None:
        try:
            await self._app(self._scope(request), self._receive, self._send)
        except Exception:
            # The boundary between the connections and what they are served: an error ends this response only.
            logger.exception("error in the response to a %s request", request.method.decode("ascii"))
            self._refusal = self._refusal or 500
        if self._refusal and not self._is_broken and self._h11.our_state is h11.SEND_RESPONSE:
            await self._refuse(self._refusal)
            self._is_broken = True
        if self._access_log is not None:
            self._log_access(self._access_log, request)

    def _log_access(self, log: logging.Logger, request: h11.Request) -> None:
        client = "-" if self._addresses[0] is None else self._addresses[0][0]
        target = f"{request.target.decode('ascii')} HTTP/{request.http_version.decode('ascii')}"
        log.info('%s "%s %s" %s', client, request.method.decode("ascii"), target, self._code or "-")

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
        await self._send_event(
            h11.InformationalResponse(status_code=101, headers=headers, reason="Switching Protocols")
        )
        self._code = 101
        return _Switched(self._stream, bytes(self._h11.trailing_data[0]))

    async def _receive(self) -> Message:
        """Return the next part of the body; after the last one, wait for the client to disconnect."""
        if self._is_broken or self._refusal:
            await trio.lowlevel.checkpoint()
            return {"type": "http.disconnect"}
        if self._is_body_read:
            await self._wait_for_disconnect()
            return {"type": "http.disconnect"}
        if self._h11.their_state is not h11.SEND_BODY:  # the request has no body
            self._is_body_read = True
            await trio.lowlevel.checkpoint()
            return {"type": "http.request", "body": b"", "more_body": False}
        with trio.move_on_at(self._body_deadline):
            return await self._read_body()
        self._refusal = 408
        return {"type": "http.disconnect"}

    async def _read_body(self) -> Message:
        try:
            while True:
                if self._h11.they_are_waiting_for_100_continue:
                    await self._send_event(h11.InformationalResponse(status_code=100, headers=[]))
                event = self._h11.next_event()
                if isinstance(event, h11.Data):
                    return {"type": "http.request", "body": bytes(event.data), "more_body": True}
                if event is not h11.NEED_DATA:
                    self._is_body_read = True
                    return {"type": "http.request", "body": b"", "more_body": False}
                self._h11.receive_data(bytes(await self._stream.receive_some(WRITE_SIZE)))
        except h11.RemoteProtocolError as exc:
            self._is_broken = self._h11.trailing_data[1]
            self._refusal = exc.error_status_hint
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._is_broken = True
        return {"type": "http.disconnect"}

    async def _wait_for_disconnect(self) -> None:
        try:
            while data := await self._stream.receive_some(READ_SIZE):
                self._h11.receive_data(bytes(data))  # it belongs to the next request
                if len(self._h11.trailing_data[0]) > self._limits.head_size:
                    await trio.sleep_forever()  # no more until this response is complete
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._is_broken = True

    async def _send(self, message: Message) -> None:
        """Send a part of the response; does nothing when the client has disconnected."""
        if self._is_broken:
            await trio.lowlevel.checkpoint()
        elif message["type"] == "http.response.start":
            headers = [(bytes(name), bytes(value)) for name, value in message["headers"]]
            headers.append((b"date", formatdate(usegmt=True).encode("ascii")))
            # What has been received beyond the request is either the rest of its body, which is not read, or requests
            # that are sent before this response.  No common client does that, and it could keep the server busy.
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
                # A peer that does not read costs a place like one that does not write.
                with self._places.waiting(self._limits.send_period) as scope:
                    await self._stream.send_all(data[start : start + WRITE_SIZE])
                if scope.cancelled_caught:
                    break
            else:
                return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        # It ends a task that waits for the client to disconnect, too.
        self._is_broken = True
        await trio.aclose_forcefully(self._stream)


@final
@attrs.define(eq=False)
class _Switched(trio.abc.Stream):
    """The bytes of another protocol; the connection is closed when the application returns."""

    _stream: trio.abc.Stream
    _first: bytes
    """What has arrived together with the request."""

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
