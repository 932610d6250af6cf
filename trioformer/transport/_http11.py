"""One HTTP/1.1 connection: a request after the other, each with its response.

httpcore's connection takes four locks for each request, each of which is a turn of trio's loop, and its pool asks every
connection for its state several times: with sixteen connections that was half of the CPU of a request.
Here nothing is locked, because nothing waits between the check of a state and its change, and a short request is one
write.  The grammar of HTTP is h11's, as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast, final

import attrs
import h11
import httpcore
import httpx
import trio

from ._network import _SocketStream
from ._response import SWITCHED

if TYPE_CHECKING:
    from ._proxy._forward import ForwardedRequests

READ_SIZE: Final = 64 * 1024
"""Bytes that one read of the network returns at most."""
_MAX_HEAD: Final = 100 * 1024
"""Bytes of a head that has not ended."""


@final
@attrs.frozen(kw_only=True)
class Head:
    """The head of a response."""

    code: int
    headers: list[tuple[bytes, bytes]]
    reason: bytes
    version: bytes


@final
class Http11Connection:
    """A connection to a server, which one task uses at a time.

    Attributes:
        stream: The network.
        is_idle: Whether it may be used for another request.
        is_closed: Whether it was closed on this side.
    """

    __slots__ = ("_expires_at", "_idle_period", "_machine", "is_closed", "is_idle", "stream")

    def __init__(self, stream: _SocketStream, idle_period: float) -> None:
        self.stream = stream
        self.is_idle: bool = False
        self.is_closed: bool = False
        self._idle_period = idle_period
        self._expires_at = 0.0
        self._machine = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "idle" if self.is_idle else "in use"
        return f"<{type(self).__name__}: {state}>"

    @property
    def has_expired(self) -> bool:
        """Whether it has been idle for too long, or was closed on this side."""
        return self.stream.is_closed or trio.current_time() > self._expires_at

    async def request(self, request: httpx.Request, forwarded: ForwardedRequests | None) -> Head:
        """Send a request, and receive the head of its response.

        Args:
            request: With a body that can be sent again, and the seconds for each ``write`` and ``read`` in its
                extension ``timeout``.
            forwarded: What it is for a proxy that forwards it; None without one.

        Raises:
            httpcore.ConnectionNotAvailable: The peer has closed the connection since it was used; nothing was sent.
            Exception: What httpcore raises when a request fails.

        Cancellation: the connection must be closed, as after an error.
        """
        self.is_idle = False
        machine, url, headers = self._machine, request.url, request.headers.raw
        target: bytes = request.extensions.get("target") or url.raw_path
        if forwarded is not None:
            target, headers = forwarded.target(url, target), forwarded.headers(headers)
        patience: Mapping[str, float | None] = request.extensions["timeout"]
        parts = [machine.send(h11.Request(method=request.method, target=target, headers=headers))]
        parts += [machine.send(h11.Data(data=piece)) async for piece in cast("httpx.AsyncByteStream", request.stream)]
        parts.append(machine.send(h11.EndOfMessage()))
        with suppress(httpcore.WriteError):  # a server may respond without reading everything, and close the connection
            await self.stream.write(b"".join([part for part in parts if part]), patience.get("write"))
        while True:
            event = await self._next_event(patience.get("read"))
            # Status 101 is informational for h11, and the end of HTTP.
            if isinstance(event, h11.Response) or (
                isinstance(event, h11.InformationalResponse) and event.status_code == SWITCHED
            ):
                found, version = event.headers.raw_items(), b"HTTP/" + event.http_version
                return Head(code=event.status_code, headers=found, reason=event.reason, version=version)

    async def receive(self, patience: float | None) -> bytes | None:
        """Receive the next bytes of the response's body; None at its end.

        Raises:
            Exception: What httpcore raises when a request fails.
        """
        while True:
            event = await self._next_event(patience)
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if event is h11.PAUSED or isinstance(event, h11.EndOfMessage):
                return None

    async def _next_event(self, patience: float | None) -> Any:
        machine = self._machine
        while (event := machine.next_event()) is h11.NEED_DATA:
            data = await self.stream.read(READ_SIZE, patience)
            if not data and machine.their_state is h11.SEND_RESPONSE:
                raise httpcore.RemoteProtocolError("Server disconnected without sending a response.")
            machine.receive_data(data)
        return event

    def received_after_head(self) -> bytes:
        """Return what has arrived after a head with status 101."""
        return bytes(self._machine.trailing_data[0])

    def release(self) -> None:
        """End the use for a request: the connection is idle if the response was complete, and closed otherwise."""
        machine = self._machine
        is_complete = machine.our_state is h11.DONE and machine.their_state is h11.DONE
        # Bytes after a response would be taken for the next one.
        if self.is_closed or not is_complete or self.stream.get_extra_info("is_readable"):
            self.close()
            return
        machine.start_next_cycle()
        self.is_idle = True
        self._expires_at = trio.current_time() + self._idle_period

    def close(self) -> None:
        """Close the connection; not a checkpoint, so it also works after a cancellation."""
        self.is_closed, self.is_idle = True, False
        self.stream.close()
