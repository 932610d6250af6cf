"""Sockets and TLS connections. A single read from a TLS connection returns all TLS records that have arrived.

kube-apiserver sends lists and watches in TLS records of 4 to 6 KB. ``trio.SSLStream`` returns one record per read, but
:class:`TLSStream` decrypts all data from one read of the socket.
The peer's close_notify ends the stream, even if the socket stays open. The connection is then not used for any further
request.

If no data has arrived on a watch for half a minute, the connection verifies the server with its :class:`Liveness`,
while another task continues to read.
Failures are raised as the errors of :mod:`.._failures`.
"""

from __future__ import annotations

import math
import os
import socket
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, final

import trio

from ..._util import raise_ungrouped
from .. import _failures as failures
from .._errors import SilentConnectionError

HANDSHAKE_PATIENCE: Final = 10.0
"""Seconds for the TLS handshake (client-go's ``TLSHandshakeTimeout``)."""
RESUMABLE: Final = math.inf
"""The read timeout of a watch that may be ended if its connection cannot be verified; other watches have None."""
READ_SIZE: Final = 256 * 1024
"""The maximum number of bytes that one read returns: sixteen TLS records of the maximum size."""
# An ssl.SSLError is an OSError.  A ValueError, such as a UnicodeError, is about a name for DNS or TLS.
_BROKEN: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, ValueError)
_RECORD_SIZE: Final = 16 * 1024  # at most; OpenSSL returns one record at a time, and Python allocates that size


@final
class Bounded:
    """Limit the time of a block, and translate its errors to failures.

    Each request enters several of these blocks. A generator with ``fail_after`` would take three times as long.
    """

    __slots__ = ("_broken", "_scope", "_too_slow")

    def __init__(
        self, patience: float | None, too_slow: type[failures.TimeoutException], broken: type[failures.NetworkError]
    ) -> None:
        self._scope: trio.CancelScope | None = None
        if patience is not None and patience != math.inf:
            self._scope = trio.CancelScope(relative_deadline=patience)
        self._too_slow = too_slow
        self._broken = broken

    def __enter__(self) -> None:
        if self._scope is not None:
            self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._scope is not None:
            self._scope.__exit__(kind, error, traceback)
            if self._scope.cancelled_caught:
                raise self._too_slow("") from trio.TooSlowError()
        if isinstance(error, _BROKEN):
            raise self._broken(str(error)) from error


class Liveness(Protocol):
    """The interface of ``policy.ServerHealth``, which verifies the server if a watch is silent."""

    server_text: str
    credential_text: str
    silence: float
    look: Callable[[], None] | None
    look_at: float
    is_closed: bool

    async def verify(self, opened_at: float, *, resumable: bool) -> SilentConnectionError | None: ...
    def record_failure(self) -> None: ...
    def record_rotation(self) -> None: ...


class RawStream(Protocol):
    """The common interface of TCP connections, TLS connections to a proxy, and forwarded ports."""

    async def receive_some(self, max_bytes: int, /) -> bytes | bytearray: ...
    async def send_all(self, data: bytes | bytearray | memoryview, /) -> None: ...
    def send_now(self, data: bytes, /) -> int: ...  # bytes sent without waiting; the next call raises an error
    @property
    def is_readable(self) -> bool: ...  # whether data has arrived, or either side has ended the connection
    @property
    def is_closed(self) -> bool: ...  # on this side
    def problem(self) -> Exception | None: ...  # the reason if it was reset, or closed on this side
    def close(self) -> None: ...  # not a checkpoint, so it also works after a cancellation
    def set_option(self, level: int, option: int, value: int) -> None: ...  # of the socket


