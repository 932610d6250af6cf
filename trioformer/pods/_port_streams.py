"""Connect to a port of a pod through a trio stream.

::

    connect_port ────── GET …/portforward ─▶ ChannelSocket (SPDY/3.1+portforward.k8s.io)
      stream.send_all ─────── data of stream 3 ───▶
      stream.send_eof ─────── its end ────────────▶
      stream.receive_some ◀── data of stream 3 ────
                          ◀── data of stream 1 ────   the error of the node, if any

Each connection uses its own WebSocket.  One WebSocket could carry several connections, but in the Kubernetes
implementation of SPDY, an unread connection blocks all others.
There is no background task.  While no task receives, the pod can send only as much data as the buffers can hold.

The receiving task pings a silent node.  A ping has no deadline, because a node does not respond while the pod is not
reading its data.
The ping is necessary because kube-apiserver notices the failure of a node only when it sends data to the node.  After
a failure, kube-apiserver closes the connection.

Sources: ``tools/portforward`` in client-go, and ``pkg/kubelet/server/portforward`` in kubernetes.
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
"""The maximum number of bytes in one frame, which is one WebSocket message."""
_MAX_TEXT: Final = 4 * 1024
"""The maximum size of an error message from the node in bytes."""
_END_PATIENCE: Final = 1.0
"""The number of seconds after the end of the data in which the node may still report an error."""
_CONTROL_PATIENCE: Final = 5.0
"""The maximum number of seconds for sending a control frame.  A cancelled task still completes the frame, because an
incomplete frame breaks the connection."""
_OPEN_PATIENCE: Final = 30.0
"""The number of seconds in which the node must accept the streams (client-go's ``createStreamResponseTimeout``)."""
_PING_PERIOD: Final = 10.0
"""The number of seconds without data after which the node is pinged (client-go's ``PingPeriod``)."""
_NEXT_PING: Final = 60.0
"""The number of seconds between two pings if there is no response (spdystream's ``PingTimeout``)."""


@final
@attrs.define(eq=False, repr=False)
class PodConnection(trio.abc.HalfCloseableStream, metaclass=NoPublicConstructor):
    """A connection to a port of a pod; one task may send while another task receives."""

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
    """The SPDY streams that the node has not closed."""
    _text: bytes = attrs.field(default=b"", init=False)
    """The data received on the error stream."""
    _was_reset: bool = attrs.field(default=False, init=False)
    _error: TrioformerError | None = attrs.field(default=None, init=False)
    """The error to raise after all received data was returned."""
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
            The pod may have received part of the data, and no more data can be sent.
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
        """Signal the end of the data to the pod; data from the pod can still be received.

        Raises:
            trio.BrokenResourceError: The connection has ended, or an earlier call was cancelled.
            trio.ClosedResourceError: This stream is closed.
            trio.BusyResourceError: Another task is sending.
        """
        if self._has_sent_eof and not self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        await self._send(self._frames.data(_DATA, b"", is_end=True))
        self._has_sent_eof = True

    async def wait_send_all_might_not_block(self) -> None:
        """Return immediately, because it is not known whether the pod is reading data."""
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive bytes, or ``b""`` after the pod has closed the connection.

        A silent node is pinged every ten seconds to detect its failure.

        Raises:
            trio.BrokenResourceError: The node could not connect to the pod, or a connection broke.  The cause of this
                exception is a :class:`~trioformer.errors.PortForwardError` if the node has reported the error, and a
                :class:`~trioformer.errors.ConnectionFailedError` otherwise.
            trio.ClosedResourceError: This stream is closed.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            No data is lost.
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
        """Close the connection, and discard unread data."""
        self._is_closed = True
        await self._resources.aclose()
        await trio.lowlevel.checkpoint_if_cancelled()

    @property
    def failure(self) -> TrioformerError | None:
        """The error that ended the connection, or None; it is set after all earlier data was received."""
        return None if self._pieces else self._error

    # --- sending ---

    def _check_sending(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this connection is closed")
        if self._is_sending:
            raise trio.BusyResourceError("another task is already sending on this connection")
        if self._error is not None or _DATA not in self._receiving:
            # A node ends the data of the pod only together with the connection.
            reason = self._error or "the connection to the pod has ended; receive from it to get the reason"
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
        """Open the SPDY streams of the connection.

        Raises:
            PortForwardError: The node refused the streams.
            ConnectionFailedError: The connection ended, or the node did not respond.
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
            problem = f"the node did not accept the connection within {_OPEN_PATIENCE:g} s"
            raise ConnectionFailedError(f"{self._where}: {self._server}: {problem}")

    async def _wait_until_accepted(self) -> None:
        """Wait until the node accepts the streams, because the node drops data that arrives earlier."""
        while True:
            await self._receive()
            if self._accepted.issuperset((_DATA, _ERROR)):
                return  # an error that follows is an error of the stream
            if self._error is not None:
                raise self._error
            if not self._receiving:
                raise PortForwardError(f"{self._where}: the node refused the connection")

    async def _receive(self) -> None:
        """Wait for data or the end of the connection, and ping a silent node."""
        received: list[tuple[int, bytes]] | None = None
        # Data that arrived while no task was receiving is received first.
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
        # A blocked sender keeps the connection busy, and may wait until this task receives.
        self._ping_at = trio.current_time() + (_PING_PERIOD if self._is_sending else _NEXT_PING)
        if not self._is_sending:
            await self._send_control(self._frames.ping())

    async def _send_control(self, frame: bytes) -> None:
        """Send a control frame between the frames of other tasks; a failure is raised when receiving."""
        with (
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
            trio.move_on_after(_CONTROL_PATIENCE, shield=True),
        ):
            await self._socket.send(0, frame)

    def _handle(self, event: SpdyEvent, responses: list[bytes]) -> None:
        if isinstance(event, StreamData):
            if event.data and event.stream not in self._accepted:
                raise SpdyError("received data on a stream that the node has not accepted")
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
        """Handle the end of the connection to the node."""
        if _DATA in self._receiving and not self._text and self._error is None:
            what = str(cause or self._socket.close_text) or "the connection to the node has ended"
            self._error = ConnectionFailedError(f"{self._where}: {self._server}: {what}")
            self._error.__cause__ = cause
        self._receiving.clear()
        self._conclude()

    def _conclude(self) -> None:
        """Store the error of the node, if any."""
        if self._error is None and (self._text or self._was_reset):
            text = one_line(self._text.decode(errors="replace")).strip()
            self._error = PortForwardError(f"{self._where}: {text or 'the node reset the connection'}")


async def connect(transport: Transport, path: str, *, where: str, pod: str, port: int) -> PodConnection:
    """Connect to a port of a pod; the caller must close the connection.

    Args:
        transport: The connections to the server.
        path: The URL path of the ``portforward`` subresource.
        where: The name of the operation for error messages.
        pod: The name of the pod.
        port: The port in the pod.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: The server or a proxy does not support the protocol.
        ConnectionFailedError: The connection to the server failed.
        PortForwardError: The node refused the connection.

    Cancellation:
        Closes the connection.
    """
    async with AsyncExitStack() as stack:
        opened = open_channels(transport, path, where=where, protocols=(TUNNEL,))
        socket, server = await stack.enter_async_context(opened)
        connection = PodConnection._create(pod, port, socket, where, server)
        await connection.open()
        connection._resources = stack.pop_all()
    return connection
