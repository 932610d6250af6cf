"""One HTTP/1.1 connection: a request after the other, each with its response and where the body of that ends.

It is itself the response that it receives, until its owner, such as a pool, takes it back.
It needs no lock: there is no checkpoint between the check of a state and its change, and a request is sent in one call.
A receive that is cancelled loses nothing, so another task may repeat it; probes rely on that.
What fails raises an ``httpx.TransportError``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, final

import attrs
import httpx
import trio

from .._errors import EarlyEndError, InvalidResponseError, TooLongHeadError
from ._messages import SWITCHED, Framing, Head, decode, end_of_head, read_head, split_lines

if TYPE_CHECKING:
    from ._sockets import NetworkStream
    from ._upgraded import UpgradedStream

MAX_HEAD: Final = 64 * 1024
"""The limit of a head in bytes, including all 1xx heads before it."""
_PROTOCOL: Final = b"HTTP/"
MAX_SIZE_LINE: Final = 1024
"""Bytes of the line with the size of a chunk; more is an error."""

# No server gives chunk extensions a meaning; they are ignored.
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*|;[^\r\n]*)\r\n")
_CR, _LF = b"\r\n"


class ResponseStream(Protocol):
    """A response whose body arrives, for one task at a time; after a cancellation it must be closed."""

    @property
    def head(self) -> Head: ...
    @property
    def upgraded(self) -> trio.abc.Stream | None: ...  # of the protocol that the server has switched to, with 101
    async def receive(self) -> bytes: ...  # the next bytes, empty at the end; raises CONNECTION_ERRORS
    async def aclose(self) -> None: ...  # closes its connection, too, unless the body has been received


class Expected(enum.Enum):
    """What comes next of a body."""

    SIZE = "the size of a chunk"
    DATA = "the data of a chunk, or of a sized body"
    DATA_END = "the line end after the data of a chunk"
    TRAILERS = "the trailers, or the empty line, after the last chunk"
    CLOSE = "anything, until the server closes the connection"
    NOTHING = "nothing: the body has ended"


@final
class BodyReader:
    """Finds the bytes of one body in what arrives.

    With ``has_excess``, bytes have arrived after it, by mistake: a response that a proxy sent twice, for example.
    They would be taken for the response to the next request.
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
        """Return the bytes of the body in what was received, which is empty if the server has closed the connection.

        They are empty if more must arrive first, and at the end.
        """
        if self._is_chunked and self.expected is not Expected.NOTHING:
            return self._feed_chunks(data)
        if self.expected is Expected.DATA:
            size = len(data)
            if size < self._left:
                if not size:
                    raise EarlyEndError(has_begun=True)
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
            raise EarlyEndError(has_begun=True)
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
                elif after + 2 <= end and data[after] == _CR and data[after + 1] == _LF:  # the whole chunk has arrived
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
                    raise InvalidResponseError("a chunk of the response is longer than its size")
                self.expected, position = Expected.SIZE, position + 2
            elif self.expected is Expected.TRAILERS:
                position = self._skip_trailers(data, position)
            else:
                self.has_excess = True
                break
        return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)

    def _skip_trailers(self, data: bytes, position: int) -> int:
        """Return where the trailers end, which are not read, or the end of what has arrived of them."""
        if data.startswith(b"\r\n", position):
            self.expected = Expected.NOTHING
            return position + 2
        rest = data[position:]
        after = end_of_head(rest)
        if (after or len(rest)) > self._limit:
            raise TooLongHeadError("what follows the last chunk", self._limit)
        if not after:
            self._held = rest
            return len(data)
        split_lines(decode(rest[:after]))
        self.expected = Expected.NOTHING
        return position + after


class NotAvailableError(Exception):
    """An idle connection that the server has closed meanwhile; nothing was sent."""


class State(enum.Enum):
    """What a connection is used for at present."""

    FRESH = "for nothing yet"
    HEAD = "for a request whose response has not begun"
    BODY = "for the body of a response"
    IDLE = "for nothing, between two requests"
    SWITCHED = "for another protocol"
    CLOSED = "for nothing any more"