@final
class TCPStream:
    """A TCP connection, which implements :class:`RawStream`.

    A checkpoint takes as much CPU time as parsing a response, and each method of ``trio.SocketStream`` executes one.
    Most requests are sent by :meth:`send_now`, without a checkpoint.
    The socket is taken out of the given stream.
    """

    __slots__ = ("_is_sending", "socket")

    def __init__(self, stream: trio.SocketStream) -> None:
        self.socket: Final = socket.socket(fileno=stream.socket.detach())
        self.socket.setblocking(False)
        self._is_sending = False

    async def receive_some(self, max_bytes: int) -> bytes:
        await trio.lowlevel.checkpoint_if_cancelled()
        has_waited = False
        while True:
            try:
                data = self.socket.recv(max_bytes)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.socket)
                has_waited = True
            except OSError as exc:
                raise self._error(exc) from exc
            else:
                if not has_waited:
                    await trio.lowlevel.cancel_shielded_checkpoint()
                return data

    def send_now(self, data: bytes) -> int:
        try:
            return 0 if self._is_sending else self.socket.send(data)
        except OSError:  # BlockingIOError is one
            return 0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_sending:
            raise trio.BusyResourceError("another task is sending")
        await trio.lowlevel.checkpoint_if_cancelled()
        self._is_sending = True
        try:
            rest = memoryview(data)
            while rest:
                try:
                    rest = rest[self.socket.send(rest) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self.socket)
                except OSError as exc:
                    raise self._error(exc) from exc
            await trio.lowlevel.cancel_shielded_checkpoint()  # a program may send in a loop, and the peer read as fast
        finally:
            self._is_sending = False

    def _error(self, error: OSError) -> Exception:
        if self.is_closed:
            return trio.ClosedResourceError("closed on this side")
        return trio.BrokenResourceError(f"socket connection broken: {error}")

    @property
    def is_readable(self) -> bool:
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass  # reading reports the error
        return True

    @property
    def is_closed(self) -> bool:
        return self.socket.fileno() < 0

    def problem(self) -> Exception | None:
        if self.is_closed:  # with the client, or because certificates have changed
            return trio.ClosedResourceError("closed on this side")
        error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(error, os.strerror(error)) if error else None

    def close(self) -> None:
        if not self.is_closed:
            trio.lowlevel.notify_closing(self.socket)
            self.socket.close()

    def set_option(self, level: int, option: int, value: int) -> None:
        self.socket.setsockopt(level, option, value)


