"""Lists and watches in protobuf: splitting bodies into items and frames, and decoding items and frames to objects.

Source: apimachinery ``pkg/runtime/serializer/protobuf``, and ``pkg/util/framer`` for watches.
"""

from __future__ import annotations

import enum
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, final

import attrs

from ..._suggestions import with_article
from ...errors import DecodeError
from ...models import KubernetesObject, resource_of
from ...models._internal import (
    MAGIC,
    Message,
    envelope_of,
    make_object,
    open_envelope,
    read_level,
    scan_message,
    tagged,
    varint,
)
from ...transport._internal import DEFAULT_LIMITS
from ._contents import EventType, WatchFrame, shown_kind
from ._list_splitter import ListHead

T = TypeVar("T", bound=KubernetesObject)

Span: TypeAlias = tuple[bytes, int, int]
"""Bytes that contain a frame, and the positions where it begins and ends."""

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
"""The media type of objects, lists and Status responses; a watch adds ``;stream=watch``."""
ACCEPT: Final = f"{PROTOBUF},application/json;q=0.9"

_MAX_LENGTHS: Final = 12
"""The bytes between the beginning of an event and that of its object: two lengths and a tag."""
_AFTER_MESSAGE: Final = b'\x1a\x00"\x00'
"""The two empty fields that Go writes after an object's message."""
_NO_MESSAGE: Final = b"\x00" + _AFTER_MESSAGE
_MAX_HEADING: Final = 4096
"""The maximum size of the bytes before a list's message."""
_LENGTH: Final = 4
_LIST_META, _ITEM = 1 << 3 | 2, 2 << 3 | 2
_NAMES: Final[tuple[EventType | Literal["ERROR"], ...]] = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
_PREFIXES: Final[tuple[tuple[bytes, EventType], ...]] = tuple(
    (tagged(1, name.encode()) + b"\x12", name) for name in ("MODIFIED", "ADDED", "DELETED", "BOOKMARK")
)
"""The beginnings of events, up to the length of the object, and their types; the most frequent type is first."""
_TYPES: Final[dict[bytes, EventType | Literal["ERROR"]]] = {name.encode(): name for name in _NAMES}


@final
class _State(enum.Enum):
    """The state of a list splitter."""

    HEADING = "read the beginning, up to the list's message"
    SPLITTING = "cut off complete items"
    ENDED = "the list's message is complete"


