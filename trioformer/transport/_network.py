"""Sockets and TLS under httpcore: one read returns all TLS records that have arrived, and no socket leaks.

The problem: kube-apiserver sends a list item by item, and a watch event by event, in TLS records of 4 to 6 KB.
``trio.SSLStream`` returns one record per read, and each read of httpcore passes h11 and six async generators.
For 10,000 pods that is 1 s of CPU, more than the rest of the work on them.
So :class:`_TLSStream` decrypts everything that one read of the socket returns, up to the size that httpcore requests.

TLS has an end of its own: after the peer's close_notify nothing follows, even if the socket stays open for seconds.
So close_notify is the end of the stream, and a connection that has received it is not used for another request.

Sockets are also closed when a request is cancelled: while its handshake runs (httpcore's own backend closes them only
after an error), and between the end of the handshake and the first byte of the request.  There httpcore waits for a
lock, outside of the block that would close the connection.  A cancellation that comes with the last bytes of the
handshake would be raised at that lock, and the pool would keep the connection for ever: it is not idle, so no request
gets it, and not closed, so nothing removes it.  So opening a connection ends with a check for it: a cancellation that
comes later finds the lock free, and is raised inside the block.

A proxy is between the socket and everything else: :meth:`_Network.connect_tcp` returns a connection to the server,
whatever is in between, so requests, watches and probes go the same way.
With an ``https://`` proxy the server's TLS is inside the proxy's.

A connection of a watch has the :class:`~._health.ServerHealth` of its client, and asks it about the server when nothing
has arrived for half a minute; only then, and while it reads on in a task of its own.
"""

from __future__ import annotations

import enum
import math
import os
import socket
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast, final

import httpcore
import trio

from .._util import raise_ungrouped
from ._chunks import ChunkMerger
from ._errors import SilentConnectionError
from ._health import ServerHealth
from ._limits import DEFAULT_LIMITS, BodyReceiver, Bounded, LimitPassedError, Limits, Patience
from ._tls import _client_context

if TYPE_CHECKING:
    from ._proxy._route import Route

HANDSHAKE_PATIENCE: Final = 10.0
"""Seconds for the TLS handshake (client-go's ``TLSHandshakeTimeout``)."""
RESUMABLE: Final = math.inf
"""The read timeout of a watch that may be given up when nothing shows that its connection works; others have None.

httpcore passes it to each read, and nothing else of the request.
"""
_RECEIVE_SIZE: Final = 256 * 1024  # of one read of a socket: sixteen TLS records of the maximum size
_RECORD_SIZE: Final = 16 * 1024  # at most; OpenSSL returns one record at a time, and Python allocates what it asks for


class _Use(enum.Enum):
    """What a connection is used for at present."""

    FRESH = "for nothing yet"
    IDLE = "for nothing between two requests"
    REQUEST = "for a request"


