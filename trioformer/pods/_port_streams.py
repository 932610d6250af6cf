"""A connection to a port of a pod, as a stream of trio.

::

    api.connect_port ── GET …/portforward ─▶ ChannelSocket (SPDY/3.1+portforward.k8s.io)
      stream.send_all ─────── data of stream 3 ───▶
      stream.send_eof ─────── its end ────────────▶
      stream.receive_some ◀── data of stream 3 ────
                          ◀── data of stream 1 ────   why the node has given up, if it has

Each connection has a WebSocket of its own, although one could have many: in SPDY as Kubernetes speaks it, a connection
that nobody reads blocks the others.
There is no task; while nobody receives, the pod cannot send more than fits into the buffers on the way.

Whoever receives pings a silent node, without a deadline: a node does not respond while the pod does not read what was
sent to it.
It is kube-apiserver that needs the ping: it notices that the node has gone only when it has something for it, and then
ends the connection.

Source: client-go ``tools/portforward`` and kubernetes ``pkg/kubelet/server/portforward``.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import AsyncExitStack, suppress
from typing import Final, final

import attrs
import trio

from .._channels import ChannelSocket
from .._spdy import TUNNEL, Pinged, SpdyError, SpdyEvent, SpdyFrames, StreamAccepted, StreamData, StreamReset
from .._text import one_line
from .._util import NoPublicConstructor
from ..errors import ConnectionFailedError, PortForwardError, TrioformerError
from ..transport._internal import Transport
from ._websocket import open_channels

_ERROR: Final = 1
_DATA: Final = 3
_PIECE: Final = 32 * 1024 - 8
"""Bytes of one frame, which is one message of the WebSocket."""
_MAX_TEXT: Final = 4 * 1024
"""Bytes of the node's error that are kept."""
_END_PATIENCE: Final = 1.0
"""Seconds after the end of the data in which the node may still say that it was an error."""
_CONTROL_PATIENCE: Final = 5.0
"""Seconds that sending a short frame may take, even if the task is cancelled: a part of it would be no frame."""
_OPEN_PATIENCE: Final = 30.0
"""Seconds in which the node must accept the streams (client-go's ``createStreamResponseTimeout``)."""
_PING_PERIOD: Final = 10.0
"""Seconds of silence after which the node is pinged (client-go's ``PingPeriod``)."""
_NEXT_PING: Final = 60.0
"""Seconds after a ping without a response until the next one (spdystream's ``PingTimeout``)."""


