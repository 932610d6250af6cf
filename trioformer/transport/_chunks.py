"""Merge the chunks of a response that have arrived together, before httpcore sees them.

The problem: kube-apiserver sends a list in two HTTP chunks for each item, and a watch in one for each event.
httpcore and h11 make an event of each chunk, and pass it through five async generators: for 10,000 pods that is more
than half of the CPU of a list.
What one read of the socket returns has many chunks, which become one here; their bytes are the same.

Only complete and ordinary framing is touched.
From anything else on, the bytes are passed on as they are, and h11 decides what they mean.

Bytes that follow a response were sent by mistake: a response that a proxy sent twice, or a body after a 204.
h11 would take them for the response to the next request, so :attr:`ChunkMerger.is_at_end` says whether a response ended
without any; if in doubt it is False, and the connection is not used again.
"""

from __future__ import annotations

import enum
import re
from typing import Final, final

import httpcore

MAX_HEAD: Final = 64 * 1024
"""Bytes; h11 rejects a longer head of a response."""
MAX_SIZE_LINE: Final = 18
"""Bytes of the longest line with the size of a chunk, without extensions."""

_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r\n", re.IGNORECASE)
_BODILESS: Final = (b"204", b"304")
_LAST_CHUNK: Final = len(b"0\r\n\r\n")
_UNKNOWN: Final = -1
"""The number of bytes to pass on, if only h11 can say where the response ends."""


class Expected(enum.Enum):
    """What comes next on a connection."""

    HEAD = "the head of a response"
    SIZE = "the size of a chunk"
    DATA = "the data of a chunk"
    END = "the line end after the data of a chunk"
    ANYTHING = "bytes that are passed on, up to the next request"


@final
class ChunkMerger:
    """Merges the chunks of the responses on one connection."""

    __slots__ = ("_expected", "_held", "_left")

    def __init__(self) -> None:
        self._expected = Expected.ANYTHING
        self._held = b""
        self._left = 0  # of the chunk's data, or of the bytes to pass on; negative if there were more of these

    @property
    def is_at_end(self) -> bool:
        """Whether the bytes so far are one response, from its first byte to its last, and no more."""
        return self._expected is Expected.ANYTHING and not self._left

    def start(self) -> None:
        """Expect a response; called with each request, and there is one response at a time."""
        self._expected, self._held = Expected.HEAD, b""

    def feed(self, data: bytes) -> bytes:
        """Return what is passed on of the bytes that were received; empty if more are needed, or at the end.

        Raises:
            httpcore.RemoteProtocolError: A chunk is longer than its size.
        """
        if self._expected is Expected.ANYTHING:
            self._left -= len(data)
            return data
        if not data:
            data, self._held = self._held, b""  # the connection has ended inside the framing
            return self._pass_on(data, _UNKNOWN)
        if self._held:
            data, self._held = self._held + data, b""
        begin = 0
        if self._expected is Expected.HEAD:
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:
                return self._hold(data) if len(data) <= MAX_HEAD else self._pass_on(data, _UNKNOWN)
            # Before a response with code 101 or from 200 there may be others, which have no body.
            if data[8:10] == b" 1":
                return self._pass_on(data, _UNKNOWN)
            if data[9:12] in _BODILESS:
                return self._pass_on(data, end)
            if not _CHUNKED.search(data, 0, end):
                length = _LENGTH.search(data, 0, end)
                return self._pass_on(data, _UNKNOWN if length is None else end + int(length[1]))
            self._expected, begin = Expected.SIZE, end
        return self._merge(data, begin)

    def _merge(self, data: bytes, begin: int) -> bytes:
        """Return the first ``begin`` bytes, the data of all chunks as one chunk, and the bytes that are passed on."""
        view = memoryview(data)
        pieces: list[bytes | memoryview] = []
        length, rest = 0, b""
        position, end = begin, len(data)
        while position < end:
            if self._expected is Expected.SIZE:
                found = _SIZE.match(data, position)
                if found is None and end - position < MAX_SIZE_LINE and b"\n" not in data[position:]:
                    self._hold(data[position:])
                    break
                if found is None or not (size := int(found[1], 16)):
                    rest = self._pass_on(data[position:], _UNKNOWN if found is None else _LAST_CHUNK)
                    break
                self._expected, self._left, position = Expected.DATA, size, found.end()
            elif self._expected is Expected.DATA:
                size = min(self._left, end - position)
                pieces.append(view[position : position + size])
                length += size
                position += size
                self._left -= size
                if not self._left:
                    self._expected = Expected.END
            elif end - position < 2:
                self._hold(data[position:])
                break
            elif data[position : position + 2] != b"\r\n":
                raise httpcore.RemoteProtocolError("a chunk of the response is longer than its size")
            else:
                self._expected, position = Expected.SIZE, position + 2
        if not pieces:
            return data[:begin] + rest
        return b"".join((view[:begin], b"%x\r\n" % length, *pieces, b"\r\n", rest))

    def _hold(self, data: bytes) -> bytes:
        self._held = data
        return b""

    def _pass_on(self, data: bytes, length: int) -> bytes:
        """Pass on these bytes, which the rest of the response begins with, and everything after them."""
        self._expected = Expected.ANYTHING
        self._left = _UNKNOWN if length == _UNKNOWN else length - len(data)
        return data
