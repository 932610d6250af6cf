"""Sockets and TLS under httpcore, for trio: every TLS record that has arrived is read at once, and nothing leaks.

The problem: kube-apiserver streams a list item by item, in records of 4 to 6 KB, a watch event by event.
``trio.SSLStream`` hands out one record a read, and a read of httpcore passes h11 and six async generators.
For 10,000 pods that is 1 s of CPU, more than everything else that is done with them.
So :class:`_TLSStream` decrypts all that one read of the socket has brought, up to what httpcore asks for.

It also closes its socket when a handshake is cancelled, which httpcore's own backend does only for errors.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, cast, final

import httpcore
import httpx
import trio

_RECEIVE_SIZE = 256 * 1024
"""Bytes that one read of a socket may bring; sixteen TLS records of the largest size."""


@contextmanager
def _bounded(patience: float | None, too_slow: type[Exception], broken: type[Exception]) -> Generator[None, None, None]:
    """Limit a step in time, and raise what httpcore expects of a backend."""
    try:
        with trio.fail_after(math.inf if patience is None else patience):
            yield
    except trio.TooSlowError as exc:
        raise too_slow(exc) from exc
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as exc:  # ssl.SSLError is an OSError
        raise broken(exc) from exc


class _SocketStream(httpcore.AsyncNetworkStream):
    """A TCP connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore's interface
        with _bounded(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return bytes(await self._stream.receive_some(max_bytes))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        with _bounded(timeout, httpcore.WriteTimeout, httpcore.WriteError):
            await self._stream.send_all(buffer)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        tls = _TLSStream(self._stream, ssl_context, server_hostname)
        try:
            with _bounded(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
                await tls.handshake()
        except BaseException:
            self._stream.socket.close()  # in any case, cancellation included; and without waiting
            raise
        return tls

    def get_extra_info(self, info: str) -> Any:
        sock = self._stream.socket
        if info == "socket":
            return sock
        if info == "is_readable":
            return sock.is_readable()
        if info == "client_addr":
            return sock.getsockname()
        return sock.getpeername() if info == "server_addr" else None


@final
class _TLSStream(_SocketStream):
    """TLS over a TCP connection."""

    def __init__(self, stream: trio.SocketStream, context: ssl.SSLContext, server_hostname: str | None) -> None:
        super().__init__(stream)
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=server_hostname)

    async def handshake(self) -> None:
        """Greet the server and verify it."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._receive()
            else:
                await self._flush()
                return

    async def _receive(self) -> None:
        data = await self._stream.receive_some(_RECEIVE_SIZE)
        if data:
            self._received.write(data)
        else:
            self._received.write_eof()

    async def _flush(self) -> None:
        if self._to_send.pending:
            await self._stream.send_all(self._to_send.read())

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        with _bounded(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            while True:
                if pieces := self._decrypt(max_bytes):
                    await self._flush()  # what the other end wants answered, such as a change of keys
                    return b"".join(pieces)
                if self._received.eof:
                    return b""
                await self._flush()
                await self._receive()

    def _decrypt(self, most: int) -> list[bytes]:
        """Everything that has arrived, up to ``most`` bytes."""
        pieces: list[bytes] = []
        while most > 0:
            try:
                piece = self._tls.read(most)
            except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                break
            except ssl.SSLEOFError:
                break  # HTTP tells by itself whether an answer is whole
            if not piece:
                break
            pieces.append(piece)
            most -= len(piece)
        return pieces

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        with _bounded(timeout, httpcore.WriteTimeout, httpcore.WriteError):
            rest = memoryview(buffer)
            while rest:
                rest = rest[self._tls.write(rest) :]
                await self._flush()

    def get_extra_info(self, info: str) -> Any:
        return self._tls if info == "ssl_object" else super().get_extra_info(info)


@final
class _Network(httpcore.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        with _bounded(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
            stream = await trio.open_tcp_stream(host, port, local_address=local_address)
            for option in socket_options or ():
                stream.setsockopt(*cast("tuple[int, int, int]", option))  # Connections is given no other
            return _SocketStream(stream)

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


@final
class Connections(httpx.AsyncHTTPTransport):
    """httpx's transport over a pool of these connections: HTTP/1.1, no limit, no proxy.

    Args:
        context: How to speak TLS; None where the server speaks plain HTTP.
        socket_options: Set on every connection.
        idle_period: Seconds that an unused connection is kept.
    """

    def __init__(
        self,
        context: ssl.SSLContext | None,
        *,
        socket_options: list[tuple[int, int, int]],
        idle_period: float,
    ) -> None:
        # httpx passes no network backend on, so the pool that it makes is replaced; a test notices if that changes.
        super().__init__(verify=False, trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=None,
            max_keepalive_connections=None,
            keepalive_expiry=idle_period,
            socket_options=socket_options,
            network_backend=_Network(),
        )
