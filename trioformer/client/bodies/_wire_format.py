"""The wire format of a kind, and the decoding of watch frames.

A wire format determines which media type to request, which objects to accept, and which bytes of each object to keep. A
DecodeError is raised for an object of another kind, and for data that is not an object or an event.

Checking the kind of an object must be cheap. The scan of an object takes 9 µs, and a scan for its kind would double
this time. However, all objects of a kind from one server begin with the same bytes, so these bytes are compared first.
Only an object that begins with other bytes is scanned for its kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar, final

import attrs

from ..._suggestions import with_article
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
from ._contents import EventType, WatchFrame, shown_kind, text_in
from ._list_splitter import ListHead
from ._protobuf import ACCEPT, PROTOBUF, MessageDecoder

T = TypeVar("T", bound=KubernetesObject)

Scan: TypeAlias = Callable[[bytes], tuple[bytes, Head]]
"""A function that scans the bytes of an object, and returns the bytes to keep and the object's head."""

JSON: Final = "application/json"
"""The media type of objects, lists and Status responses."""

_PARTIAL: Final = "PartialObjectMetadata"
# As in client-go's metadata client: a server that does not support it sends complete objects.
_METADATA: Final = f"{JSON};as={_PARTIAL};g=meta.k8s.io;v=v1,{JSON}"
_METADATA_LIST: Final = f"{JSON};as={_PARTIAL}List;g=meta.k8s.io;v=v1,{JSON}"


def _has_messages(kind: type[KubernetesObject]) -> bool:
    from ...models._internal import type_of_class  # noqa: PLC0415  # which an import of the library does not need

    return type_of_class(kind) is not None


@final
class WireFormat(Generic[T]):
    """The wire format of one kind.

    Attributes:
        kind: The model class of the kind.
        name: The name of the kind, such as ``Pod``.
        names: The values that the ``kind`` field of an object may have in a response.
        is_partial: Whether only the metadata of objects is requested.
        accept: The ``Accept`` header of a request for an object.
        accept_list: The ``Accept`` header of a request for a list.
        accept_watch: The ``Accept`` header of a request for a watch.
        protobuf: The decoder of list items and watch frames in protobuf, or None if the kind is requested in JSON.
        scan_single: The function that scans a response with a single object, without checking the object's kind.
    """

    def __init__(self, kind: type[T], scan: Scan, *, protobuf: bool = False) -> None:
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
        self.accept_watch = self.accept
        self.protobuf: MessageDecoder[T] | None = None
        if protobuf and not self.is_partial and _has_messages(kind):
            drops = scan is scan_without_managed_fields
            self.protobuf = MessageDecoder(kind, self.names, drops)
            self.accept_list = self.accept_watch = ACCEPT
        if issubclass(kind, PartialObjectMetadata):
            # Drop managedFields in a single object too: it cannot be written, so nothing is lost.
            single, scan = (scan_whole, scan) if kind.has_managed_fields else (scan_without_managed_fields,) * 2
            self.scan_single, self._scan = _metadata_scan(single), _metadata_scan(scan)
        # Built-in kinds begin like Go's structs, and custom kinds like sorted maps.
        # Items of typed lists omit both members.
        members = [{"kind": name, "apiVersion": version} for name, version in types.items()]
        self._prefixes = tuple(
            dumps(ordered)[:-1] + b"," for both in members for ordered in (both, dict(reversed(both.items())))
        )
        self._item_prefixes = (b'{"metadata":', *self._prefixes)

    @property
    def is_builtin(self) -> bool:
        """Whether the kind is built in, which means that kube-apiserver itself serves it."""
        # Not cached: only unexpected responses need it, and it loads the table of kinds.
        gvk = resource_of(self.kind).gvk
        return any(builtin.gvk == gvk for builtin in builtin_resources(beta=True))

    def decoder_of(self, headers: Mapping[str, str]) -> MessageDecoder[T] | None:
        """Return the decoder for a response in protobuf, or None for any other response."""
        media_type = headers.get("content-type", "").partition(";")[0]
        return self.protobuf if media_type.strip().lower() == PROTOBUF else None

    def kind_of(self, body: bytes) -> str:
        """Return the name of a JSON object's kind, or an empty string if the object has no kind.

        If the object is of this kind, the result is one of :attr:`names`.

        Raises:
            ValueError: The body is not a JSON object. Bodies that begin like an object of this kind are not checked.
        """
        return self.name if body.startswith(self._prefixes) else text_in(body)

    def scan(self, data: bytes) -> tuple[bytes, Head]:
        """Check the kind of an object in a watch, and return the bytes to keep and the object's head."""
        if not data.startswith(self._prefixes):
            self._check_kind(data)
        return self._scan(data)

    def make_item(self, data: bytes) -> T:
        """Return the object in an item of a list."""
        if not data.startswith(self._item_prefixes):
            self._check_kind(data)
        data, head = self._scan(data)
        if not head.metadata.name:
            raise self.unnamed()
        return make_object(self.kind, data, head)

    def unnamed(self) -> DecodeError:
        """Return the error for an object without a name. Such an object would have no key."""
        return DecodeError(f"the server sent {with_article(self.name)} without a name")

    def check_list(self, head: ListHead, first: bytes | None) -> None:
        """Check the kind of a list and of its first object, if there is one.

        A list of custom objects may have any kind. The items of such a list contain their own kind, which has already
        been checked. The list may also be a ``v1`` List, which kubectl creates.
        """
        if head.kind in ("", *(f"{name}List" for name in self.names)):
            return
        is_ours = head.api_version in self._api_versions or (head.kind, head.api_version) == ("List", "v1")
        is_custom = not self.is_builtin if first is None else text_in(first) in self.names
        if not (is_ours and is_custom):
            raise DecodeError(f"expected a list of {self.name}, but the server sent {shown_kind(head.kind)}")

    def _check_kind(self, data: bytes) -> None:
        try:
            found = text_in(data)
        except (ValueError, RecursionError):
            return  # the scan that follows raises a better error
        if found not in ("", *self.names):
            raise DecodeError(f"the server sent {shown_kind(found)}, not {with_article(self.name)}")


