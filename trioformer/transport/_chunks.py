"""Check the framing of responses, and merge the chunks that have arrived together, before httpcore sees them.

The problem: kube-apiserver sends a list in two HTTP chunks for each item, and a watch in one for each event.
httpcore and h11 make an event of each chunk, and pass it through five async generators: for 10,000 pods that is more
than half of the CPU of a list.
What one read of the socket returns has many chunks, which become one here; their bytes are the same.

h11 decides what a response means.
But it works in one piece, and some of what it accepts or looks for takes it seconds: a header with 60,000 spaces,
thousands of headers, of responses of code 100, or of trailers.
So the size of everything that is not the body is checked here, before h11 sees it.

Bytes that follow a response were sent by mistake: a response that a proxy sent twice, or a body after a 204.
h11 would take them for the response to the next request, so :attr:`ChunkMerger.is_at_end` says whether a response ended
without any; if in doubt it is False, and the connection is not used again.
"""

from __future__ import annotations

import enum
import re
from typing import Final, final

import httpcore

from ._limits import DEFAULT_LIMITS, LimitPassedError, Limits

MAX_SIZE_LINE: Final = 1024
"""Bytes of the line with the size of a chunk; more is an error."""
MAX_SPACES: Final = 1024
"""Spaces and tabs in a row in a header; h11 needs quadratic time for them if the header is not valid."""