@final
@attrs.define(eq=False, repr=False)
class PodConnection(trio.abc.HalfCloseableStream, metaclass=NoPublicConstructor):
    """A connection to a port of a pod; :func:`connect_port` makes it and closes it.

    One task may send while another one receives.
    """

    pod: str
    """The name of the pod."""
    port: int
    """The port in the pod."""
    _socket: ChannelSocket
    _where: str
    _server: str
    _frames: SpdyFrames = attrs.field(factory=lambda: SpdyFrames(is_client=True), init=False)
    _resources: AsyncExitStack = attrs.field(factory=AsyncExitStack, init=False)
    _pieces: deque[bytes] = attrs.field(factory=deque, init=False)
    _accepted: set[int] = attrs.field(factory=set, init=False)
    _receiving: set[int] = attrs.field(factory=lambda: {_ERROR, _DATA}, init=False)
    """The streams of SPDY that the node has not ended."""
    _text: bytes = attrs.field(default=b"", init=False)
    """What the node has said on the stream of the error."""
    _was_reset: bool = attrs.field(default=False, init=False)
    _error: TrioformerError | None = attrs.field(default=None, init=False)
    """Raised when everything that was received before it has been returned."""
    _end_deadline: float = attrs.field(default=math.inf, init=False)
    _ping_at: float = attrs.field(factory=lambda: trio.current_time() + _PING_PERIOD, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)
    _has_sent_eof: bool = attrs.field(default=False, init=False)
    _is_sending: bool = attrs.field(default=False, init=False)
    _is_receiving: bool = attrs.field(default=False, init=False)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "failed" if self._error is not None else "open"
        return f"<{type(self).__name__} to port {self.port} of {self.pod}: {state}>"

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes to the pod.

        Raises:
            trio.BrokenResourceError: The connection has ended, or an earlier call was cancelled.
            trio.ClosedResourceError: This stream is closed, or :meth:`send_eof` was called.
            trio.BusyResourceError: Another task is sending.

        Cancellation:
            The pod may have received a part, and nothing more can be sent to it.
        """
        if self._has_sent_eof and not self._is_closed:
            raise trio.ClosedResourceError("send_eof() was called on this stream")
        rest = memoryview(data)
        if not rest:
            self._check_sending()
            await trio.lowlevel.checkpoint()
        while rest:
            await self._send(self._frames.data(_DATA, rest[:_PIECE]))
            rest = rest[_PIECE:]

    async def send_eof(self) -> None:
        """Tell the pod that nothing more follows; what it sends can still be received.

        Raises:
            trio.BrokenResourceError: As for :meth:`send_all`.
            trio.ClosedResourceError: This stream is closed.
            trio.BusyResourceError: Another task is sending.
        """
        if self._has_sent_eof and not self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        await self._send(self._frames.data(_DATA, b"", is_end=True))
        self._has_sent_eof = True

    async def wait_send_all_might_not_block(self) -> None:
        """Return immediately: whether the pod reads is not known."""
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive bytes; ``b""`` when the pod has closed the connection.

        Meanwhile the node is pinged every ten seconds, as otherwise nobody would notice that it has gone.

        Raises:
            trio.BrokenResourceError: The node could not connect, or lost the connection to the pod (its cause is a
                :class:`~trioformer.errors.PortForwardError`); or the connection to the node broke (a
                :class:`~trioformer.errors.ConnectionFailedError`).
            trio.ClosedResourceError: This stream is closed.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Nothing is lost.
        """
        if max_bytes is not None and max_bytes < 1:
            raise ValueError("max_bytes must be at least 1")
        if self._is_receiving:
            raise trio.BusyResourceError("another task is already receiving from this connection")
        self._is_receiving = True
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            while not self._pieces and self._error is None and self._receiving and not self._is_closed:
                await self._receive()
        finally:
            self._is_receiving = False
        if self._is_closed:
            raise trio.ClosedResourceError("this connection is closed")
        if not self._pieces:
            if self._error is not None:
                raise trio.BrokenResourceError(str(self._error)) from self._error
            return b""
        piece = self._pieces.popleft()
        if max_bytes is not None and len(piece) > max_bytes:
            self._pieces.appendleft(piece[max_bytes:])
            piece = piece[:max_bytes]
        return piece

    async def aclose(self) -> None:
        """Close the connection; what was not received is dropped."""
        self._is_closed = True
        await self._resources.aclose()
        await trio.lowlevel.checkpoint_if_cancelled()

    @property
    def failure(self) -> TrioformerError | None:
        """Why the connection has ended, if that was an error; known when everything before it was received."""
        return None if self._pieces else self._error

    # --- sending ---

    def _check_sending(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this connection is closed")
        if self._is_sending:
            raise trio.BusyResourceError("another task is already sending on this connection")
        if self._error is not None or _DATA not in self._receiving:
            # A node ends what the pod sends only together with the connection.
            reason = self._error or "the connection to the pod has ended; receiving from it says why"
            raise trio.BrokenResourceError(str(reason)) from self._error

    async def _send(self, frame: bytes) -> None:
        self._check_sending()
        self._is_sending = True
        try:
            await self._socket.send(0, frame)
        finally:
            self._is_sending = False

    # --- receiving ---

    async def open(self) -> None:
        """Open the streams.

        Raises:
            PortForwardError: The node has refused them.
            ConnectionFailedError: The connection ended before that, or the node is silent.
        """
        headers = {"port": str(self.port), "requestid": "0"}
        opening = self._frames.open(_ERROR, {"streamtype": "error", **headers})
        opening += self._frames.open(_DATA, {"streamtype": "data", **headers})
        try:
            with trio.move_on_after(_OPEN_PATIENCE) as scope:
                await self._socket.send(0, opening)
                await self._wait_until_accepted()
                await self._send_control(self._frames.data(_ERROR, b"", is_end=True))
        except trio.BrokenResourceError as exc:
            raise ConnectionFailedError(f"{self._where}: {self._server}: {exc}") from exc
        if scope.cancelled_caught:
            problem = f"the node has not accepted the connection within {_OPEN_PATIENCE:g} s"
            raise ConnectionFailedError(f"{self._where}: {self._server}: {problem}")

    async def _wait_until_accepted(self) -> None:
        """Wait: a node drops data that arrives before it has accepted the stream."""
        while True:
            await self._receive()
            if self._accepted.issuperset((_DATA, _ERROR)):
                return  # what the node has said after that, perhaps at once, is an error of the stream
            if self._error is not None:
                raise self._error
            if not self._receiving:
                raise PortForwardError(f"{self._where}: the node has refused the connection")

    async def _receive(self) -> None:
        """Receive what has arrived, or the end; or ping the node."""
        received: list[tuple[int, bytes]] | None = None
        # After a time in which nobody has received, what has arrived meanwhile is received first.
        ping_at = max(self._ping_at, trio.current_time() + 1.0)
        try:
            with trio.move_on_at(min(self._end_deadline, ping_at)):
                received = await self._socket.receive_batch()
        except trio.BrokenResourceError as exc:
            self._end(exc)
            return
        # no checkpoint between receiving something and remembering it
        if received is None and trio.current_time() < self._end_deadline:
            await self._ping()
            return
        self._ping_at = trio.current_time() + _PING_PERIOD
        if not received:
            self._end(None)
            return
        responses: list[bytes] = []
        try:
            for _, data in received:
                for event in self._frames.receive(data):
                    self._handle(event, responses)
        except SpdyError as exc:
            self._end(trio.BrokenResourceError(str(exc)))
        if responses:
            await self._send_control(b"".join(responses))

    async def _ping(self) -> None:
        # Who is blocked in sending keeps the connection busy, and may wait until something is received.
        self._ping_at = trio.current_time() + (_PING_PERIOD if self._is_sending else _NEXT_PING)
        if not self._is_sending:
            await self._send_control(self._frames.ping())

    async def _send_control(self, frame: bytes) -> None:
        """Send a frame between those of other tasks, if that is possible; receiving shows why it is not."""
        with (
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
            trio.move_on_after(_CONTROL_PATIENCE, shield=True),
        ):
            await self._socket.send(0, frame)

    def _handle(self, event: SpdyEvent, responses: list[bytes]) -> None:
        if isinstance(event, StreamData):
            if event.data and event.stream not in self._accepted:
                raise SpdyError("data of a stream that the node has not accepted")
            if event.stream == _DATA and event.data:
                self._pieces.append(event.data)
            elif event.stream == _ERROR:
                self._text = (self._text + event.data)[:_MAX_TEXT]
            if event.is_end:
                self._end_stream(event.stream)
        elif isinstance(event, StreamAccepted):
            self._accepted.add(event.stream)
        elif isinstance(event, StreamReset):
            self._was_reset = self._was_reset or event.stream == _DATA
            self._end_stream(event.stream)
        elif isinstance(event, Pinged):
            responses.append(event.frame)

    def _end_stream(self, stream: int) -> None:
        self._receiving.discard(stream)
        if not self._receiving:
            self._conclude()
        elif stream == _DATA:
            self._end_deadline = trio.current_time() + _END_PATIENCE

    def _end(self, cause: trio.BrokenResourceError | None) -> None:
        """Nothing more is received."""
        if _DATA in self._receiving and not self._text and self._error is None:
            what = str(cause or self._socket.close_text) or "the connection to the node has ended"
            self._error = ConnectionFailedError(f"{self._where}: {self._server}: {what}")
            self._error.__cause__ = cause
        self._receiving.clear()
        self._conclude()

    def _conclude(self) -> None:
        """Say why the connection has ended, if that is an error."""
        if self._error is None and (self._text or self._was_reset):
            text = one_line(self._text.decode(errors="replace")).strip()
            self._error = PortForwardError(f"{self._where}: {text or 'the node has reset the connection'}")


async def connect(transport: Transport, path: str, *, where: str, pod: str, port: int) -> PodConnection:
    """Connect to a port of a pod; the caller closes the connection.

    Args:
        transport: The connections to the server.
        path: That of the subresource ``portforward``.
        where: The operation, for errors.
        pod: The name of the pod.
        port: The port.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: It, or a proxy before it, does not speak what is needed.
        ConnectionFailedError: The connection failed.
        PortForwardError: The node has refused.

    Cancellation: closes what was opened.
    """
    async with AsyncExitStack() as stack:
        opened = open_channels(transport, path, where=where, protocols=(TUNNEL,))
        socket, server = await stack.enter_async_context(opened)
        connection = PodConnection._create(pod, port, socket, where, server)
        await connection.open()
        connection._resources = stack.pop_all()
    return connection
