"""WebSockets with channels, for exec, attach and port forwarding, on the client side and on the server side.

Every message is binary, and its first byte is the number of a channel.
In ``v5.channel.k8s.io``, a message on channel 255 closes the channel that it names. In v4, channels cannot be closed.
In ``SPDY/3.1+portforward.k8s.io``, messages do not have a channel, but carry a stream of SPDY bytes (``_spdy.py``).

wsproto generates and parses the frames, but the frames that a client receives most often are parsed by a faster
parser.  The caller performs the handshake, which is an ordinary HTTP request on the client side.

There is no background task.
The receiving task responds to pings. On the client side, this task also pings a silent server.
While no task is receiving, the peer is not pinged, and can send only until the socket buffers are full.

Source: apimachinery ``pkg/util/httpstream/wsstream``, client-go ``tools/remotecommand/websocket.go``.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import groupby
from operator import itemgetter
from typing import Final, final

import trio
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Message, Ping, Pong
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, generate_accept_token

from ._websocket_frames import Piece, ReceivedMessages

V4: Final = "v4.channel.k8s.io"
V5: Final = "v5.channel.k8s.io"
CLOSE: Final = 255
"""The channel for messages that close another channel."""

PING_PERIOD: Final = 5.0
"""Seconds of silence after which the peer is pinged (client-go's ``pingPeriod``)."""
PING_PATIENCE: Final = 61.0
"""Seconds to wait for a response (client-go's ``pingReadDeadline``)."""
_CONTROL_PATIENCE: Final = 5.0
"""Seconds to send a ping or pong. Sending continues even if the task is cancelled, since a partial frame would break
the connection."""
_CLOSE_PATIENCE: Final = 0.5
"""Seconds to send the close frame."""
_PIECE: Final = 32 * 1024
"""Bytes of one message, as in kubectl."""
_RECEIVE_SIZE: Final = 256 * 1024
"""The maximum number of bytes per read, which is also the number of bytes that a client's connections decrypt at once.

With 512 KiB glibc returns the memory to the kernel after each read, which takes as long as decrypting.
"""
_SLICE: Final = 256
"""Frames that are parsed between two checkpoints."""
_CHANNEL_OF: Final = itemgetter(0)
_FAILURES: Final = (CloseReason.PROTOCOL_ERROR, CloseReason.INVALID_FRAME_PAYLOAD_DATA, CloseReason.MESSAGE_TOO_BIG)

accept_token = generate_accept_token
"""Returns the ``Sec-WebSocket-Accept`` for a ``Sec-WebSocket-Key``, both as bytes."""


@final
class ChannelSocket:
    """A WebSocket with several channels. One task may receive while other tasks send.

    Attributes:
        protocol: The negotiated protocol: :data:`V4`, :data:`V5`, or another protocol with the same messages.
        close_text: The peer's reason for closing. It is empty if the peer gave no reason.
    """

    def __init__(self, stream: trio.abc.Stream, protocol: str, *, is_client: bool) -> None:
        self.protocol: str = protocol
        self.close_text: str = ""
        self._stream = stream
        self._is_client = is_client
        self._has_channels = not protocol.startswith("SPDY/")
        self._frames = Connection(ConnectionType.CLIENT if is_client else ConnectionType.SERVER)
        self._received = ReceivedMessages(self._frames, is_client=is_client, has_channels=self._has_channels)
        self._pieces: deque[Piece] = deque()
        """The pieces from one read of the stream that have not been returned yet."""
        self._sending = trio.Lock()
        self._is_closed = self._is_receiving = self._cannot_send = False
        self._has_peer_closed = False
        self._failure = ""
        """The error in the frames, which is raised when all data before the error has been returned."""
        self._ping_at = trio.current_time() + PING_PERIOD
        self._pinged_at = math.inf
        """When the first unanswered ping was sent."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.protocol}: {'closed' if self._is_closed else 'open'}>"

    @property
    def can_close_channels(self) -> bool:
        """Whether the protocol supports :meth:`close_channel`."""
        return self.protocol == V5

    @property
    def is_readable(self) -> bool:
        """Whether unread data has arrived. False if the stream cannot report this."""
        has_data = self._pieces or self._received.has_more or self._has_peer_closed
        return bool(has_data or getattr(self._stream, "is_readable", False))

    async def send(self, channel: int, data: bytes | bytearray | memoryview) -> None:
        """Send bytes on a channel. Other tasks may send between the messages.  Empty data sends nothing.

        For a protocol without channels, the channel is ignored.

        Raises:
            trio.BrokenResourceError: The connection has ended, or an earlier call was cancelled.
            trio.ClosedResourceError: The socket is closed.

        Cancellation:
            Part of the data may have been sent. In this case, later sends fail.
        """
        rest = memoryview(data)
        await trio.lowlevel.checkpoint_if_cancelled()
        while rest:
            async with self._sending:
                self._check_sending()
                prefix = bytes((channel,)) if self._has_channels else b""
                await self._send_event(Message(data=prefix + rest[:_PIECE]))
            rest = rest[_PIECE:]

    async def close_channel(self, channel: int) -> None:
        """Tell the peer that no more data follows on a channel.

        Raises:
            ValueError: The protocol cannot close a channel.
            trio.BrokenResourceError: As for :meth:`send`.
            trio.ClosedResourceError: As for :meth:`send`.
        """
        if not self.can_close_channels:
            raise ValueError(f"{self.protocol} cannot close a channel")
        await self.send(CLOSE, bytes((channel,)))

    async def receive(self) -> tuple[int, bytes] | None:
        """Receive a part of a message, and return its channel and its bytes, which may be empty.

        In a protocol without channels, the channel is 0.

        Returns:
            Returns None when the peer has closed the socket.

        Raises:
            trio.BrokenResourceError: The connection broke, the received data is not valid WebSocket data, or the peer
                does not respond.
            trio.ClosedResourceError: The socket is closed.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Nothing is lost.
        """
        await self._fill()
        if not self._pieces:
            return None
        channel, data = self._pieces.popleft()
        return channel, bytes(data)

    async def receive_batch(self) -> list[tuple[int, bytes]]:
        """Wait for data, and return all parts of messages that have arrived.

        Return an empty list when the peer has closed the socket.

        Consecutive parts on one channel are joined.
        The exceptions are the same as for :meth:`receive`.
        """
        await self._fill()
        batch = [(channel, b"".join([data for _, data in run])) for channel, run in groupby(self._pieces, _CHANNEL_OF)]
        self._pieces.clear()
        return batch

    async def _fill(self) -> None:
        """Receive until there are parts of messages, or until the peer has ended the connection."""
        if self._is_receiving:
            raise trio.BusyResourceError("another task is already receiving from this WebSocket")
        self._is_receiving = True
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            while not self._pieces:
                if self._is_closed:
                    raise trio.ClosedResourceError("this WebSocket is closed")
                if self._failure:
                    raise trio.BrokenResourceError(self._failure)
                if self._has_peer_closed:
                    return
                if self._received.has_more:
                    await trio.lowlevel.checkpoint()  # a peer can send a hundred thousand frames that arrive at once
                elif data := await self._receive_bytes():
                    self._received.feed(data)
                else:
                    # Kubelets and proxies often end connections without a close frame.
                    self._has_peer_closed = True
                    self._failure = "the connection ended inside a message" if self._received.is_inside else ""
                    continue
                await self._handle()
        finally:
            self._is_receiving = False

    async def aclose(self) -> None:
        """Close the connection. A close frame is sent first if no other task is sending."""
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        try:
            if not (self._cannot_send or self._sending.locked()):
                with trio.CancelScope(deadline=trio.current_time() + _CLOSE_PATIENCE, shield=True):
                    async with self._sending:
                        await self._send_event(CloseConnection(code=CloseReason.NORMAL_CLOSURE))
        except trio.BrokenResourceError:
            pass
        finally:
            await self._stream.aclose()

    # --- sending ---

    def _check_sending(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this WebSocket is closed")
        if self._cannot_send:
            raise trio.BrokenResourceError("no more data can be sent on this connection")

    async def _send_event(self, event: Event) -> None:
        """Send a frame. The caller must hold the lock."""
        try:
            data = self._frames.send(event)
        except LocalProtocolError as exc:  # a close frame was received
            self._cannot_send = True
            raise trio.BrokenResourceError("the peer has closed the connection") from exc
        self._cannot_send = True  # until all of it has been sent
        await self._stream.send_all(data)
        self._cannot_send = isinstance(event, CloseConnection)

    async def _send_control(self, event: Event, *, must_wait: bool = True) -> bool:
        """Send a control frame between the frames of other tasks, and return whether it was sent.

        If it was not sent, the next read raises the error that prevented it.
        """
        if self._sending.locked() and not must_wait:
            return False
        with trio.CancelScope(deadline=trio.current_time() + _CONTROL_PATIENCE, shield=True):
            async with self._sending:
                if not (self._cannot_send or self._is_closed):
                    try:
                        await self._send_event(event)
                    except trio.BrokenResourceError:
                        return False
                    return True
        return False

    # --- receiving ---

    async def _receive_bytes(self) -> bytes:
        if not self._is_client:
            return bytes(await self._stream.receive_some(_RECEIVE_SIZE))
        while True:
            now = trio.current_time()
            # If no task has received for some time, data that arrived meanwhile is received first.
            with trio.move_on_at(max(self._ping_at, now + 1.0)):
                data = bytes(await self._stream.receive_some(_RECEIVE_SIZE))
                self._pinged_at = math.inf
                self._ping_at = trio.current_time() + PING_PERIOD
                return data
            now = trio.current_time()
            if now >= self._pinged_at + PING_PATIENCE:
                raise trio.BrokenResourceError(f"the peer has not responded to pings for {PING_PATIENCE:g} s")
            self._ping_at = now + PING_PERIOD
            # If another task is blocked in sending, the peer does not receive, perhaps for a reason: do not ping.
            if await self._send_control(Ping(), must_wait=False):
                self._pinged_at = min(self._pinged_at, now)

    async def _handle(self) -> None:
        """Parse the received data into pieces of messages, and respond to control frames."""
        for event in self._received.take(_SLICE):  # an error in a frame is a CloseConnection too
            if isinstance(event, tuple):
                self._pieces.append(event)
            elif isinstance(event, Ping):
                await self._send_control(event.response())
            elif isinstance(event, CloseConnection):
                await self._handle_close(event)
            elif not isinstance(event, Pong):
                is_empty = isinstance(event, BytesMessage)
                self._failure = "received a message without a channel" if is_empty else "received a text message"
                return

    async def _handle_close(self, event: CloseConnection) -> None:
        self._has_peer_closed = True
        if event.code != CloseReason.NORMAL_CLOSURE:
            is_coded = event.code != CloseReason.NO_STATUS_RCVD
            self.close_text = event.reason or (f"close code {int(event.code)}" if is_coded else "")
        if event.code in _FAILURES:
            self._failure = f"the WebSocket has failed: {event.reason or 'code ' + str(int(event.code))}"
        await self._send_control(CloseConnection(code=CloseReason.NORMAL_CLOSURE))