_PROTOCOL: Final = b"HTTP/"
# As h11 reads it.  Extensions mean nothing to anybody, and are dropped.
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,20})(?:[ \t]*|;[^\n]*?)\r\n")
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_FOLDED: Final = rb"(?:[ \t]|\r?\n[ \t])*"
_CHUNKED: Final = re.compile(rb"\ntransfer-encoding:" + _FOLDED + rb"chunked" + _FOLDED + rb"\r?\n", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r?\n", re.IGNORECASE)
_BODILESS: Final = (b"204", b"304")
_UNKNOWN: Final = -1
"""The number of bytes to pass on, if only h11 can say where the response ends."""


class Expected(enum.Enum):
    """What comes next on a connection."""

    HEAD = "the head of a response"
    SIZE = "the size of a chunk"
    DATA = "the data of a chunk"
    END = "the line end after the data of a chunk"
    TRAILERS = "the trailers, or the empty line, after the last chunk"
    ANYTHING = "bytes that are passed on, up to the next request"


@final
class ChunkMerger:
    """Merges the chunks of the responses on one connection.

    Args:
        limits: The limits of heads and trailers.
    """

    __slots__ = ("_expected", "_held", "_interim", "_left", "_limits")

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._expected = Expected.ANYTHING
        self._held = b""
        self._interim = 0
        self._left = 0  # of the chunk's data, or of the bytes to pass on; negative if there were more of these

    @property
    def is_at_end(self) -> bool:
        """Whether the bytes so far are one response, from its first byte to its last, and no more."""
        return self._expected is Expected.ANYTHING and not self._left

    @property
    def is_inside_head(self) -> bool:
        """Whether a part of the head of a response has arrived, and not the rest."""
        return self._expected is Expected.HEAD and bool(self._held)

    def start(self) -> None:
        """Expect a response; called with each request, and there is one response at a time."""
        self._expected, self._held, self._interim = Expected.HEAD, b"", 0

    def feed(self, data: bytes) -> bytes:
        """Return what is passed on of the bytes that were received; empty if more are needed, or at the end.

        Raises:
            httpcore.RemoteProtocolError: It is not HTTP/1.1, or the size of a chunk is not one.
            LimitPassedError: Something other than the body is too long.
        """
        if self._expected is Expected.ANYTHING:
            self._left -= len(data)
            return data
        if not data:
            data, self._held = self._held, b""  # the connection has ended inside the framing
            return self._pass_on(data, _UNKNOWN)
        searched = 0
        if self._held:
            searched = max(0, len(self._held) - 3)
            data, self._held = self._held + data, b""
        if self._expected is Expected.HEAD:
            return self._read_head(data, searched)
        return self._merge(data, 0)

    def _read_head(self, data: bytes, searched: int) -> bytes:
        begin = 0
        while True:
            given = data[begin : begin + len(_PROTOCOL)]
            if not _PROTOCOL.startswith(given):
                raise httpcore.RemoteProtocolError("the response does not begin with HTTP/")
            end = self._end_of_lines(data, begin, max(begin, searched), "the head of the response")
            if not end:
                self._held = data[begin:]
                return data[:begin]
            # Before a response with code 101 or from 200 there may be others, which have no body.
            if data[begin + 8 : begin + 10] != b" 1":
                break
            if data[begin + 9 : begin + 12] == b"101":
                return self._pass_on(data, _UNKNOWN)
            self._interim += 1
            if self._interim > self._limits.interim_responses:
                what = "the server sends one response of code 100 to 199 after another"
                raise LimitPassedError("interim_responses", self._limits.interim_responses, what)
            begin = end
        if data[begin + 9 : begin + 12] in _BODILESS:
            return self._pass_on(data, end)
        if _CHUNKED.search(data, begin, end):
            self._expected = Expected.SIZE
            return self._merge(data, end)
        length = _LENGTH.search(data, begin, end)
        return self._pass_on(data, _UNKNOWN if length is None else end + int(length[1]))

    def _end_of_lines(self, data: bytes, begin: int, searched: int, what: str) -> int:
        """Return where the empty line ends that ends lines of headers, 0 if it has not arrived.

        Raises:
            LimitPassedError: There are too many bytes or lines.
        """
        for blank in (b"\r\n", b"\n"):
            if data.startswith(blank, begin):
                return begin + len(blank)
        found = _BLANK_LINE.search(data, searched)
        end = found.end() if found else 0
        limits = self._limits
        if (end or len(data)) - begin > limits.header_bytes:
            raise LimitPassedError("header_bytes", limits.header_bytes, f"{what} is too long")
        if end:
            lines = data[begin:end]
            if lines.count(b"\n") - 1 > limits.headers:
                raise LimitPassedError("headers", limits.headers, f"{what} has too many lines")
            if b" " * MAX_SPACES in lines.replace(b"\t", b" "):
                raise httpcore.RemoteProtocolError("a header contains a thousand spaces")
        return end

    def _merge(self, data: bytes, begin: int) -> bytes:
        """Return the first ``begin`` bytes, the data of all chunks as one chunk, and the bytes that are passed on."""
        view = memoryview(data)
        pieces: list[bytes | memoryview] = []
        length, rest = 0, b""
        position, end = begin, len(data)
        while position < end:
            if self._expected is Expected.SIZE:
                found = _SIZE.match(data, position)
                if found is None:
                    if end - position > MAX_SIZE_LINE or data.find(b"\n", position) >= 0:
                        raise httpcore.RemoteProtocolError("the size of a chunk is not valid")
                    self._held = data[position:]
                    break
                size, position = int(found[1], 16), found.end()
                after = position + size
                if not size:
                    self._expected, rest = Expected.TRAILERS, b"0\r\n"
                elif after + 2 <= end and data[after] == _CR and data[after + 1] == _LF:  # the whole chunk has arrived
                    pieces.append(view[position:after])
                    length += size
                    position = after + 2
                else:
                    self._expected, self._left = Expected.DATA, size
            elif self._expected is Expected.DATA:
                size = min(self._left, end - position)
                pieces.append(view[position : position + size])
                length += size
                position += size
                self._left -= size
                if not self._left:
                    self._expected = Expected.END
            elif self._expected is Expected.TRAILERS:
                after = self._end_of_lines(data, position, position, "what follows the last chunk")
                if after:
                    rest += self._pass_on(data[position:], after - position)
                else:
                    self._held = data[position:]
                break
            elif end - position < 2:
                self._held = data[position:]
                break
            elif data[position : position + 2] != b"\r\n":
                raise httpcore.RemoteProtocolError("a chunk of the response is longer than its size")
            else:
                self._expected, position = Expected.SIZE, position + 2
        if not pieces:
            return data[:begin] + rest
        return b"".join((view[:begin], b"%x\r\n" % length, *pieces, b"\r\n", rest))

    def _pass_on(self, data: bytes, length: int) -> bytes:
        """Pass on these bytes, which the rest of the response begins with, and everything after them."""
        self._expected = Expected.ANYTHING
        self._left = _UNKNOWN if length == _UNKNOWN else length - len(data)
        return data


_CR, _LF = b"\r\n"
