"""A connection that has switched from HTTP to another protocol (RFC 9110, 7.8), such as WebSockets.

The server agrees by responding with status 101. After that, both sides may send bytes of the new protocol at any time.
The connection still belongs to the pool, so it uses the same proxy and TLS settings, and is closed with the client.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import Final, final

import trio

from ._sockets import NetworkStream, RawStream

RECEIVE_SIZE: Final = 64 * 1024
"""The default maximum number of bytes that one call returns."""

# glibc returns freed memory to the kernel when it is more than twice the largest block that was mapped and unmapped.
# One read allocates more than that: 40,000 page faults for 100 MB take a third of the CPU time.  Allocating a block
# without touching it costs nothing, and raises that limit to 4 MiB, once per process.
_LARGEST_BLOCK: Final = 2 * 1024 * 1024
bytes(_LARGEST_BLOCK)


@final
class UpgradedStream(trio.abc.Stream):
    """A stream of the new protocol's bytes. One task may send while another one receives.

    Cancellation:
        If a send is cancelled, part of the data may have been sent. After that, the stream can only be closed.
    """

    def __init__(self, stream: NetworkStream, first: bytes) -> None:
        self._stream = stream
        self._first = first
        """The data that arrived together with the head of the response."""
        _be_patient_with_a_slow_reader(self._stream.raw)

    @property
    def is_readable(self) -> bool:
        """Whether data or the end of the connection has arrived."""
        return bool(self._first or self._stream.raw.is_closed or self._stream.is_readable)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        try:
            await self._stream.send_all(data)
        except ssl.SSLError as exc:  # for example after the peer has closed the connection
            raise trio.BrokenResourceError from exc

    async def wait_send_all_might_not_block(self) -> None:
        """Return immediately, because the state of the send buffer is unknown."""
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive bytes, or ``b""`` when the peer has closed the connection."""
        most = RECEIVE_SIZE if max_bytes is None else max_bytes
        if self._first and not self._stream.raw.is_closed:
            await trio.lowlevel.checkpoint()
            data, self._first = self._first[:most], self._first[most:]
            return data
        return await self._stream.receive_some(most)

    async def aclose(self) -> None:
        """Close the connection without waiting for the peer."""
        self._stream.close()
        await trio.lowlevel.checkpoint()


def _be_patient_with_a_slow_reader(stream: RawStream) -> None:
    """Allow the peer to pause reading for an unlimited time, for example while a command processes its input.

    On Linux, ``TCP_USER_TIMEOUT`` would also end the connection to a peer that acknowledges all data but has a full
    buffer.
    A dead peer is still detected: by keepalive while no data is in flight, and otherwise by the kernel's
    retransmissions.
    """
    option: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)  # not every platform has it
    if option is not None:
        with suppress(OSError):  # the client was closed meanwhile: the user of the stream receives that error
            stream.set_option(socket.IPPROTO_TCP, option, 0)
