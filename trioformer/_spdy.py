"""The SPDY/3.1 frames of port forwarding, for clients and servers, without I/O.

Kubernetes forwards ports through SPDY inside a WebSocket (KEP-4006). Each forwarded connection uses two streams: one
for its data, and one for an error message.
Unlike in the older subprotocol ``v4.channel.k8s.io``, one side can finish sending and still receive data.

Flow control of streams is not implemented, because no peer in Kubernetes implements it.

Source: Chromium's "SPDY Protocol - Draft 3.1", and moby/spdystream, which client-go and kubelets use.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias, final

TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
"""The subprotocol of the WebSocket."""
MAX_CONTROL: Final = 64 * 1024
"""The maximum size of a control frame, and of decompressed headers, in bytes."""
CANCEL: Final = 5
"""The status of a stream that is reset because it is no longer needed."""

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN: Final = 1
_CONTROL: Final = 0x8003
"""The first two bytes of a control frame, including the version."""
_MASK: Final = 0x7FFFFFFF


def _dictionary() -> bytes:
    words = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges
        age allow authorization cache-control connection content-base content-encoding content-language content-length
        content-location content-md5 content-range content-type date etag expect expires from host if-match
        if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma
        proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
        user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie
        keep-alive origin"""
    encoded = [word.replace("_", " ").encode() for word in words.split()]
    rest = (
        b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        b"203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
        b"403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
        b"Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
        b"chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
        b"text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
    )
    return b"".join(len(word).to_bytes(4, "big") + word for word in encoded) + rest


DICTIONARY: Final = _dictionary()
"""The compression dictionary of headers (2.6.10.1)."""


class StreamOpened(NamedTuple):
    """The peer opened a stream."""

    stream: int
    headers: dict[str, str]


class StreamAccepted(NamedTuple):
    """The peer accepted a stream. Data must not be sent before this event."""

    stream: int


class StreamData(NamedTuple):
    """Data of a stream, possibly empty."""

    stream: int
    data: bytes
    is_end: bool
    """Whether this is the end of the data."""


class StreamReset(NamedTuple):
    """The peer ended a stream in both directions."""

    stream: int


class Pinged(NamedTuple):
    """The peer sent a ping, and expects the same frame as a response."""

    frame: bytes
    """The response."""


class WentAway(NamedTuple):
    """The peer does not accept any more streams."""


SpdyEvent: TypeAlias = StreamOpened | StreamAccepted | StreamData | StreamReset | Pinged | WentAway


class SpdyError(Exception):
    """The received bytes are not valid SPDY."""


@final
class SpdyFrames:
    """One side of a SPDY connection, which makes frames and parses the peer's frames.

    Received frames may be split anywhere.
    """

    __slots__ = ("_buffer", "_compressor", "_data", "_decompressor", "_is_client")

    def __init__(self, *, is_client: bool) -> None:
        self._is_client = is_client
        self._compressor = zlib.compressobj(zdict=DICTIONARY)
        self._decompressor = zlib.decompressobj(zdict=DICTIONARY)
        self._buffer = bytearray()
        self._data: tuple[int, int, bool] | None = None
        """The current data frame: its stream, the number of missing bytes, and whether it is the last frame of the
        stream."""

    # --- sending ---

    def open(self, stream: int, headers: Mapping[str, str]) -> bytes:
        """Return the frame that opens a stream."""
        return _control(_SYN_STREAM, struct.pack("!IIH", stream, 0, 0) + self._compress(headers))

    def accept(self, stream: int) -> bytes:
        """Return the frame that accepts a stream."""
        return _control(_SYN_REPLY, struct.pack("!I", stream) + self._compress({}))

    def data(self, stream: int, data: bytes | bytearray | memoryview, *, is_end: bool = False) -> bytes:
        """Return a data frame. The data must be smaller than 16 MiB."""
        return b"".join((struct.pack("!II", stream, is_end << 24 | len(data)), data))

    def reset(self, stream: int) -> bytes:
        """Return the frame that ends a stream in both directions."""
        return _control(_RST_STREAM, struct.pack("!II", stream, CANCEL))

    def ping(self) -> bytes:
        """Return a ping frame. The peer responds with the same frame."""
        return _control(_PING, struct.pack("!I", 1 if self._is_client else 2))

    def _compress(self, headers: Mapping[str, str]) -> bytes:
        parts = [struct.pack("!I", len(headers))]
        for name, value in headers.items():
            for each in (name.lower().encode(), value.encode()):
                parts += (struct.pack("!I", len(each)), each)
        return self._compressor.compress(b"".join(parts)) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    # --- receiving ---

    def receive(self, data: bytes) -> Iterator[SpdyEvent]:
        """Yield the events in received bytes. The caller must iterate until the end or an error.

        Raises:
            SpdyError: The bytes are not SPDY, or exceed a limit.
        """
        buffer = self._buffer
        buffer += data
        position = 0
        while True:
            if self._data is not None:
                stream, missing, is_end = self._data
                piece = bytes(buffer[position : position + missing])
                if not piece and missing:
                    break
                position += len(piece)
                missing -= len(piece)
                self._data = (stream, missing, is_end) if missing else None
                yield StreamData(stream, piece, is_end and not missing)
                continue
            if len(buffer) - position < 8:
                break
            word, rest = struct.unpack_from("!II", buffer, position)
            flags, length = rest >> 24, rest & 0xFFFFFF
            if not word >> 31:
                position += 8
                self._data = (word, length, bool(flags & _FIN))
                continue
            if word >> 16 != _CONTROL or length > MAX_CONTROL:
                raise SpdyError("the received bytes are not SPDY/3.1")
            if len(buffer) - position < 8 + length:
                break
            frame = bytes(buffer[position : position + 8 + length])
            position += 8 + length
            yield from self._control_events(word & 0xFFFF, flags, frame)
        del buffer[:position]

    def _control_events(self, kind: int, flags: int, frame: bytes) -> list[SpdyEvent]:
        body = frame[8:]
        if kind in (_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING) and len(body) < 4:
            raise SpdyError("a SPDY frame is too short")
        if kind == _PING:
            # Pings of clients have odd numbers.
            return [Pinged(frame)] if (body[3] & 1) != self._is_client else []
        stream = int.from_bytes(body[:4], "big") & _MASK
        if kind == _SYN_STREAM:
            opened: list[SpdyEvent] = [StreamOpened(stream, self._decompress(body[10:]))]
        elif kind == _SYN_REPLY:
            opened = [StreamAccepted(stream)]
        else:
            return [StreamReset(stream)] if kind == _RST_STREAM else [WentAway()] if kind == _GOAWAY else []
        if flags & _FIN:
            opened.append(StreamData(stream, b"", True))
        return opened

    def _decompress(self, block: bytes) -> dict[str, str]:
        try:
            text = self._decompressor.decompress(block, MAX_CONTROL)
        except zlib.error as exc:
            raise SpdyError(f"the headers of a SPDY stream cannot be decompressed: {exc}") from exc
        if self._decompressor.unconsumed_tail:
            raise SpdyError(f"the headers of a SPDY stream are longer than {MAX_CONTROL} bytes")
        words: list[str] = []
        position = 4
        while position < len(text):
            length = int.from_bytes(text[position : position + 4], "big")
            position += 4 + length
            if position > len(text):
                raise SpdyError("the headers of a SPDY stream are truncated")
            words.append(text[position - length : position].decode("utf-8", "replace"))
        return dict(zip(words[::2], words[1::2], strict=False))


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack("!HHI", _CONTROL, kind, len(body)) + body