@final
@attrs.define(eq=False)
class MessageListSplitter:
    """Splits the body of a list into the messages of its items while it arrives.

    ========= ============================================ ========================================
    state     buffer                                       next state
    ========= ============================================ ========================================
    HEADING   the beginning of the body                    SPLITTING at the list's message
    SPLITTING the rest of an item                          ENDED at the end of the list's message
    ENDED     what follows, which is not read              none
    ========= ============================================ ========================================
    """

    _pieces: list[bytes] = attrs.field(factory=list, init=False, repr=False)
    """The bytes of the buffer."""
    _size: int = attrs.field(default=0, init=False)
    """The size of the buffer."""
    _needed: int = attrs.field(default=0, init=False)
    """The size of the buffer with which the next item is complete, if that is known."""
    _left: int = attrs.field(default=0, init=False)
    """The bytes of the list's message that have not been cut off."""
    _state: _State = attrs.field(default=_State.HEADING, init=False)
    _kind: str = attrs.field(default="", init=False)
    _api_version: str = attrs.field(default="", init=False)
    _meta: dict[int, object] = attrs.field(factory=dict, init=False)
    begin: bytes = attrs.field(default=b"", init=False)
    """The beginning of the body, for errors."""

    def feed(self, chunk: bytes | memoryview) -> list[bytes]:
        """Add the next bytes of the body, and return the messages of all items that are now complete.

        Raises:
            DecodeError: The body is not a list.
        """
        if len(self.begin) < _MAX_HEADING:
            self.begin += bytes(chunk[:_MAX_HEADING])
        if self._state is _State.ENDED:
            return []
        self._size += len(chunk)
        if self._size < self._needed:
            self._pieces.append(bytes(chunk))
            return []
        items: list[bytes] = []
        if self._needed:  # complete the item that has begun, so that the rest of the chunk is not copied with it
            missing = len(chunk) - (self._size - self._needed)
            _, items = self._cut(b"".join((*self._pieces, chunk[:missing])), 0)
            self._pieces, chunk = [], chunk[missing:]
        data = b"".join((*self._pieces, chunk)) if self._pieces else chunk
        position = self._read_heading(bytes(data)) if self._state is _State.HEADING else 0
        if self._state is _State.SPLITTING:
            position, more = self._cut(data, position)
            items += more
        rest = bytes(data[position:])
        self._pieces, self._size = [rest] if rest else [], len(rest)
        return items

    @property
    def is_behind(self) -> bool:
        """Always False: each call cuts off all complete items."""
        return False

    def finish(self) -> tuple[list[bytes], ListHead]:
        """Process the end of the body, and return an empty list and the list's metadata.

        Raises:
            DecodeError: The body ended early.
        """
        if self._state is not _State.ENDED:
            raise DecodeError("the body of the list ended early")
        version, token, remaining = self._meta.get(2, b""), self._meta.get(3, b""), self._meta.get(4)
        shard = self._meta.get(5)
        return [], ListHead(
            kind=self._kind,
            api_version=self._api_version,
            resource_version=_text(version),
            continue_token=_text(token),
            remaining_item_count=remaining if isinstance(remaining, int) else None,
            shard_selector=_text(dict(read_level(shard)).get(1)) if isinstance(shard, bytes) else "",
        )

    def _read_heading(self, data: bytes) -> int:
        """Read the beginning of the body, and return the position of the list's message, or 0 if it has not arrived."""
        if not MAGIC.startswith(data[: len(MAGIC)]):
            raise DecodeError("the body does not begin like Kubernetes protobuf")
        position = len(MAGIC)
        try:
            while True:
                tag, position = varint(data, position)
                size, position = varint(data, position)
                if tag == 2 << 3 | 2:
                    break
                if tag & 7 != 2:
                    raise DecodeError("the body is not a protobuf list")
                if tag == 1 << 3 | 2 and position + size <= len(data):
                    meta = dict(read_level(data[position : position + size]))
                    self._api_version, self._kind = _text(meta.get(1, b"")), _text(meta.get(2, b""))
                position += size
        except IndexError:
            if len(data) >= _MAX_HEADING:
                raise DecodeError("the body is not a protobuf list") from None
            return 0
        is_list = not self._kind or self._kind.endswith("List")
        self._left, self._state = size, _State.SPLITTING if is_list else _State.ENDED  # such as a Status
        return position

    def _cut(self, data: bytes | memoryview, begin: int) -> tuple[int, list[bytes]]:
        """Cut off the complete items, and return the position of the next item and the messages that were cut off."""
        view, length = memoryview(data), len(data)
        items: list[bytes] = []
        self._needed = 0
        end = begin + self._left
        start = position = begin
        try:
            while position < end:
                tag, size = data[position], data[position + 1]
                position += 2
                if tag > 0x7F:
                    tag, position = varint(data, position - 2)
                    size, position = varint(data, position)
                elif size > 0x7F:
                    size, position = varint(data, position - 1)
                after = position + size
                if tag & 7 != 2 or after > end:
                    raise DecodeError("the list is damaged: an item is longer than the list, or is not a message")
                if after > length:
                    self._needed = after - start
                    break
                if tag == _ITEM:
                    items.append(bytes(view[position:after]))
                elif tag == _LIST_META:
                    self._meta = dict(read_level(bytes(view[position:after])))
                start = position = after
        except IndexError:
            pass  # the beginning of the next item has not arrived
        self._left = end - start
        if not self._left:
            self._state = _State.ENDED
        return start, items


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def bytes_in(frame: Span) -> bytes:
    """Return a copy of a frame."""
    data, begin, end = frame
    return data[begin:end]


