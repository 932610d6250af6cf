"""Connections to ports of pods, for which a test provides the handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, final

import attrs
import trio

from ..._channels import ChannelSocket
from ..._spdy import SpdyFrames
from ..._util import NoPublicConstructor

_MAX_WAITING: Final = 16
"""The maximum number of pieces of data that wait for the handler of a connection."""
_PIECE: Final = 32 * 1024 - 8
"""Bytes of one frame, which is one message of the WebSocket."""


@final
@attrs.define(eq=False)
class PortForwarding:
    """A WebSocket for port-forward with its connections."""

    socket: ChannelSocket
    frames: SpdyFrames
    connections: dict[int, ScriptedConnection] = attrs.field(factory=dict)
    """The open connections by their data stream."""
    opened: dict[str, dict[str, int]] = attrs.field(factory=dict)
    """The streams of half-open connections, by the client's number and by kind."""

    async def send(self, frame: bytes) -> None:
        """Send an SPDY frame to the client."""
        await self.socket.send(0, frame)


@final
@attrs.define(eq=False, repr=False)
class ScriptedConnection(trio.abc.HalfCloseableStream, metaclass=NoPublicConstructor):
    """The pod's side of a connection that a client has opened with port-forward.

    The connection is closed when its handler returns.
    """

    port: int
    """The port."""
    _forwarding: PortForwarding
    _stream: int
    _pieces: tuple[trio.MemorySendChannel[bytes], trio.MemoryReceiveChannel[bytes]] = attrs.field(
        factory=lambda: trio.open_memory_channel[bytes](_MAX_WAITING), init=False
    )
    _rest: bytes = attrs.field(default=b"", init=False)
    _has_sent_eof: bool = attrs.field(default=False, init=False)
    _is_broken: bool = attrs.field(default=False, init=False)
    """Whether the client has reset the connection, or the handler has returned."""
    _problem: str = attrs.field(default="", init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to port {self.port}>"

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes to the client.  This method blocks while the client is not receiving.

        Raises:
            trio.BrokenResourceError: The client has closed the connection.
            trio.ClosedResourceError: The method :meth:`send_eof` or :meth:`fail` has been called.
        """
        if self._has_sent_eof or self._problem:
            raise trio.ClosedResourceError("no more data can be sent on this connection")
        rest = memoryview(data)
        await trio.lowlevel.checkpoint_if_cancelled()
        while rest:
            if self._is_broken:
                raise trio.BrokenResourceError("the client has closed the connection")
            await self._forwarding.send(self._forwarding.frames.data(self._stream, rest[:_PIECE]))
            rest = rest[_PIECE:]

    async def send_eof(self) -> None:
        """Signal to the client that no more data follows."""
        if self._is_broken:
            raise trio.BrokenResourceError("the client has closed the connection")
        await self._send_end()

    async def wait_send_all_might_not_block(self) -> None:
        """Return immediately."""
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive bytes from the client.  The result is ``b""`` at the end of the client's data.

        Raises:
            trio.BrokenResourceError: The client has closed the connection.
        """
        if not self._rest:
            try:
                self._rest = await self._pieces[1].receive()
            except trio.EndOfChannel:
                if self._is_broken:
                    raise trio.BrokenResourceError("the client has closed the connection") from None
                return b""
        most = len(self._rest) if max_bytes is None else max_bytes
        data, self._rest = self._rest[:most], self._rest[most:]
        return data

    async def aclose(self) -> None:
        """Close both directions of the connection."""
        self._pieces[1].close()
        if not self._is_broken:
            await self._send_end()

    def fail(self, problem: str) -> None:
        """When the handler returns, report an error to the client, for example that the pod has reset the connection.

        Args:
            problem: The error message, such as ``read: connection reset by peer``.
        """
        self._problem = problem

    async def disconnect(self) -> None:
        """Close the WebSocket to the client, as when the node fails.

        All connections that are forwarded over this WebSocket end.
        """
        await self._forwarding.socket.aclose()

    async def _send_end(self) -> None:
        if self._has_sent_eof:
            await trio.lowlevel.checkpoint()
            return
        self._has_sent_eof = True
        await self._forwarding.send(self._forwarding.frames.data(self._stream, b"", is_end=True))

    async def _feed(self, data: bytes, *, is_end: bool) -> None:
        try:
            if data:
                await self._pieces[0].send(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # nothing reads any more
        if is_end:
            self._pieces[0].close()

    def _break(self) -> None:
        self._is_broken = True
        self._pieces[0].close()


ConnectionHandler: TypeAlias = Callable[[ScriptedConnection], Awaitable[None]]
"""Plays the pod's side of a connection."""
