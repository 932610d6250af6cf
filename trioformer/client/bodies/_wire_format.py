"""The wire format of a kind, and the frames of its watches: bytes to lines, lines to events.

A wire format determines the media type to request, the objects to accept, and the bytes of them to keep.
The check of an object's kind must be cheap: the scan of an object takes 9 µs, and a scan for its kind would double it.
But a server begins all objects of a kind with the same bytes, so one comparison is enough; only an object that begins
differently is scanned for its kind.
Data that is not an object of the kind, or not an event, raises a DecodeError.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

import attrs

from ...errors import DecodeError
from ...models import KubernetesObject, PartialObjectMetadata, resource_of
from ...models._internal import (
    Head,
    Raw,
    builtin_resources,
    decode,
    dumps,
    level_decoder,
    make_object,
    metadata_only,
    scan_whole,
    scan_without_managed_fields,
)
from ...transport._internal import DEFAULT_LIMITS
from ._contents import shown_kind, text_in
from ._list_splitter import ListHead

T = TypeVar("T", bound=KubernetesObject)

Scan: TypeAlias = Callable[[bytes], tuple[bytes, Head]]
"""Scans an object's bytes, and returns the bytes to keep and their head."""

JSON: Final = "application/json"
"""The media type of objects, lists and Status responses."""

_PARTIAL: Final = "PartialObjectMetadata"
# As in client-go's metadata client: a server that does not support it sends complete objects.
_METADATA: Final = f"{JSON};as={_PARTIAL};g=meta.k8s.io;v=v1,{JSON}"
_METADATA_LIST: Final = f"{JSON};as={_PARTIAL}List;g=meta.k8s.io;v=v1,{JSON}"


@final
class WireFormat(Generic[T]):
    """The wire format of one kind.

    Attributes:
        kind: The model.
        name: The kind's name, such as ``Pod``.
        names: The kinds that its objects may have on the wire.
        is_partial: Whether only the metadata is requested.
        accept: The ``Accept`` header for an object or a watch.
        accept_list: The ``Accept`` header for a list.
        scan_single: Scans the only object of a response, without a check of its kind.
    """

    def __init__(self, kind: type[T], scan: Scan) -> None:
        resource = resource_of(kind)
        self.kind: type[T] = kind
        self.name: str = resource.kind
        self.is_partial: bool = issubclass(kind, PartialObjectMetadata)
        self.accept, self.accept_list = (_METADATA, _METADATA_LIST) if self.is_partial else (JSON, JSON)
        types = {self.name: resource.api_version}
        if self.is_partial:
            types = {_PARTIAL: "meta.k8s.io/v1", **types}
        self.names: tuple[str, ...] = tuple(types)
        self._api_versions = (*types.values(), "")
        self.scan_single: Scan = scan_whole
        self._scan = scan
        if issubclass(kind, PartialObjectMetadata):
            # Drop managedFields in a single object too: it cannot be written, so nothing is lost.
            single, scan = (scan_whole, scan) if kind.has_managed_fields else (scan_without_managed_fields,) * 2
            self.scan_single, self._scan = _metadata_scan(single), _metadata_scan(scan)
        # Built-in kinds begin like Go's structs, custom kinds like sorted maps; items of typed lists omit both members.
        members = [{"kind": name, "apiVersion": version} for name, version in types.items()]
        self._prefixes = tuple(
            dumps(ordered)[:-1] + b"," for both in members for ordered in (both, dict(reversed(both.items())))
        )
        self._item_prefixes = (b'{"metadata":', *self._prefixes)

    @property
    def is_builtin(self) -> bool:
        """Whether the kind is built in, so that kube-apiserver itself serves it."""
        # Not cached: only unexpected responses need it, and it loads the table of kinds.
        gvk = resource_of(self.kind).gvk
        return any(builtin.gvk == gvk for builtin in builtin_resources(beta=True))

    def kind_of(self, body: bytes) -> str:
        """Return the kind of a JSON object, one of :attr:`names` if it is of this kind; empty if it has none.

        Raises:
            ValueError: The body is not a JSON object; only detected if it does not begin like objects of this kind.
        """
        return self.name if body.startswith(self._prefixes) else text_in(body)

    def scan(self, data: bytes) -> tuple[bytes, Head]:
        """Scan an object of a watch, and return the bytes to keep and their head."""
        if not data.startswith(self._prefixes):
            self._check_kind(data)
        return self._scan(data)

    def make_item(self, data: bytes) -> T:
        """Make an object from an item of a list."""
        if not data.startswith(self._item_prefixes):
            self._check_kind(data)
        data, head = self._scan(data)
        if not head.metadata.name:
            raise self.unnamed()
        return make_object(self.kind, data, head)

    def unnamed(self) -> DecodeError:
        """Make the error of an object without a name: it would have no key."""
        return DecodeError(f"the server sent a {self.name} without a name")

    def check_list(self, head: ListHead, first: bytes | None) -> None:
        """Check that a list and its first object, if any, are of this kind.

        A list of a custom kind may have any name, but then its items have a kind, which has already been checked.
        It may also be a ``v1`` List, which kubectl creates.
        """
        if head.kind in ("", *(f"{name}List" for name in self.names)):
            return
        is_ours = head.api_version in self._api_versions or (head.kind, head.api_version) == ("List", "v1")
        if not (is_ours and (not self.is_builtin if first is None else text_in(first) in self.names)):
            raise DecodeError(f"expected a list of {self.name}, but the server sent {shown_kind(head.kind)}")

    def _check_kind(self, data: bytes) -> None:
        try:
            found = text_in(data)
        except (ValueError, RecursionError):
            return  # the scan that follows raises a better error
        if found not in ("", *self.names):
            raise DecodeError(f"the server sent {shown_kind(found)}, not a {self.name}")