@final
@attrs.define(eq=False)
class MessageFrameSplitter:
    """Splits the body of a watch into its frames, each a length of four bytes and a WatchEvent."""

    _max_frame: int = attrs.field(default=DEFAULT_LIMITS.object_bytes, kw_only=True, alias="max_frame")
    _buffer: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    _needed: int = attrs.field(default=0, init=False)
    """The size of the buffer with which its frame is complete, if that is known."""
    is_too_large: bool = attrs.field(default=False, init=False)
    """Whether a frame is larger than the limit; earlier frames were returned, and the rest is not read."""

    @property
    def pending(self) -> int:
        """The number of buffered bytes of an incomplete frame, or 0 if there is none."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[Span]:
        """Add the next bytes of the body, and return all frames that are now complete, without copying them."""
        if self.is_too_large:
            return []
        if self._buffer:
            self._buffer += chunk
            if len(self._buffer) < self._needed:
                return []
            chunk = bytes(self._buffer)
        self._needed = 0
        frames: list[Span] = []
        position, length = 0, len(chunk)
        while position + _LENGTH <= length:
            begin = position + _LENGTH
            end = begin + int.from_bytes(chunk[position:begin], "big")
            if end - begin > self._max_frame:
                self.is_too_large = True
                self._buffer.clear()
                return frames
            if end > length:
                self._needed = end - position
                break
            frames.append((chunk, begin, end))
            position = end
        self._buffer = bytearray(memoryview(chunk)[position:])
        return frames


def _envelope_before(decoder: MessageDecoder[Any]) -> bytes:
    return envelope_of(resource_of(decoder.kind).api_version, decoder.names[0], b"").removesuffix(_NO_MESSAGE)


@final
@attrs.frozen(eq=False)
class MessageDecoder(Generic[T]):
    """Decodes the items and frames of one kind."""

    kind: type[T]
    names: tuple[str, ...]
    """The kinds that its objects may have on the wire."""
    drops_managed_fields: bool
    _envelope: bytes = attrs.field(init=False, default=attrs.Factory(_envelope_before, takes_self=True))
    """The beginning of an object on the wire, up to the length of its message."""

    def make_item(self, data: bytes) -> T:
        """Return the object in an item of a list."""
        message, head = scan_message(data, 0, len(data), drops_managed_fields=self.drops_managed_fields)
        if not head.metadata.name:
            raise DecodeError(f"the server sent {with_article(self.names[0])} without a name")
        return make_object(self.kind, message, head)

    def decode_frame(self, frame: Span) -> WatchFrame:
        """Decode one frame of a watch."""
        found = self._cut(*frame)
        if found is not None:
            name, begin, end = found
            return name, *scan_message(frame[0], begin, end, drops_managed_fields=self.drops_managed_fields)
        fields = dict(read_level(bytes_in(frame)))
        type_ = _TYPES.get(cast("bytes", fields.get(1, b"")))
        raw = fields.get(2)
        if type_ is None or not isinstance(raw, bytes):
            raise DecodeError("a watch event has an unknown type or no object")
        envelope = dict(read_level(raw)).get(1)
        if not isinstance(envelope, bytes):
            raise DecodeError("a watch event has no object")
        _, kind, data = open_envelope(envelope)
        if type_ == "ERROR":
            return "ERROR", Message(data), None
        if kind not in self.names:
            raise DecodeError(f"the server sent {shown_kind(kind)}, not {with_article(self.names[0])}")
        message, head = scan_message(data, 0, len(data), drops_managed_fields=self.drops_managed_fields)
        return type_, message, head

    def _cut(self, data: bytes, begin: int, end: int) -> tuple[EventType, int, int] | None:
        """Find the object in a frame that has kube-apiserver's layout, or return None for any other layout."""
        for prefix, name in _PREFIXES:
            if data.startswith(prefix, begin):
                begin += len(prefix)
                before = data.find(self._envelope, begin, begin + len(self._envelope) + _MAX_LENGTHS)
                if before < 0:
                    return None
                try:
                    size, begin = varint(data, before + len(self._envelope))
                except IndexError:
                    return None
                is_usual = begin + size == end - len(_AFTER_MESSAGE) and data.startswith(_AFTER_MESSAGE, begin + size)
                return (name, begin, begin + size) if is_usual else None
        return None