class NetworkStream:
    """A connection without TLS. If ``health`` is given, it verifies the server when no data arrives."""

    def __init__(self, raw: RawStream, *, health: Liveness | None = None, opened_at: float | None = None) -> None:
        self.raw: Final = raw
        self._health = health
        self.opened_at: Final = trio.current_time() if opened_at is None else opened_at

    async def receive(self, patience: float | None) -> bytes:
        """Receive the available data, or wait up to ``patience`` seconds for data. Return ``b""`` at the end.

        Cancellation: no data is lost.
        """
        with Bounded(patience, failures.ReadTimeout, failures.ReadError):
            return await self._receive(resumable=patience == RESUMABLE)

    async def send(self, data: bytes, patience: float | None) -> None:
        """Send bytes.

        Cancellation: part of the data may have been sent.
        """
        with Bounded(None, failures.WriteTimeout, failures.WriteError):
            rest = self._send_now(data)
        if rest is not None:  # most requests fit into the buffers of the socket, and do not need a deadline
            with Bounded(patience, failures.WriteTimeout, failures.WriteError):
                await self.send_all(rest)

    def _send_now(self, data: bytes) -> bytes | None:
        """Send as much data as possible without waiting. Return the rest for :meth:`send_all`, or None."""
        sent = self.raw.send_now(data)
        return None if sent == len(data) else data[sent:]

    async def receive_some(self, max_bytes: int) -> bytes:
        """Receive bytes that are not HTTP, as :meth:`receive` does, but with trio's errors and without a time limit."""
        return bytes(await self.raw.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send data as :meth:`send` does, but without a time limit, and with trio's errors or ``ssl.SSLError``."""
        await self.raw.send_all(data)

    @property
    def is_readable(self) -> bool:
        """Whether data can be read or either side has ended the connection."""
        return self.raw.is_readable

    def close(self) -> None:
        """Close the connection. This is not a checkpoint, so it also works after a cancellation."""
        self.raw.close()

    async def _receive(self, *, resumable: bool) -> bytes:
        return bytes(await self._receive_some(resumable=resumable))

    async def _receive_some(self, *, resumable: bool) -> bytes | bytearray:
        """Receive from the socket.

        On the connection of a watch, verify the server whenever no data arrives for some time.
        """
        health = self._health
        if health is None:
            return await self.raw.receive_some(READ_SIZE)
        while True:
            now = trio.current_time()
            if now >= health.look_at and health.look is not None:
                health.look()  # may close this connection
            with trio.CancelScope(deadline=now + health.silence):
                return await self.raw.receive_some(READ_SIZE)
            received = await self._receive_or_verify(health, resumable=resumable)
            if received is not None:
                return received

    async def _receive_or_verify(self, health: Liveness, *, resumable: bool) -> bytes | bytearray | None:
        """Receive while the server is being verified. Return None if no data has arrived when the verification ends.

        Errors are raised outside the nursery, so that they are not wrapped in a group.
        """
        received: bytes | bytearray | None = None
        errors: list[Exception] = []
        given_up: SilentConnectionError | None = None

        async def receive() -> None:
            nonlocal received
            try:
                received = await self.raw.receive_some(READ_SIZE)
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
            await raise_ungrouped(group)  # other results are in the variables
        if received is not None:
            return received
        if errors:
            raise errors[0]
        if given_up is not None:
            raise failures.ReadError(str(given_up)) from given_up
        return None

    async def start_tls(self, context: ssl.SSLContext, host: str, patience: float | None = None) -> TLSStream:
        """Start TLS on the connection, and verify the certificate of the host.

        Cancellation: the connection is closed, as after an error.
        """
        context.set_alpn_protocols(["http/1.1"])
        patience = HANDSHAKE_PATIENCE if patience is None else min(patience, HANDSHAKE_PATIENCE)
        try:
            with Bounded(patience, failures.ConnectTimeout, failures.ConnectError):
                tls = TLSStream(self.raw, context, host, opened_at=self.opened_at)
                await tls.handshake()
        except BaseException:
            self.close()
            raise
        tls._health = self._health  # the handshake has its own deadline
        return tls


@final
class TLSStream(NetworkStream):
    """TLS over a connection.

    It implements :class:`RawStream`, so that a TLS connection can run inside the TLS connection to a proxy.

    A cancelled read does not lose data, because decrypted bytes are returned immediately.
    If a cancelled send has sent only a part of a record, the peer closes the connection.
    """

    def __init__(self, raw: RawStream, context: ssl.SSLContext, host: str, *, opened_at: float) -> None:
        super().__init__(raw, opened_at=opened_at)
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=host)
        self._is_ended = False
        """Whether the peer has sent close_notify."""

    async def handshake(self) -> None:
        """Perform the TLS handshake, which verifies the server's certificate."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fetch()
            else:
                await self._flush()
                return

    async def receive_some(self, max_bytes: int) -> bytes:
        try:
            return await self._receive(max_bytes)
        except ssl.SSLError as exc:
            raise trio.BrokenResourceError from exc

    def _send_now(self, data: bytes) -> bytes | None:
        if len(data) > _RECORD_SIZE:
            return data
        self._tls.write(data)
        self._flush_now()
        return b"" if self._to_send.pending else None

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._flush()
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
            await self._flush()

    def send_now(self, data: bytes) -> int:
        return 0

    @property
    def is_closed(self) -> bool:
        return self.raw.is_closed

    def problem(self) -> Exception | None:
        return self.raw.problem()

    def set_option(self, level: int, option: int, value: int) -> None:
        self.raw.set_option(level, option, value)

    @property
    def is_readable(self) -> bool:
        # Between two requests, only the end of the connection can be read.
        return bool(self._is_over or self._received.pending or self._tls.pending() or self.raw.is_readable)

    @property
    def _is_over(self) -> bool:
        return self._is_ended or self._received.eof

    async def _fetch(self, *, resumable: bool = False) -> None:
        data = await self._receive_some(resumable=resumable)
        if data:
            self._received.write(data)
        else:
            self._received.write_eof()

    async def _flush(self) -> None:
        if self._to_send.pending:
            await self.raw.send_all(self._to_send.read())

    def _flush_now(self) -> None:
        """Send as much data as possible without waiting. The next flush sends the rest before newer data."""
        encrypted = self._to_send.read()
        self._to_send.write(encrypted[self.raw.send_now(encrypted) :])

    async def _receive(self, max_bytes: int = READ_SIZE, *, resumable: bool = False) -> bytes:
        while True:
            pieces = self._decrypt(max_bytes) if self._received.pending or self._tls.pending() else []
            if self._to_send.pending:  # a response to the peer's TLS messages, such as a key update
                # A peer that is blocked in sending does not read until this task receives, so do not wait here.
                self._flush_now()
            if pieces or self._is_over:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            await self._fetch(resumable=resumable)

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
                if len(piece) < size and not self._received.pending:
                    break  # another read would only raise SSLWantReadError, which is slow
        except ssl.SSLZeroReturnError:
            self._is_ended = True
        except (ssl.SSLWantReadError, ssl.SSLEOFError):
            pass  # HTTP itself shows whether a response is complete
        return pieces
