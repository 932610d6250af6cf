"""The body of a response, which can be closed at any point.

The problem: httpx returns a body as an async generator around five others, down to the socket.
To leave ``async for`` early, or to call ``aclose()`` on the outermost generator, leaves the inner ones suspended until
the garbage collector finds them: each is a ``ResourceWarning``, and the connection is closed later, or never.
Only an exception that is raised in the innermost generator ends all of them.
Cancellation is such an exception.
So a body that is closed early is read once more inside a cancel scope that is already cancelled: the first wait for the
socket raises ``Cancelled``, each generator runs its ``finally``, httpcore closes the connection, and the scope catches
the exception.
After a read that raised, an error or the caller's own cancellation, the generators have ended already.

There is no task and no nursery, so an exception of the caller's block is not wrapped in a group.

httpx never decompresses a body: 30 KB of gzip may be 30 MB, and httpx decompresses what has arrived in one piece.
A body that was requested with gzip is decompressed in slices (``_gzip.py``), and its limits count what comes out.
One that is compressed without a request, or otherwise, is refused before a byte of it is read.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import Final, cast, final

import httpx
import trio

from .._util import NoPublicConstructor
from ..errors import ConnectionFailedError, LimitExceededError, UnexpectedResponseError
from ._errors import CONNECTION_ERRORS, RetiredConnectionError, connection_failed, shows_failing_server
from ._generations import GENERATION
from ._gzip import GunzipChunks, is_gzip
from ._health import ServerHealth
from ._limits import BodyMeter, BodyReceiver, LimitPassedError, Limits
from ._response import SWITCHED, request_id_in

CLOSE_PATIENCE: Final = 5.0
"""Seconds that closing may take, even when the caller is cancelled; it never waits for the peer."""

# httpcore reads 64 KiB at a time and a chunk has at least six bytes, so a longer row of chunks waits for the socket.
_MAX_BUFFERED_CHUNKS: Final = 16 * 1024
_CHUNKS_A_SLICE: Final = 64
"""Chunks that are received before other tasks run; a server can send tiny ones that are in one read of the socket."""

_SHORT: Final = 2048
"""Bytes that are read of a rejection before the request is sent again, so that its connection can be used again."""
_SHORT_PATIENCE: Final = 5.0
"""Seconds that it may take to arrive."""
MAX_ERROR: Final = 256 * 1024
"""Bytes that are read of the body of an error; a Status is much shorter."""

_COMPRESSIONS: Final = frozenset(
    (
        "aes128gcm",
        "br",
        "compress",
        "dcb",
        "dcz",
        "deflate",
        "exi",
        "gzip",
        "pack200-gzip",
        "x-compress",
        "x-gzip",
        "zstd",
    )
)
"""The content codings that are registered (https://www.iana.org/assignments/http-parameters), but for ``identity``."""


def encoding_of(headers: Mapping[str, str]) -> str:
    """Return how a body is compressed; empty if it is not.

    Codings that do not exist, such as ``utf-8`` and ``none``, are mistakes of a proxy, and ignored; so in client-go.
    """
    codings = dict.fromkeys(coding.strip() for coding in headers.get("content-encoding", "").lower().split(","))
    return ", ".join(coding for coding in codings if coding in _COMPRESSIONS)


@final
class ByteStream(metaclass=NoPublicConstructor):
    """The body of one response, for one task at a time; :meth:`Transport.stream` makes it and closes it.

    A success whose body is compressed, unless with gzip on request, raises when it is read; that of an error reads as
    empty.

    Attributes:
        code: The HTTP status code.
        headers: The headers of the response, with names in lower case; without those of a compression that is undone.
        generation: The connections that it was received on.
        history: The attempts before it, for a note in errors; empty if the request was sent once.
        is_cut_off: Whether the body has ended anywhere, because the connections of the client were replaced.
    """

    __slots__ = (
        "_chunks",
        "_credit",
        "_error",
        "_health",
        "_is_closed",
        "_is_over",
        "_is_receiving",
        "_is_started",
        "_meter",
        "_receiving",
        "_response",
        "_server",
        "_slice",
        "_where",
        "code",
        "generation",
        "headers",
        "history",
        "is_cut_off",
    )

    def __init__(
        self,
        response: httpx.Response,
        server: str,
        health: ServerHealth,
        limits: Limits,
        *,
        limit: str | None,
        where: str = "",
        accepts_gzip: bool = False,
    ) -> None:
        self.code: int = response.status_code
        self.headers: Mapping[str, str] = _headers_of(response)
        self.history: str = ""
        self._response = response
        self._server = server
        self._where = where
        self._health = health
        if limit is not None and self.code >= 400:
            limit = "list_bytes"  # what it is must be known; only the beginning is read
        self._meter = None if limit is None else BodyMeter(limits, limit)
        connection = response.extensions.get("network_stream")
        if self._meter is not None and isinstance(connection, BodyReceiver):
            connection.body_patience, self._meter.is_watched = self._meter.patience, True
        # A transport in the same process may have made the response of a complete body.
        # The stream is read itself: ``aiter_raw`` is one generator more, with pieces of the body in its variables.
        if response.is_stream_consumed:
            self._chunks: AsyncIterator[bytes] = _once(response.content)
        else:
            self._chunks = aiter(cast("httpx.AsyncByteStream", response.stream))
        self._receiving = self._chunks.__anext__
        self._slice = _CHUNKS_A_SLICE
        if accepts_gzip and is_gzip(self.headers):
            # Closing reads the chunks themselves, so that their generators end.
            self._receiving, self._slice = GunzipChunks(self._chunks).__anext__, 1
            own = ("content-encoding", "content-length")
            self.headers = {name: value for name, value in self.headers.items() if name not in own}
        self._credit = self._slice
        self._error: Exception | None = None
        self._is_started = self._is_receiving = self._is_over = self._is_closed = False
        self.is_cut_off: bool = False
        self.generation: object = response.extensions.get(GENERATION)
        if encoding := encoding_of(self.headers):
            self._is_over = True
            if 200 <= self.code < 300:
                text = (
                    f"the body is compressed ({encoding}), which was not requested; check the proxies before the server"
                )
                self._error = UnexpectedResponseError(
                    f"{where and f'{where}: '}{server}: unexpected response (HTTP {self.code}): {text}",
                    code=self.code,
                    request_id=request_id_in(self.headers),
                )

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "over" if self._is_over else "open"
        return f"<{type(self).__name__} of {self._server}: HTTP {self.code}, {state}>"

    @property
    def server(self) -> str:
        """The server that sends it and where it is configured, for errors."""
        return self._server

    @property
    def credential(self) -> str:
        """How the request was authenticated, for errors."""
        return self._health.credential_text

    @property
    def warnings(self) -> list[str]:
        """The values of the headers ``Warning``."""
        return self._response.headers.get_list("warning")

    @property
    def upgraded(self) -> trio.abc.Stream:
        """The stream of the protocol that the server has switched to, if its status is 101.

        Raises:
            ValueError: It is another one, or the transport cannot switch.
        """
        stream = self._response.extensions.get("network_stream")
        if self.code != SWITCHED or not isinstance(stream, trio.abc.Stream):
            raise ValueError("there is no stream of another protocol")
        return stream

    async def receive_some(self) -> bytes:
        """Receive the next bytes of the body; ``b""`` at the end of the body.

        What the connection has already read is returned immediately.

        Raises:
            ConnectionFailedError: The body ended early; every later call raises it again.
            LimitExceededError: It is too long, or arrives too slowly; likewise.
            UnexpectedResponseError: It is compressed; likewise.
            trio.ClosedResourceError: The stream is closed, or an earlier call was cancelled.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Closes the connection; nothing more can be received.
        """
        if self._is_receiving:
            raise trio.BusyResourceError("another task is already receiving from this stream")
        self._credit -= 1
        if self._credit:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            self._credit = self._slice
            await trio.lowlevel.checkpoint()
        if self._is_closed:
            raise trio.ClosedResourceError("this stream is closed")
        if self._error is not None:
            raise self._error
        if self._is_over:
            return b""
        self._is_started = self._is_receiving = True
        meter = self._meter
        try:
            data = b""
            while not data:  # a transport in the same process may have empty chunks, which are not the end
                data = await (self._receiving() if meter is None else meter.receive(self._receiving))
        except StopAsyncIteration:
            self._is_over = True
            return b""
        except RetiredConnectionError:
            self._is_over = self.is_cut_off = True
            return b""
        except CONNECTION_ERRORS as exc:
            self._is_over = not isinstance(exc, httpx.DecodingError)  # that one the generators have not raised
            if self._is_closed:
                raise trio.ClosedResourceError("this stream was closed while it was being read") from exc
            if shows_failing_server(exc):
                self._health.record_failure()
            self._error = connection_failed(exc, self._server, self._where)
            raise self._error from exc
        except BaseException:
            self._is_over = self._is_closed = True
            raise
        finally:
            self._is_receiving = False
        try:
            if meter is not None:
                meter.check(data)
        except LimitPassedError as exc:
            self._error = connection_failed(exc, self._server, self._where)
            raise self._error from exc
        return data

    async def _read_whole(self) -> bytes:
        """Read the body to its end, or the beginning of that of an error, and close it."""
        pieces: list[bytes] = []
        left = MAX_ERROR if self.code >= 400 else math.inf
        try:
            while left > 0 and (data := await self.receive_some()):
                pieces.append(data)
                left -= len(data)
        except BaseException:
            pieces.clear()  # a traceback that shows local variables must not show the body
            data = b""
            raise
        finally:
            await self._aclose()
        body = b"".join(pieces)
        return body[:MAX_ERROR] if self.code >= 400 else body

    async def _read_beginning(self) -> None:
        """Read a rejection that nobody needs; one that is short leaves its connection to the next request."""
        read = 0
        with trio.move_on_after(_SHORT_PATIENCE), suppress(ConnectionFailedError, LimitExceededError):
            while read < _SHORT and (data := await self.receive_some()):
                read += len(data)

    async def _aclose(self) -> None:
        self._is_closed = True
        deadline = trio.current_time() + CLOSE_PATIENCE
        with trio.CancelScope(deadline=deadline, shield=True), suppress(*CONNECTION_ERRORS):
            # While another task reads the body, only the connection can be closed, which ends that read.
            try:
                if self._is_started and not self._is_over and not self._is_receiving:
                    await self._unwind()
            finally:
                await self._response.aclose()

    async def _unwind(self) -> None:
        self._is_over = True
        with suppress(StopAsyncIteration, *CONNECTION_ERRORS):
            for _ in range(_MAX_BUFFERED_CHUNKS // _CHUNKS_A_SLICE):
                with trio.CancelScope() as scope:
                    scope.cancel()
                    for _ in range(_CHUNKS_A_SLICE):
                        await self._chunks.__anext__()
                if scope.cancelled_caught:
                    return
                await trio.lowlevel.checkpoint()
            # Only a transport that is not a connection gets here: one that always has more bytes and never waits.
            if isinstance(self._chunks, AsyncGenerator):
                await self._chunks.aclose()


def _headers_of(response: httpx.Response) -> dict[str, str]:
    """Return the headers, with names in lower case; httpx decodes each of them several times."""
    found: dict[str, str] = {}
    try:
        for name, value in response.headers.raw:
            key, text = name.decode("ascii").lower(), value.decode("ascii")
            found[key] = f"{found[key]}, {text}" if key in found else text
    except UnicodeDecodeError:
        return dict(response.headers)
    return found


async def _once(data: bytes) -> AsyncGenerator[bytes, None]:
    if data:
        yield data