def _metadata_scan(scan: Scan) -> Scan:
    return lambda data: scan(metadata_only(data))


# --- frames of a watch ---


def complete_lines(begin: bytearray, chunk: bytes) -> list[bytes]:
    """Return the lines that a chunk completes, without line endings.

    After the call, ``begin`` contains the beginning of the next line.
    """
    lines: list[bytes] = []
    position = 0
    # find() is much faster than split(), which compares byte by byte.
    while (end := chunk.find(b"\n", position)) >= 0:
        lines.append(chunk[position:end])
        position = end + 1
    if lines and begin:
        begin += lines[0]
        lines[0] = bytes(begin)
        begin.clear()
    begin += memoryview(chunk)[position:]
    return lines


@final
@attrs.define(eq=False)
class FrameSplitter:
    """Splits the body of a watch into frames.

    Each line of the body is one frame. Frames do not keep the received chunks in memory, and each byte is searched only
    once.
    """

    _max_frame: int = attrs.field(default=DEFAULT_LIMITS.object_bytes, kw_only=True, alias="max_frame")  # in bytes
    _buffer: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    is_too_large: bool = attrs.field(default=False, init=False)
    """Whether a frame is larger than the limit.

    Earlier frames have been returned, and the rest of the body is not read.
    """

    @property
    def pending(self) -> int:
        """The number of buffered bytes of an incomplete frame.

        If it is not 0 at the end of the body, the body ended early.
        """
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add the next bytes of the body, and return the complete frames, without line endings or blank lines.

        If a frame is larger than the limit, this frame and all later ones are omitted.
        """
        buffer, known = self._buffer, len(self._buffer)
        frames = complete_lines(buffer, chunk)
        if known + len(chunk) > self._max_frame and max(map(len, (buffer, *frames))) > self._max_frame:
            frames = list(itertools.takewhile(lambda frame: len(frame) <= self._max_frame, frames))
            self.is_too_large = True
            buffer.clear()
        return [frame for frame in frames if frame and not frame.isspace()]


_TYPES: Final[tuple[EventType, ...]] = ("MODIFIED", "ADDED", "DELETED", "BOOKMARK")
_PREFIXES: Final[tuple[tuple[bytes, EventType], ...]] = tuple(
    (f'{{"type":"{type_}","object":'.encode(), type_) for type_ in _TYPES
)
_LARGE: Final = 1024 * 1024
"""The size in bytes above which a frame is not scanned a second time."""
_members: Final[Callable[[bytes | Raw], tuple[Raw, ...]]] = level_decoder(("type", "object"))


def decode_watch_frame(frame: bytes, scan: Scan = scan_whole) -> WatchFrame:
    """Decode one frame of a watch.

    The API server writes every event as ``{"type":"…","object":{…}}``, so the object is cut out without scanning the
    frame. The object must be scanned anyway. This scan accepts only one complete JSON object, so it also proves that
    the cut is correct.

    Aggregated servers may send frames in another form. Such a frame requires a second scan.
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
        raise DecodeError(f"a watch frame is not an event: {exc}") from exc
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
