"""One HTTP/1.1 connection, which sends one request after another and finds the end of each response body.

The connection object is also the response that it receives, until its owner, such as a pool, takes it back.
No lock is needed, because no checkpoint is executed between checking a state and changing it, and because a request is
sent in one call.
If a receive is cancelled, no data is lost, so another task may repeat the call. Probes rely on this.
All failures are raised as ``failures.TransportError``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, final

import attrs
import trio

from .. import _failures as failures
from .._errors import InvalidResponseError, TooLongHeadError
from ._messages import SWITCHED, Framing, Head, decode, end_of_head, read_head, split_lines

if TYPE_CHECKING:
    from ._sockets import NetworkStream
    from ._upgraded import UpgradedStream

MAX_HEAD: Final = 64 * 1024
"""The limit of a head in bytes, including all 1xx heads before it."""
_PROTOCOL: Final = b"HTTP/"
MAX_SIZE_LINE: Final = 1024
"""The maximum length of the line with the size of a chunk, in bytes."""

# Chunk extensions are ignored, because no server uses them.
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*|;[^\r\n]*)\r\n")


class ResponseStream(Protocol):
    """A response with a streamed body, which one task at a time may read. It must be closed after a cancellation."""

    @property
    def head(self) -> Head: ...
    @property
    def upgraded(self) -> trio.abc.Stream | None: ...  # of the new protocol, after status 101
    async def receive(self) -> bytes: ...  # the next bytes, empty at the end; raises CONNECTION_ERRORS
    async def aclose(self) -> None: ...  # also closes its connection, unless the body has been received


class Expected(enum.Enum):
    """The part of a body that is expected next."""

    SIZE = "the size of a chunk"
    DATA = "the data of a chunk, or of a sized body"
    DATA_END = "the line end after the data of a chunk"
    TRAILERS = "the trailers, or the empty line, after the last chunk"
    CLOSE = "anything, until the server closes the connection"
    NOTHING = "nothing: the body has ended"


@final
class BodyReader:
    """A decoder that finds the bytes of one body in the received data.

    If ``has_excess`` is true, extra bytes have arrived after the body, for example because a proxy sent a response
    twice.
    These bytes must not be read as the response to the next request.
    """

    __slots__ = ("_held", "_is_chunked", "_left", "_limit", "expected", "has_excess")

    def __init__(self, head: Head, limit: int) -> None:
        self._is_chunked = head.framing is Framing.CHUNKED
        self._left = head.length
        self._limit = limit
        self._held = b""
        self.has_excess = False
        if self._is_chunked:
            self.expected = Expected.SIZE
        elif head.framing is Framing.UNTIL_CLOSE:
            self.expected = Expected.CLOSE
        else:
            self.expected = Expected.DATA if head.length else Expected.NOTHING

    def feed(self, data: bytes) -> bytes:
        """Return the bytes in the received data that belong to the body.

        Empty data means that the server has closed the connection.

        The result is empty at the end of the body, or if more data must arrive first.
        """
        if self._is_chunked and self.expected is not Expected.NOTHING:
            return self._feed_chunks(data)
        if self.expected is Expected.DATA:
            size = len(data)
            if size < self._left:
                if not size:
                    raise failures.EarlyEndError(failures.CUT_OFF)
                self._left -= size
                return data
            self.expected = Expected.NOTHING
            self.has_excess = size > self._left
            return data[: self._left] if self.has_excess else data
        if self.expected is Expected.CLOSE:
            if not data:
                self.expected = Expected.NOTHING
            return data
        self.has_excess = self.has_excess or bool(data)
        return b""

    def _feed_chunks(self, data: bytes) -> bytes:
        if not data:
            raise failures.EarlyEndError(failures.CUT_OFF)
        if self._held:
            data, self._held = self._held + data, b""
        position, end = 0, len(data)
        pieces: list[bytes | memoryview] = []
        view = memoryview(data)
        while position < end:
            if self.expected is Expected.SIZE:
                found = _SIZE.match(data, position)
                if found is None:
                    if end - position > MAX_SIZE_LINE or data.find(b"\n", position) >= 0:
                        raise InvalidResponseError("the size of a chunk is not valid")
                    self._held = data[position:]
                    break
                size, position = int(found[1], 16), found.end()
                after = position + size
                if not size:
                    self.expected = Expected.TRAILERS
                elif data.startswith(b"\r\n", after):  # the whole chunk has arrived
                    pieces.append(view[position:after])
                    position = after + 2
                else:
                    self.expected, self._left = Expected.DATA, size
            elif self.expected is Expected.DATA:
                size = min(self._left, end - position)
                pieces.append(view[position : position + size])
                position += size
                self._left -= size
                if not self._left:
                    self.expected = Expected.DATA_END
            elif self.expected is Expected.DATA_END:
                if end - position < 2:
                    self._held = data[position:]
                    break
                if data[position : position + 2] != b"\r\n":
                    raise InvalidResponseError("a chunk of the response is longer than its declared size")
                self.expected, position = Expected.SIZE, position + 2
            elif self.expected is Expected.TRAILERS:
                position = self._skip_trailers(data, position)
            else:
                self.has_excess = True
                break
        return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)

    def _skip_trailers(self, data: bytes, position: int) -> int:
        """Skip the trailers, and return the position of their end.

        If more data must arrive, return the end of the data instead.
        """
        if data.startswith(b"\r\n", position):
            self.expected = Expected.NOTHING
            return position + 2
        rest = data[position:]
        after = end_of_head(rest)
        if (after or len(rest)) > self._limit:
            raise TooLongHeadError("the trailer section", self._limit)
        if not after:
            self._held = rest
            return len(data)
        split_lines(decode(rest[:after]))
        self.expected = Expected.NOTHING
        return position + after


class NotAvailableError(Exception):
    """The server has closed the idle connection, and nothing was sent."""


class State(enum.Enum):
    """The current use of a connection."""

    FRESH = "for nothing yet"
    HEAD = "for a request whose response has not begun"
    BODY = "for the body of a response"
    IDLE = "for nothing, between two requests"
    SWITCHED = "for another protocol"
    CLOSED = "for nothing any more"


@final
@attrs.define(eq=False, repr=False)
class Connection:
    """A connection to a server, which one task at a time may use. It implements :class:`ResponseStream`."""

    stream: NetworkStream
    _limit: int = MAX_HEAD
    """The limit of a head, in bytes."""
    _take_back: Callable[[Connection], None] | None = None
    """A function that is called with the connection when its response is closed, or None to only release the
    connection."""
    state: State = attrs.field(default=State.FRESH, init=False)
    _head: Head | None = attrs.field(default=None, init=False)
    _body: BodyReader | None = attrs.field(default=None, init=False)
    _patience: float | None = attrs.field(default=None, init=False)
    _upgraded: UpgradedStream | None = attrs.field(default=None, init=False)
    _held: bytes = attrs.field(default=b"", init=False)
    """Received bytes of an incomplete head, or after a head with status 101."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.state.name.lower()}>"

    @property
    def is_closed(self) -> bool:
        """Whether this side has closed the connection, or at least its socket."""
        return self.state is State.CLOSED or self.stream.raw.is_closed

    @property
    def head(self) -> Head:
        """The head of the response."""
        assert self._head is not None
        return self._head

    @property
    def upgraded(self) -> UpgradedStream | None:
        """The stream of the new protocol after status 101."""
        if self._upgraded is None and self.state is State.SWITCHED:
            from ._upgraded import UpgradedStream  # noqa: PLC0415  # most clients do not run commands in pods

            self._upgraded, self._held = UpgradedStream(self.stream, self._held), b""
        return self._upgraded

    @property
    def has_excess(self) -> bool:
        """Whether data has arrived after the head. A response to CONNECT has no body, so such data is an error."""
        return bool(self._held)

    async def send(self, request: bytes, patience: float | None) -> None:
        """Send a request. Raise NotAvailableError if the server has closed the connection since its last use.

        Cancellation: the caller must close the connection, as after an error.
        """
        # After a failure here, nothing was sent: there is no checkpoint between this check and the first byte.
        if self.state is State.IDLE:
            # Unless it is the end of the connection, the received data would count as the next response.
            if self.stream.is_readable:
                raise NotAvailableError
        elif (problem := self.stream.raw.problem()) is not None:
            raise failures.ConnectError(str(problem)) from problem
        self.state, self._head, self._body, self._held = State.HEAD, None, None, b""
        with suppress(failures.WriteError):  # a server may respond without reading everything, and close the connection
            await self.stream.send(request, patience)

    async def receive_head(self, patience: float | None, *, is_alone: bool = False) -> Head:
        """Receive the head of the response. If ``is_alone`` is true, no body follows, as after a HEAD request.

        ``patience`` is the maximum time in seconds without any data, for the head and the body. None means no limit.
        """
        self._patience = patience
        begin = searched = 0  # earlier bytes are heads with codes 100 to 199
        while True:
            data = self._held
            start = data[begin : begin + len(_PROTOCOL)]
            if not _PROTOCOL.startswith(start):
                raise InvalidResponseError("the response does not begin with HTTP/")
            end = end_of_head(data, max(begin, searched - 2))
            if (end or len(data)) > self._limit:
                raise TooLongHeadError("the head of the response", self._limit)
            if end:
                head = read_head(data[begin:end], is_alone=is_alone)
                if head.code == SWITCHED or head.code >= 200:
                    self._head, self._held = head, data[end:]
                    if head.code == SWITCHED:
                        self.state = State.SWITCHED
                    else:
                        self.state, self._body = State.BODY, BodyReader(head, self._limit)
                    return head
                begin = end
                continue
            searched = len(data)
            received = await self.stream.receive(patience)
            if not received:
                raise failures.EarlyEndError(failures.NO_RESPONSE)
            self._held += received

    async def receive(self) -> bytes:
        """Receive the next bytes of the body, or ``b""`` at its end."""
        body = self._body
        if body is None:
            raise InvalidResponseError("the server switched to another protocol without being asked")
        if self._held:
            data, self._held = self._held, b""
            if found := body.feed(data):
                return found
        while body.expected is not Expected.NOTHING:
            if found := body.feed(await self.stream.receive(self._patience)):
                return found
        return b""

    async def aclose(self) -> None:
        """Close the response, and return the connection to its owner. This is not a checkpoint."""
        (self._take_back or Connection.release)(self)

    def release(self) -> None:
        """Finish a request. The connection becomes idle if the response was complete, and is closed otherwise."""
        body = self._body
        is_complete = body is not None and body.expected is Expected.NOTHING and not (body.has_excess or self._held)
        if is_complete and self.head.keeps_alive and not self.is_closed:
            self.state = State.IDLE
        else:
            self.close()

    def close(self) -> None:
        """Close the connection. This is not a checkpoint, so it also works after a cancellation."""
        self.state = State.CLOSED
        self.stream.close()