@final
@attrs.define(eq=False, repr=False)
class Connection:
    """A connection to a server, which one task uses at a time; implements :class:`ResponseStream`."""

    stream: NetworkStream
    _limit: int = MAX_HEAD
    """That of a head, in bytes."""
    _take_back: Callable[[Connection], None] | None = None
    """Is called with the connection when its response is closed; None to release it only."""
    state: State = attrs.field(default=State.FRESH, init=False)
    _head: Head | None = attrs.field(default=None, init=False)
    _body: BodyReader | None = attrs.field(default=None, init=False)
    _patience: float | None = attrs.field(default=None, init=False)
    _upgraded: UpgradedStream | None = attrs.field(default=None, init=False)
    _held: bytes = attrs.field(default=b"", init=False)
    """Received bytes of an incomplete head, or those that follow a head with status 101."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.state.name.lower()}>"

    @property
    def is_closed(self) -> bool:
        """Whether it was closed on this side, perhaps only its socket, with the client."""
        return self.state is State.CLOSED or self.stream.raw.is_closed

    @property
    def head(self) -> Head:
        """The head of the response."""
        assert self._head is not None
        return self._head

    @property
    def upgraded(self) -> UpgradedStream | None:
        """The stream of the protocol that the server has switched to, if its status is 101."""
        if self._upgraded is None and self.state is State.SWITCHED:
            from ._upgraded import UpgradedStream  # noqa: PLC0415  # most clients run nothing in pods

            self._upgraded, self._held = UpgradedStream(self.stream, self._held), b""
        return self._upgraded

    @property
    def has_excess(self) -> bool:
        """Whether something has arrived after the head, which the response to a CONNECT ends with."""
        return bool(self._held)

    async def send(self, request: bytes, patience: float | None) -> None:
        """Send a request; NotAvailableError says that the server has closed the connection since it was used.

        Cancellation: the connection must be closed, as after an error.
        """
        # What fails here was certainly not sent: no checkpoint is between this check and the first byte.
        if self.state is State.IDLE:
            # What has arrived would be taken for the next response, if it is not the end.
            if self.stream.is_readable:
                raise NotAvailableError
        elif (problem := self.stream.raw.problem()) is not None:
            raise httpx.ConnectError(str(problem)) from problem
        self.state, self._head, self._body, self._held = State.HEAD, None, None, b""
        with suppress(httpx.WriteError):  # a server may respond without reading everything, and close the connection
            await self.stream.send(request, patience)

    async def receive_head(self, patience: float | None, *, is_alone: bool = False) -> Head:
        """Receive the head of the response; ``is_alone`` says that no body follows, as after a HEAD.

        ``patience`` are the seconds without a byte, of the head and of the body; None for no limit.
        """
        self._patience = patience
        begin = searched = 0  # what is before that are heads of code 100 to 199
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
                raise EarlyEndError(has_begun=False)
            self._held += received

    async def receive(self) -> bytes:
        """Receive the next bytes of the body; ``b""`` at its end."""
        body = self._body
        if body is None:
            raise InvalidResponseError("it switches to another protocol, which was not requested")
        if self._held:
            data, self._held = self._held, b""
            if found := body.feed(data):
                return found
        while body.expected is not Expected.NOTHING:
            if found := body.feed(await self.stream.receive(self._patience)):
                return found
        return b""

    async def aclose(self) -> None:
        """Close the response, and give the connection back; not a checkpoint."""
        (self._take_back or Connection.release)(self)

    def release(self) -> None:
        """End the use for a request: the connection is idle if the response was complete, and closed otherwise."""
        body = self._body
        is_complete = body is not None and body.expected is Expected.NOTHING and not (body.has_excess or self._held)
        if is_complete and self.head.keeps_alive and not self.is_closed:
            self.state = State.IDLE
        else:
            self.close()

    def close(self) -> None:
        """Close the connection; not a checkpoint, so it also works after a cancellation."""
        self.state = State.CLOSED
        self.stream.close()
