"""Read the body of a response while it arrives, with the limits and errors of a client."""

from __future__ import annotations

import math
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, final

import attrs
import trio

from ...errors import ConnectionFailedError, LimitExceededError
from .. import _failures as failures
from .._errors import CONNECTION_ERRORS, clear_locals, connection_failed, shows_failing_server
from .._limits import Limits, limit_error
from ..auth._credentials import Credential
from ._connection import ResponseStream
from ._messages import Framing, Head, Request
from ._pool import Generation
from ._sockets import Liveness

SLICE: Final = 64 * 1024
"""The size of a slice in bytes. Decompressing a slice takes a quarter of a millisecond."""
_GZIP: Final = 16 + zlib.MAX_WBITS


@final
class Gunzip:
    """A decompressor that works in slices. The body may be empty or have several gzip members.

    Args:
        source: A function that returns the next compressed bytes, or ``b""`` at the end.
    """

    __slots__ = ("_decoder", "_input", "_is_between_members", "_source")

    def __init__(self, source: Callable[[], Awaitable[bytes]]) -> None:
        self._source = source
        self._input = b""
        self._decoder = zlib.decompressobj(_GZIP)
        self._is_between_members = True

    async def receive(self) -> bytes:
        """Return the next decompressed slice, or ``b""`` at the end."""
        while True:
            if not self._input:
                self._input = await self._source()
                if not self._input:
                    if self._is_between_members:
                        return b""
                    raise failures.DecodingError("it ends early")
            await trio.lowlevel.checkpoint()
            if data := self._decompress():
                return data

    def _decompress(self) -> bytes:
        self._is_between_members = False
        try:
            data = self._decoder.decompress(self._input, SLICE)
        except zlib.error:
            raise failures.DecodingError("it is not gzip") from None
        self._input = self._decoder.unconsumed_tail
        if self._decoder.eof:
            self._input = self._decoder.unused_data
            self._decoder, self._is_between_members = zlib.decompressobj(_GZIP), True
        return data


_SHORT: Final = 2048
"""The maximum number of bytes of an error response that are read before a retry, so that the connection can be
reused."""
SHORT_PATIENCE: Final = 5.0
"""The maximum number of seconds for the arrival of a short body."""
MAX_ERROR: Final = 256 * 1024
"""The maximum number of bytes that are read from the body of an error response. A Status is much shorter."""


MIN_WATCH: Final = 1.1
"""The minimum age of a watch, in seconds, before its end is reported. A watch that ends within a second looks like a
rejected watch."""


