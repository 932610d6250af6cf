"""Watch bodies: bytes → lines → what each line says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, final

from ..errors import DecodeError
from ..models._internal import Head, Raw, decode, level_decoder, scan_whole

MAX_FRAME: Final = 16 * 1024 * 1024
"""Bytes of one watch event; client-go refuses longer ones too (``streaming.ErrObjectTooLarge``)."""

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
"""What a watch tells of an object."""

WatchFrame: TypeAlias = tuple[EventType, bytes, Head] | tuple[Literal["ERROR"], bytes, None]
"""An event's type, its object's own bytes, and the scan of these; an ``ERROR`` carries a Status, which has no head."""


@final
class FrameSplitter:
    """Cut a watch's body into its newline-terminated frames.

    Each frame is copied out once, no byte is searched twice, and what a frame leaves behind pins nothing.

    Args:
        max_frame: How long a frame may grow before it is refused.
    """

    __slots__ = ("_buffer", "_max_frame")

    def __init__(self, *, max_frame: int = MAX_FRAME) -> None:
        self._buffer = bytearray()
        self._max_frame = max_frame

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished frame are held; not 0 at the end of a body that broke off."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes of the body and return the frames that they complete, without line ends and blank lines.

        Raises:
            DecodeError: A frame is longer than ``max_frame``; the body is of no more use.
        """
        buffer = self._buffer
        frames: list[bytes] = []
        begin = 0
        end = chunk.find(b"\n")
        if end < 0:
            buffer += chunk
        else:
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
        if len(buffer) > self._max_frame or any(len(frame) > self._max_frame for frame in frames):
            raise DecodeError(f"a watch event is longer than {self._max_frame} bytes")
        return [frame for frame in frames if frame and not frame.isspace()]


_TYPES: Final[Mapping[str, EventType]] = {
    "MODIFIED": "MODIFIED",
    "ADDED": "ADDED",
    "DELETED": "DELETED",
    "BOOKMARK": "BOOKMARK",
}
_OPENINGS: Final[tuple[tuple[bytes, EventType], ...]] = tuple(
    (f'{{"type":"{name}","object":'.encode(), type_) for name, type_ in _TYPES.items()
)
_members: Final[Callable[[bytes | Raw], tuple[Raw, ...]]] = level_decoder(("type", "object"))


Scan: TypeAlias = Callable[[bytes], tuple[bytes, Head]]
"""Scans an object's bytes, and returns what is to be kept of them with their head."""


def decode_watch_frame(frame: bytes, scan: Scan = scan_whole) -> WatchFrame:
    """Decode one frame of a watch.

    The API server spells every event ``{"type":"…","object":{…}}``, so that the object can be cut out without a scan
    of its own; that the cut was right is proved by the head scan, which every object gets anyway and which accepts
    nothing but one whole JSON object.
    Any other spelling costs a second scan.

    Args:
        frame: The line, without its end.
        scan: How the object is scanned.

    Raises:
        DecodeError: The frame is no event, its type is unknown, or its object has no metadata.
    """
    for opening, type_ in _OPENINGS:
        if frame.startswith(opening) and frame.endswith(b"}"):
            data = frame[len(opening) : -1]
            try:
                data, head = scan(data)
            except DecodeError:
                break  # more members follow the object, or it is broken: the whole frame tells
            return type_, data, head
    return _decode_slowly(frame, scan)


def _decode_slowly(frame: bytes, scan: Scan) -> WatchFrame:
    try:
        raw_type, raw_object = _members(frame)
    except (ValueError, RecursionError) as exc:
        raise DecodeError(f"a frame of a watch is no event: {exc}: {excerpt(frame)}") from exc
    name: object = decode(raw_type) if bytes(raw_type) else None
    data = bytes(raw_object)
    if not data.startswith(b"{"):
        raise DecodeError(f"a watch event holds no object: {excerpt(frame)}")
    if name == "ERROR":
        return "ERROR", data, None
    type_ = _TYPES.get(name) if isinstance(name, str) else None
    if type_ is None:
        raise DecodeError(f"a frame of a watch has an unknown event type: {excerpt(frame)}")
    return type_, *scan(data)


def excerpt(data: bytes, *, longest: int = 100, is_error: bool = False) -> str:
    """Show the beginning of what should not have come: one line of printable characters.

    What begins like JSON may be an object, and its content may be a secret's: it is not shown, unless it is known to be
    an error's text.
    """
    if not is_error and data.lstrip()[:1] in (b"{", b"["):
        return "something that begins like JSON"
    text = data[: 4 * longest].decode("utf-8", "replace")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not line:
        return "nothing" if not data else f"{len(data)} bytes that are no text"
    return line if len(line) <= longest else f"{line[:longest]}…"
