"""A server's side of TLS that says why it refuses a client, as API servers do and ``trio.SSLStream`` does not."""

from __future__ import annotations

import ssl

import attrs
import trio


@attrs.define(eq=False)
class AlertingStream(trio.abc.Stream):
    """TLS over a TCP connection; a handshake that fails is a BrokenResourceError after its alert was sent."""

    transport_stream: trio.SocketStream
    _context: ssl.SSLContext
    _received: ssl.MemoryBIO = attrs.field(factory=ssl.MemoryBIO, init=False)
    _to_send: ssl.MemoryBIO = attrs.field(factory=ssl.MemoryBIO, init=False)
    _tls: ssl.SSLObject = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._tls = self._context.wrap_bio(self._received, self._to_send, server_side=True)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        while True:
            try:
                data = self._tls.read(max_bytes or 65_536)
            except ssl.SSLWantReadError:
                await self._flush()
                more = await self.transport_stream.receive_some()
                if not more:
                    return b""
                self._received.write(more)
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLError as exc:
                await self._flush()
                await self.transport_stream.send_eof()
                async for _ in self.transport_stream:
                    pass  # to close the socket with data unread would reset it, and the alert would be lost
                raise trio.BrokenResourceError from exc
            else:
                await self._flush()
                return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._tls.write(data)
        await self._flush()

    async def wait_send_all_might_not_block(self) -> None:
        await self.transport_stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self.transport_stream.aclose()

    async def _flush(self) -> None:
        if self._to_send.pending:
            await self.transport_stream.send_all(self._to_send.read())