@final
@attrs.define(eq=False, repr=False)
class ByteStream:
    """The body of one response, which one task at a time may read. :meth:`Transport.stream` opens it."""

    _response: ResponseStream
    _request: Request
    sent_with: Credential
    """The credential of the request."""
    generation: Generation
    """The generation of the connection that received it."""
    _health: Liveness
    _limits: Limits
    code: int = attrs.field(init=False)
    """The HTTP status code."""
    headers: Mapping[str, str] = attrs.field(init=False)
    """The headers, in lower case; without the encoding if the body was decompressed."""
    content: bytes = attrs.field(default=b"", init=False)
    """The body, if the request has a limit for it, or the beginning of a streamed error's body."""
    received: int = attrs.field(default=0, init=False)
    """The number of bytes of the body so far, after decompression."""
    failure: str = attrs.field(default="", init=False)
    """The name of the exception that ended the body."""
    history: str = attrs.field(default="", init=False)
    """The earlier attempts, for a note in errors. The list is empty if the request was sent only once."""
    is_cut_off: bool = attrs.field(default=False, init=False)
    """Whether the body was cut off because the connections of the client were replaced."""
    on_close: Callable[[], None] | None = attrs.field(default=None, init=False)
    """Called once, when the stream is closed."""
    on_end: Callable[[str], None] | None = attrs.field(default=None, init=False)
    """Called once after ``on_close`` with the failure, for an observer."""
    _receive: Callable[[], Awaitable[bytes]] = attrs.field(init=False)
    _ends_at: float = attrs.field(default=0.0, init=False)
    _left: float = attrs.field(default=math.inf, init=False)
    """The number of further bytes that the body may have."""
    _error: Exception | None = attrs.field(default=None, init=False)
    _is_receiving: bool = attrs.field(default=False, init=False)
    _is_over: bool = attrs.field(default=False, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)
    _is_released: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        response, request, head = self._response, self._request, self._response.head
        self.code, self.headers, self._receive = head.code, head.headers, response.receive
        if request.accepts_gzip and head.headers.get("content-encoding", "").lower() in ("gzip", "x-gzip"):
            self._receive = Gunzip(self._receive_compressed).receive
            own = ("content-encoding", "content-length")
            self.headers = {name: value for name, value in head.headers.items() if name not in own}
        if request.is_watch:
            self._ends_at = trio.current_time() + MIN_WATCH
        if request.limit is not None and head.code < 400:  # for an error, the beginning is read in any case
            self._left = getattr(self._limits, request.limit)

    @property
    def head(self) -> Head:
        """The head of the response as the server sent it."""
        return self._response.head

    @property
    def server(self) -> str:
        """The server and the source of its configuration, for error messages."""
        return self._health.server_text

    @property
    def credential(self) -> str:
        """The kind of credential, for error messages."""
        return self._health.credential_text

    @property
    def upgraded(self) -> trio.abc.Stream:
        """The stream of the new protocol after status 101."""
        stream = self._response.upgraded
        if stream is None:
            raise ValueError("the response did not switch to another protocol")
        return stream

    async def receive_some(self) -> bytes:
        """Receive the next bytes of the body, or ``b""`` at its end.

        Raises:
            ConnectionFailedError: The body ended early. Every later call raises the same error.
            LimitExceededError: The body is too long. Every later call raises the same error.
            trio.ClosedResourceError: The stream or the client is closed, or an earlier call was cancelled.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Closes the connection. No more data can be received.
        """
        if self._is_receiving:
            raise trio.BusyResourceError("another task is already receiving from this stream")
        if self._is_closed or self._is_over or self._error is not None:
            await trio.lowlevel.checkpoint()
            if self._is_closed:
                raise trio.ClosedResourceError("this stream is closed")
            if self._error is not None:
                raise self._error
            return b""
        try:
            await trio.lowlevel.checkpoint_if_cancelled()  # nothing is lost before the read has begun
            self.failure = ""
        except BaseException as exc:
            self.failure = type(exc).__name__
            raise
        self._is_receiving = True
        try:
            data = await self._receive()
        except CONNECTION_ERRORS as exc:
            clear_locals(exc)
            if not (self._request.is_watch and self.generation.is_retired and isinstance(exc, failures.TransportError)):
                raise self._failure(exc) from exc
            data = b""
            self.is_cut_off = True
        except BaseException as exc:
            clear_locals(exc)
            self._is_closed, self.failure = True, type(exc).__name__
            raise
        finally:
            self._is_receiving = False
        if self.is_cut_off:
            self._is_over = True
            await trio.sleep_until(self._ends_at)
            return b""
        self._is_over = not data
        self.received += len(data)
        self._left -= len(data)
        if self._left < 0:
            limit = self._request.limit
            assert limit is not None
            data = b""  # as in read_whole
            longest = getattr(self._limits, limit)
            self._error = limit_error(self._request.where or self.server, limit, longest, "the body is too long")
            self.failure = type(self._error).__name__
            raise self._error
        return data

    async def _receive_compressed(self) -> bytes:
        if self._is_closed:  # during a checkpoint; another request may use the connection
            raise trio.ClosedResourceError
        return await self._response.receive()

    def _failure(self, cause: Exception) -> Exception:
        if self._is_closed or self._health.is_closed:
            what = "this stream" if self._is_closed else "the client"
            self.failure = trio.ClosedResourceError.__name__
            return trio.ClosedResourceError(f"{what} was closed while the stream was being read")
        if shows_failing_server(cause):
            self._health.record_failure()
        self._error = error = connection_failed(cause, self.server, self._request.where)
        self.failure = type(error).__name__
        if isinstance(error, ConnectionFailedError):
            error.partial = True
        return error

    async def read_whole(self) -> None:
        """Read the complete body, or the beginning of an error's body, into ``content``, and close the response."""
        pieces: list[bytes] = []
        head = self._response.head
        is_sized = head.framing is Framing.SIZED and self._receive == self._response.receive
        left = MAX_ERROR if self.code >= 400 else head.length if is_sized else math.inf
        try:
            while left > 0 and not self._is_over and (data := await self.receive_some()):
                pieces.append(data)
                left -= len(data)
            self.content = b"".join(pieces)[: MAX_ERROR if self.code >= 400 else None]  # a single piece is not copied
        except BaseException:
            pieces.clear()  # a traceback that shows local variables must not show the body
            data = b""
            raise
        finally:
            await self.aclose()

    async def drop(self) -> None:
        """Read and discard the body of an error response, and close it.

        If the body is short, the connection can be reused.
        """
        try:
            if not self._is_closed:
                with suppress(ConnectionFailedError, LimitExceededError):
                    await self.read_short(_SHORT)
        finally:
            await self.aclose()

    async def read_short(self, most: int) -> bytes:
        """Read a body up to a size limit and for a few seconds, so that an endless body does not block the caller."""
        body = bytearray()
        try:
            with trio.move_on_after(SHORT_PATIENCE):
                while len(body) < most and (data := await self.receive_some()):
                    body += data
        except BaseException:
            body, data = bytearray(), b""  # as in read_whole
            raise
        self.content = bytes(body)
        return self.content

    async def aclose(self) -> None:
        """Close the response.

        The connection is also closed unless the complete body was received. On a real connection, this does not execute
        a checkpoint.
        """
        self._is_closed = True
        if not self._is_released:  # another request may use the connection
            self._is_released = True
            try:
                await self._response.aclose()
            finally:
                self.end_turn()
                if self.on_end is not None:
                    on_end, self.on_end = self.on_end, None  # no cycle that would keep the body
                    on_end(self.failure)

    def end_turn(self) -> None:
        """Mark the response so that another request may be sent before it is closed."""
        if self.on_close is not None:
            self.on_close()
            self.on_close = None
