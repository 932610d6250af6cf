"""The body of a watch: bytes to lines, and lines to events."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, final

import attrs

from ...errors import DecodeError
from ...models._internal import Head, Raw, decode, level_decoder, scan_whole
from ...transport._internal import DEFAULT_LIMITS
from ._contents import excerpt

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
"""The type of a watch event."""

WatchFrame: TypeAlias = tuple[EventType, bytes, Head] | tuple[Literal["ERROR"], bytes, None]
"""An event's type, the bytes of its object, and their head; the object of an ``ERROR`` is a Status, which has none."""


@final
@attrs.define(eq=False)
class FrameSplitter:
    """Splits the body of a watch into newline-terminated frames.

    Each frame is copied once, and no byte is searched twice.  A frame does not keep the chunk alive that it came in.
    """

    _max_frame: int = attrs.field(default=DEFAULT_LIMITS.object_bytes, kw_only=True, alias="max_frame")  # in bytes
    _buffer: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    is_too_large: bool = attrs.field(default=False, init=False)
    """Whether a frame is larger than the limit; the frames before it were returned, and the body is of no use."""

    @property
    def pending(self) -> int:
        """The number of bytes of an incomplete frame; not 0 at the end of a body that ended early."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add the next bytes of the body, and return the frames that they complete, without line ends and blank lines.

        The frames end before one that is larger than the limit.
        """
        buffer = self._buffer
        frames: list[bytes] = []
        begin = 0
        end = chunk.find(b"\n")
        if end >= 0:
            if buffer:
                buffer += memoryview(chunk)[:end]
                frames.append(bytes(buffer))
                buffer.clear()
                begin = end + 1
                end = chunk.find(b"\n", begin)
            while end >= 0:
                frames.append(chunk[begin:end])
                begin = end + 1
                end = chunk.find(b"\n", begin)
        buffer += memoryview(chunk)[begin:]
        if len(buffer) > self._max_frame or max(map(len, frames), default=0) > self._max_frame:
            frames = list(itertools.takewhile(lambda frame: len(frame) <= self._max_frame, frames))
            self.is_too_large = True
            buffer.clear()
        return [frame for frame in frames if frame and not frame.isspace()]


_LARGE: Final = 1024 * 1024
"""Bytes of a frame that is not scanned twice."""

_TYPES: Final[Mapping[str, EventType]] = {
    "MODIFIED": "MODIFIED",
    "ADDED": "ADDED",
    "DELETED": "DELETED",
    "BOOKMARK": "BOOKMARK",
}
_PREFIXES: Final[tuple[tuple[bytes, EventType], ...]] = tuple(
    (f'{{"type":"{name}","object":'.encode(), type_) for name, type_ in _TYPES.items()
)
_members: Final[Callable[[bytes | Raw], tuple[Raw, ...]]] = level_decoder(("type", "object"))


Scan: TypeAlias = Callable[[bytes], tuple[bytes, Head]]
"""Scans an object's bytes, and returns the bytes to keep and their head."""


def decode_watch_frame(frame: bytes, scan: Scan = scan_whole) -> WatchFrame:
    """Decode one frame of a watch.

    The API server writes every event as ``{"type":"…","object":{…}}``, so the object is cut out without a scan of the
    frame.  The scan of the object, which is needed anyway, proves that the cut is right: it accepts only one complete
    JSON object.
    A frame in another form costs a second scan.

    Args:
        frame: The line, without its end.
        scan: Scans the object.

    Raises:
        DecodeError: The frame is not an event, its type is unknown, or its object has no metadata.
    """
    for prefix, type_ in _PREFIXES:
        if frame.startswith(prefix) and frame.endswith(b"}"):
            data = frame[len(prefix) : -1]
            try:
                data, head = scan(data)
            except DecodeError:
                if len(frame) > _LARGE:
                    raise  # a second scan would hold up other tasks
                break  # other members follow the object, or it is not valid: decode the whole frame
            return type_, data, head
    return _decode_slowly(frame, scan)


def _decode_slowly(frame: bytes, scan: Scan) -> WatchFrame:
    try:
        raw_type, raw_object = _members(frame)
    except (ValueError, RecursionError) as exc:
        raise DecodeError(f"a frame of a watch is not an event: {exc}: {excerpt(frame)}") from exc
    name: object = decode(raw_type) if bytes(raw_type) else None
    data = bytes(raw_object)
    if not data.startswith(b"{"):
        raise DecodeError(f"a watch event has no object: {excerpt(frame)}")
    if name == "ERROR":
        return "ERROR", data, None
    type_ = _TYPES.get(name) if isinstance(name, str) else None
    if type_ is None:
        raise DecodeError(f"a watch event has an unknown type: {excerpt(frame)}")
    return type_, *scan(data)