def _metadata_scan(scan: Scan) -> Scan:
    return lambda data: scan(metadata_only(data))


# --- frames of a watch ---

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
"""The type of a watch event."""

WatchFrame: TypeAlias = tuple[EventType, bytes, Head] | tuple[Literal["ERROR"], bytes, None]
"""An event's type, the bytes of its object, and their head; the object of an ``ERROR`` is a Status, which has none."""


def complete_lines(begin: bytearray, chunk: bytes) -> list[bytes]:
    """Return the lines that a chunk completes, without line ends; ``begin`` then holds the start of the next line."""
    *lines, rest = chunk.split(b"\n")
    if lines and begin:
        begin += lines[0]
        lines[0] = bytes(begin)
        begin.clear()
    begin += rest
    return lines


@final
@attrs.define(eq=False)
class FrameSplitter:
    """Splits the body of a watch into newline-terminated frames.

    Frames do not keep their chunk alive, and each byte is searched only once.
    """

    _max_frame: int = attrs.field(default=DEFAULT_LIMITS.object_bytes, kw_only=True, alias="max_frame")  # in bytes
    _buffer: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    is_too_large: bool = attrs.field(default=False, init=False)
    """Whether a frame is larger than the limit; earlier frames were returned, and the rest is not read."""

    @property
    def pending(self) -> int:
        """The number of bytes of an incomplete frame; not 0 if the body ended early."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add the next bytes of the body, and return the frames that they complete, without line ends and blank lines.

        A frame larger than the limit and all later ones are omitted.
        """
        buffer = self._buffer
        frames = complete_lines(buffer, chunk)
        if len(buffer) > self._max_frame or max(map(len, frames), default=0) > self._max_frame:
            frames = list(itertools.takewhile(lambda frame: len(frame) <= self._max_frame, frames))
            self.is_too_large = True
            buffer.clear()
        return [frame for frame in frames if frame and not frame.isspace()]


_TYPES: Final[tuple[EventType, ...]] = ("MODIFIED", "ADDED", "DELETED", "BOOKMARK")
_PREFIXES: Final[tuple[tuple[bytes, EventType], ...]] = tuple(
    (f'{{"type":"{type_}","object":'.encode(), type_) for type_ in _TYPES
)
_LARGE: Final = 1024 * 1024
"""Frames larger than this, in bytes, are not scanned twice."""
_members: Final[Callable[[bytes | Raw], tuple[Raw, ...]]] = level_decoder(("type", "object"))


def decode_watch_frame(frame: bytes, scan: Scan = scan_whole) -> WatchFrame:
    """Decode one frame of a watch.

    The API server writes every event as ``{"type":"…","object":{…}}``, so the object is cut out without a scan of the
    frame.  The scan of the object, which is needed anyway, proves that the cut is right: it accepts only one complete
    JSON object.
    Aggregated servers may send frames in another form, which cost a second scan.
    """
    for prefix, type_ in _PREFIXES:
        if frame.startswith(prefix) and frame.endswith(b"}"):
            data = frame[len(prefix) : -1]
            try:
                data, head = scan(data)
            except DecodeError:
                if len(frame) > _LARGE:
                    raise  # a second scan would delay other tasks
                break  # other members follow the object, or it is not valid: decode the whole frame
            return type_, data, head
    return _decode_slowly(frame, scan)


def _decode_slowly(frame: bytes, scan: Scan) -> WatchFrame:
    try:
        raw_type, raw_object = _members(frame)
    except (ValueError, RecursionError) as exc:
        raise DecodeError(f"a frame of a watch is not an event: {exc}") from exc
    name: object = decode(raw_type) if bytes(raw_type) else None
    data = bytes(raw_object)
    if not data.startswith(b"{"):
        raise DecodeError("a watch event has no object")
    if name == "ERROR":
        return "ERROR", data, None
    type_: EventType | None = next((each for each in _TYPES if each == name), None)
    if type_ is None:
        raise DecodeError("a watch event has an unknown type")
    return type_, *scan(data)