class _SocketStream(httpcore.AsyncNetworkStream, BodyReceiver):
    """A TCP connection.

    Attributes:
        opened_at: When it was opened.
    """

    def __init__(
        self,
        stream: trio.SocketStream | _TunnelStream,
        *,
        health: ServerHealth | None = None,
        opened_at: float | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._stream = stream
        self._health = health
        self._merger = ChunkMerger(limits)
        self._limits = limits
        self._head_patience: Patience | None = None
        self._use = _Use.FRESH
        self.opened_at: float = trio.current_time() if opened_at is None else opened_at

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore's interface
        merger = self._merger
        while True:
            with Bounded(timeout, httpcore.ReadTimeout, httpcore.ReadError):
                data = await self._read(max_bytes, resumable=timeout == RESUMABLE)
            merged = merger.feed(data)
            # Only a head has a deadline here: any part of a chunk may be the last thing that a watch sends for an hour.
            if not merger.is_inside_head:
                self._head_patience = None
            elif self._head_patience is None:
                self._head_patience = Patience(self._limits.header_period, self._endless_head)
            if merged or not data:
                return merged

    def _endless_head(self) -> LimitPassedError:
        return LimitPassedError("header_period", self._limits.header_period, "the headers of the response do not end")

    async def _read(self, max_bytes: int, *, resumable: bool) -> bytes:
        return bytes(await self._receive_some(max_bytes, resumable=resumable))

    async def _receive_some(self, max_bytes: int, *, resumable: bool) -> bytes | bytearray:
        """Receive from the socket; on a watch's connection, verify the server whenever it has been silent.

        Raises:
            LimitPassedError: The head or the body of the response takes too long.
        """
        health = self._health
        patience = self._head_patience or self.body_patience
        if health is None and patience is None:
            return await self._stream.receive_some(max_bytes)
        while True:
            deadline = math.inf if patience is None else patience.deadline
            silent_at = math.inf
            if health is not None:
                now = trio.current_time()
                if now >= health.look_at and health.look is not None:
                    await health.look()  # may close this connection
                silent_at = now + health.silence
            with trio.CancelScope(deadline=min(deadline, silent_at)):
                return await self._stream.receive_some(max_bytes)
            if patience is not None and trio.current_time() >= deadline:
                patience.extend(has_data=self._has_data())
            elif health is not None:
                received = await self._receive_or_verify(health, max_bytes, resumable=resumable)
                if received is not None:
                    return received

    def _has_data(self) -> bool:
        """Whether something has arrived, or the connection has ended."""
        stream = self._stream
        if stream.socket.fileno() < 0:
            return True  # closed on this side: a rotation closes idle connections without asking the pool
        return stream.is_readable() if isinstance(stream, _TunnelStream) else stream.socket.is_readable()

    async def _receive_or_verify(
        self, health: ServerHealth, max_bytes: int, *, resumable: bool
    ) -> bytes | bytearray | None:
        """Receive until the server is verified; None if nothing has arrived by then.

        Errors are raised outside the nursery, so that they are not wrapped in a group.
        """
        received: bytes | bytearray | None = None
        errors: list[Exception] = []
        given_up: SilentConnectionError | None = None

        async def receive() -> None:
            nonlocal received
            try:
                received = await self._stream.receive_some(max_bytes)
            except Exception as exc:  # noqa: BLE001  # raised below
                errors.append(exc)
            nursery.cancel_scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(receive)
                try:
                    given_up = await health.verify(self.opened_at, resumable=resumable)
                except Exception as exc:  # noqa: BLE001  # raised below
                    errors.append(exc)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            await raise_ungrouped(group)  # everything else is kept in the variables
        if received is not None:
            return received
        if errors:
            raise errors[0]
        if given_up is not None:
            raise httpcore.ReadError(given_up)
        return None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if self._use is not _Use.REQUEST:
            self._check_usable()
        self._merger.start()
        self._head_patience = self.body_patience = None
        with Bounded(timeout, httpcore.WriteTimeout, httpcore.WriteError):
            await self._write(buffer)

    async def _write(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    def switch_protocols(self) -> None:
        """Leave HTTP: from now on there are only :meth:`receive_raw` and :meth:`send_raw`."""
        self._head_patience = self.body_patience = None
        self._merger = ChunkMerger(self._limits)  # no response is incomplete any more

    async def receive_raw(self, max_bytes: int) -> bytes:
        """Receive bytes that are not HTTP; raises trio's errors."""
        try:
            return await self._read(max_bytes, resumable=False)
        except ssl.SSLError as exc:
            raise trio.BrokenResourceError from exc

    async def send_raw(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes that are not HTTP; raises trio's errors, and ``ssl.SSLError``."""
        await self._write(data)

    def _check_usable(self) -> None:
        """Check the connection before the first byte of a request: what fails here was certainly not sent.

        httpcore's pool has checked an idle connection before it waited for a lock, and the peer may have closed it
        since; then the pool takes another one.  No checkpoint is between this check and the first byte.

        Raises:
            httpcore.ConnectionNotAvailable: The peer has closed it after an earlier request.
            httpcore.ConnectError: The peer has reset it before the first one, or this side has closed it.
        """
        sock = self._stream.socket
        if sock.fileno() < 0:  # with the client, or because certificates have changed
            raise httpcore.ConnectError("closed on this side")
        if self._use is _Use.IDLE:
            if self.get_extra_info("is_readable"):
                raise httpcore.ConnectionNotAvailable
        elif error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise httpcore.ConnectError(OSError(error, os.strerror(error)))
        self._use = _Use.REQUEST

    @property
    def is_closed(self) -> bool:
        """Whether the socket was closed on this side."""
        return self._stream.socket.fileno() < 0

    async def aclose(self) -> None:
        await self._stream.aclose()

    def set_option(self, level: int, option: int, value: int) -> None:
        """Set an option of the socket."""
        self._stream.setsockopt(level, option, value)

    def close(self) -> None:
        """Close the socket; not a checkpoint, so it also works after a cancellation."""
        self._stream.socket.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> _TLSStream:
        patience = HANDSHAKE_PATIENCE if timeout is None else min(timeout, HANDSHAKE_PATIENCE)
        try:
            with Bounded(patience, httpcore.ConnectTimeout, httpcore.ConnectError):
                tls = _TLSStream(
                    self._stream, ssl_context, server_hostname, opened_at=self.opened_at, limits=self._limits
                )
                await tls.handshake()
            await trio.lowlevel.checkpoint_if_cancelled()  # at the top of this module is why
        except BaseException:
            self.close()
            raise
        tls._health = self._health  # the handshake has a deadline of its own
        return tls

    def get_extra_info(self, info: str) -> Any:
        sock = self._stream.socket
        if info == "socket":
            return sock
        if info == "is_readable":
            # Asked between two requests: a connection with bytes that would be taken for the next response is closed.
            self._use = _Use.IDLE
            return sock.fileno() < 0 or not self._merger.is_at_end or self._has_data()
        if info == "client_addr":
            return sock.getsockname()
        return sock.getpeername() if info == "server_addr" else None


@final
class _TLSStream(_SocketStream):
    """TLS over a TCP connection."""

    def __init__(
        self,
        stream: trio.SocketStream | _TunnelStream,
        context: ssl.SSLContext,
        server_hostname: str | None,
        *,
        opened_at: float,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(stream, opened_at=opened_at, limits=limits)
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=server_hostname)
        self._is_ended = False
        """Whether the peer has sent close_notify."""
        self._sending: trio.Lock | None = None
        """Set when one task may send while another one receives, which sends responses to messages of TLS."""

    def switch_protocols(self) -> None:
        super().switch_protocols()
        self._sending = trio.Lock()

    async def handshake(self) -> None:
        """Do the TLS handshake, which verifies the server's certificate."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._receive()
            else:
                await self._flush()
                return

    async def _receive(self, *, resumable: bool = False) -> None:
        data = await self._receive_some(_RECEIVE_SIZE, resumable=resumable)
        if data:
            self._received.write(data)
        else:
            self._received.write_eof()

    async def _flush(self) -> None:
        if not self._to_send.pending:
            return
        if self._sending is None:
            await self._stream.send_all(self._to_send.read())
            return
        async with self._sending:  # what is encrypted is sent in the order in which it was
            if data := self._to_send.read():
                await self._stream.send_all(data)

    async def _read(self, max_bytes: int, *, resumable: bool) -> bytes:
        while True:
            pieces = self._decrypt(max_bytes)
            if pieces or not (self._is_ended or self._received.eof):
                await self._flush()  # a response to the peer's TLS messages, such as a key update
            if pieces or self._is_ended or self._received.eof:
                return b"".join(pieces)
            await self._receive(resumable=resumable)

    def _decrypt(self, max_bytes: int) -> list[bytes]:
        """Decrypt everything that has arrived, up to ``max_bytes``."""
        pieces: list[bytes] = []
        read, append = self._tls.read, pieces.append
        try:
            while max_bytes > 0:
                size = _RECORD_SIZE if max_bytes > _RECORD_SIZE else max_bytes  # noqa: FURB136  # once for each record
                if not (piece := read(size)):
                    self._is_ended = True
                    break
                append(piece)
                max_bytes -= len(piece)
        except ssl.SSLZeroReturnError:
            self._is_ended = True
        except (ssl.SSLWantReadError, ssl.SSLEOFError):
            pass  # HTTP itself shows whether a response is complete
        return pieces

    async def _write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
            await self._flush()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and (self._is_ended or self._received.pending or self._tls.pending()):
            return True  # between two requests there is only one thing to read, the end
        return self._tls if info == "ssl_object" else super().get_extra_info(info)


@final
class _TunnelStream:
    """What is inside the TLS of a proxy, as if it were a socket.

    If it is cancelled while it reads, nothing is lost: what is decrypted is returned at once.
    A message of TLS of which only a part is sent makes the proxy end the connection.
    """

    def __init__(self, outer: _TLSStream) -> None:
        self._outer = outer
        outer._health = None  # the connection inside has it

    @property
    def socket(self) -> trio.socket.SocketType:
        """The socket of the connection to the proxy."""
        return self._outer._stream.socket

    async def receive_some(self, max_bytes: int) -> bytes:
        outer = self._outer
        while not (pieces := outer._decrypt(max_bytes)):
            if outer._is_ended or outer._received.eof:
                return b""
            await outer._flush()
            await outer._receive()
        return b"".join(pieces)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._outer._write(data)

    def is_readable(self) -> bool:
        """Whether something has arrived, or the connection has ended."""
        return bool(self._outer.get_extra_info("is_readable"))

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self._outer.set_option(level, option, value)

    async def aclose(self) -> None:
        await self._outer.aclose()


@final
class _Network(httpcore.AsyncNetworkBackend):
    """Opens the connections of httpcore's pool.

    Args:
        health: Verifies the server when a connection is silent; None if it never is for long.
        limits: Limits of what the server may send.
        route: The proxy; None for direct connections.
        context: The TLS settings for an ``https://`` proxy, those for the server (as in client-go); None for the
            default ones.
    """

    def __init__(
        self,
        health: ServerHealth | None = None,
        limits: Limits = DEFAULT_LIMITS,
        *,
        route: Route | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._health = health
        self._limits = limits
        self._route = route
        self._context = context

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> _SocketStream:
        route = self._route
        if route is None:
            return await self._connect(host, port, timeout, local_address, socket_options)
        proxy = route.proxy
        try:
            stream = await self._connect(proxy.host, proxy.port, timeout, local_address, socket_options)
            return await self._through(route, stream, host, port)
        except httpcore.ConnectTimeout as exc:
            raise httpcore.ProxyError(route.timed_out()) from exc
        except Exception as exc:
            raise httpcore.ProxyError(route.failure_of(exc)) from exc

    async def _connect(
        self,
        host: str,
        port: int,
        patience: float | None,
        local_address: str | None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None,
    ) -> _SocketStream:
        with Bounded(patience, httpcore.ConnectTimeout, httpcore.ConnectError):
            stream = self._stream(await trio.open_tcp_stream(host, port, local_address=local_address))
            try:
                for option in socket_options or ():
                    stream.set_option(*cast("tuple[int, int, int]", option))  # Connections passes only these
                await trio.lowlevel.checkpoint_if_cancelled()  # at the top of this module is why
            except BaseException:
                stream.close()
                raise
            return stream

    def _stream(self, stream: trio.SocketStream | _TunnelStream, opened_at: float | None = None) -> _SocketStream:
        return _SocketStream(stream, health=self._health, opened_at=opened_at, limits=self._limits)

    async def _through(self, route: Route, stream: _SocketStream, host: str, port: int) -> _SocketStream:
        """Make a connection to a server of one to a proxy, which is closed if that fails."""
        if route.proxy.scheme == "https":
            stream = await stream.start_tls(self._proxy_context(), route.proxy.host)
        if route.is_forwarded:
            return stream
        try:
            if isinstance(stream, _TLSStream):
                stream = self._stream(_TunnelStream(stream), stream.opened_at)
            await route.open_tunnel(stream._stream, host, port)
            await trio.lowlevel.checkpoint_if_cancelled()  # at the top of this module is why
        except BaseException:
            stream.close()
            raise
        return stream

    def _proxy_context(self) -> ssl.SSLContext:
        context = self._context or _client_context(None)
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)
