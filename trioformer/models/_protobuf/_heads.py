r"""The envelope of an encoded object, and the object's head: the fields that the library reads from every object.

An encoded object consists of the bytes ``k8s\0`` and a ``runtime.Unknown``: {1: TypeMeta, 2: the object's message}.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Final

from ...errors import DecodeError
from .._heads import Head, MetadataHead
from ._wire import FIXED, MalformedMessageError, Message, message, read_level, tagged, text, varint, varint_of

__all__ = ["MAGIC", "envelope_of", "find_key", "open_envelope", "scan_message", "spans", "status_of"]

MAGIC: Final = b"k8s\0"
"""The first bytes of an encoded object."""

_METADATA: Final = 1 << 3 | 2
"""The tag of an object's metadata, which Go writes first."""
_NAME, _NAMESPACE, _UID, _RESOURCE_VERSION = _READ = tuple(number << 3 | 2 for number in (1, 3, 5, 6))
_TYPE: Final = re.compile("[A-Z]{1,20}")
"""An event type, which may also be from a later release."""
_MANAGED_NUMBER: Final = 17
_MANAGED_FIELDS: Final = varint_of(_MANAGED_NUMBER << 3 | 2)[0]
"""The first byte of the tag of ``managedFields``; the second byte is 1."""


def spans(data: bytes, begin: int, end: int) -> list[tuple[int, int, int, int]]:
    """Return the positions of the fields of a message that is part of a larger buffer, without copying their values.

    Returns:
        For each field, its number, the position of its tag, and the positions where its value begins and ends.

    Raises:
        MalformedMessageError: The bytes are not a message.
    """
    found: list[tuple[int, int, int, int]] = []
    position = begin
    try:
        while position < end:
            first = position
            tag = data[position]
            position += 1
            if tag > 0x7F:
                tag, position = varint(data, first)
            wire = tag & 7
            if wire == 2:
                size = data[position]
                position += 1
                if size > 0x7F:
                    size, position = varint(data, position - 1)
                found.append((tag >> 3, first, position, position + size))
                position += size
            elif wire == 0:
                value = position
                _, position = varint(data, position)
                found.append((tag >> 3, first, value, position))
            elif wire in FIXED:
                found.append((tag >> 3, first, position, position + FIXED[wire]))
                position += FIXED[wire]
            else:
                raise MalformedMessageError(f"a field has the unknown wire type {wire}")
    except IndexError:
        position = end + 1
    if position != end:
        raise MalformedMessageError("a field is longer than its message")
    return found


def open_envelope(data: bytes) -> tuple[str, str, bytes]:
    """Return the apiVersion, the kind and the message of an encoded object.

    Raises:
        DecodeError: The bytes are not an encoded object.
    """
    if not data.startswith(MAGIC):
        raise DecodeError("the data does not begin like Kubernetes protobuf")
    fields = dict(read_level(data[len(MAGIC) :]))
    meta = dict(read_level(message(fields.get(1, b""))))
    return text(meta.get(1, b"")), text(meta.get(2, b"")), message(fields.get(2, b""))


def envelope_of(api_version: str, kind: str, message: bytes) -> bytes:
    """Wrap an object's message in its envelope."""
    meta = tagged(1, api_version.encode()) + tagged(2, kind.encode())
    return MAGIC + tagged(1, meta) + tagged(2, message) + tagged(3, b"") + tagged(4, b"")


def scan_message(data: bytes, begin: int, end: int, *, drops_managed_fields: bool) -> tuple[Message, Head]:
    """Scan an object's message, and return the bytes to keep and the object's head.

    The function checks the structure of the object and its metadata, so damage there is found when the object arrives.
    Nested fields are checked when they are read.

    Args:
        data: The bytes that contain the message.
        begin: The position where the message begins.
        end: The position where the message ends.
        drops_managed_fields: Whether to remove ``metadata.managedFields``, which is often more than half of an object.

    Raises:
        DecodeError: The bytes are not a message, or the message has no metadata.
    """
    # This runs once for each object that arrives, so C code reads the fields in Go's usual layout.
    usual, is_last = None, True
    position = after = managed = 0
    try:
        size, high, position = data[begin + 1], data[begin + 2], begin + 2
        if size > 0x7F:
            size, position = (size - 0x80 + (high << 7), begin + 3) if high < 0x80 else varint(data, begin + 1)
        walked = after = position + size
        while walked < end:
            size = data[walked + 1]
            if data[walked] & 0x87 != 2:  # more than one byte, or not a string or message
                walked = _end_of(data, walked)
            elif size < 0x80:
                walked += 2 + size
            elif (high := data[walked + 2]) < 0x80:
                walked += 3 + size - 0x80 + (high << 7)
            else:
                walked = _end_of(data, walked)
        if walked == end and data[begin] == _METADATA and (usual := _usual_metadata()(data, position, after)):
            inner = usual.end()
            while inner < after:
                if data[inner] != _MANAGED_FIELDS or data[inner + 1] != 1:
                    if data[inner] in _READ:
                        break  # a second value, which replaces the first one
                    inner, is_last = _end_of(data, inner), not managed
                    continue
                managed = managed or inner
                size, high = data[inner + 2], data[inner + 3]
                inner = inner + 4 + size - 0x80 + (high << 7) if size > 0x7F > high else _end_of(data, inner)
            if inner != after:
                usual = None
    except (IndexError, MalformedMessageError):
        usual = None
    if usual is not None:
        names = usual.groups()
    else:
        names, position, after, managed, is_last = _find_names(data, begin, end)
    try:
        name, namespace, uid, version = names
        head = Head(MetadataHead(name.decode()[1:], namespace.decode()[1:], uid.decode()[1:], version.decode()[1:]))
    except UnicodeDecodeError:
        head = Head(MetadataHead(*[text(each[1:]) for each in names]))
    if not (drops_managed_fields and managed):
        return Message(data[begin:end]), head  # for a list's item, this slice is not a copy
    kept = data[position:managed]
    if not is_last:  # such as a field that is newer than this release
        others = spans(data, managed, after)
        kept += b"".join([data[tag:behind] for number, tag, _, behind in others if number != _MANAGED_NUMBER])
    return Message(b"".join((b"\n", varint_of(len(kept)), kept, memoryview(data)[after:end]))), head


@functools.cache
def _usual_metadata() -> Callable[[bytes, int, int], re.Match[bytes] | None]:
    """Return a function that matches metadata in Go's layout, up to the first field that is longer than 127 bytes.

    Go writes the fields 1 to 6 even if they are empty. Each group is a size of one byte and a value.
    """
    short = b"|".join(re.escape(bytes((size,))) + b".{%d}" % size for size in range(0x80))
    texts, integers = (re.escape(bytes(tag for tag in range(wire, 0x80, 8) if tag not in _READ)) for wire in (2, 0))
    others = b"(?>[%s](?>%s)|[%s][\x80-\xff]{0,9}[\0-\x7f])*+" % (texts, short, integers)
    fields = [(b"%s((?>%s))" if tag in _READ else b"%s(?>%s)", tag) for tag in range(_NAME, _RESOURCE_VERSION + 1, 8)]
    first = b"".join(form % (re.escape(bytes((tag,))), short) for form, tag in fields)
    return re.compile(first + others, re.DOTALL).match


def _find_names(data: bytes, begin: int, end: int) -> tuple[tuple[bytes, ...], int, int, int, bool]:
    """Find in any layout what :func:`scan_message` finds in Go's usual layout.

    Returns:
        The name, namespace, uid and resourceVersion, each after one other byte; the positions of the metadata, of its
        end, and of the first ``managedFields`` or 0; and whether only ``managedFields`` follow.

    Raises:
        MalformedMessageError: The bytes are not a message that begins with metadata.
    """
    if begin == end or data[begin] != _METADATA:
        raise MalformedMessageError("an object does not begin with its metadata")
    _, _, position, after = spans(data, begin, end)[0]
    values: dict[int, bytes] = {}
    managed, is_last = 0, True
    for number, tag, inner, behind in spans(data, position, after):
        if number == _MANAGED_NUMBER:
            managed = managed or tag
        else:
            values[data[tag]] = data[inner:behind]
            is_last = not managed
    names = tuple(b" " + values.get(tag, b"") for tag in (_NAME, _NAMESPACE, _UID, _RESOURCE_VERSION))
    return names, position, after, managed, is_last


def _end_of(data: bytes, position: int) -> int:
    """Return the end of the field at a position; scan_message() uses this for tags that it does not expect."""
    tag, position = varint(data, position)
    if tag & 7 == 2:
        size, position = varint(data, position)
        return position + size
    if tag & 7 == 0:
        return varint(data, position)[1]
    if tag & 7 not in FIXED:
        raise MalformedMessageError(f"a field has the unknown wire type {tag & 7}")
    return position + FIXED[tag & 7]


def status_of(data: bytes) -> dict[str, Any]:
    """Convert the message of a Status.

    Raises:
        DecodeError: The bytes are not such a message.
    """
    from ._plain import to_plain  # noqa: PLC0415  # most programs receive no error in protobuf
    from ._tables import find_type  # noqa: PLC0415

    type_ = find_type("meta_v1", "Status")
    assert type_ is not None
    return to_plain(data, type_)


def parts_of(frame: bytes) -> tuple[str, bytes]:
    """Return an event's type and the message of its object; either is empty if it is missing from a damaged frame."""
    try:
        fields = dict(read_level(frame))
        type_ = text(fields.get(1, b""))
    except DecodeError:
        return "", b""
    if not _TYPE.fullmatch(type_):  # in a damaged frame, it may be the object, which must not show
        type_ = ""
    try:
        return type_, open_envelope(message(dict(read_level(message(fields.get(2, b"")))).get(1, b"")))[2]
    except DecodeError:
        return type_, b""


def find_key(data: bytes) -> tuple[str, str]:
    """Return the key and resourceVersion in a message that may be damaged; either is empty if it is not found."""
    found = {"name": "", "namespace": "", "version": ""}
    names = {_NAME: "name", _NAMESPACE: "namespace", _RESOURCE_VERSION: "version"}
    try:
        position = 1
        size, position = varint(data, position) if data[:1] == b"\n" else (0, 1)
        end = min(position + size, len(data))
        while position < end:
            tag, position = varint(data, position)
            if tag & 7 != 2:
                break
            size, position = varint(data, position)
            if tag in names and position + size <= end:
                found[names[tag]] = text(data[position : position + size])
            position += size
    except (IndexError, MalformedMessageError):
        pass
    name, namespace, version = found.values()
    key = f"{namespace}/{name}" if namespace and name else name
    # Other texts may be content of the object, which must not show.
    return key if key.isprintable() else "", version if version.isascii() and version.isdecimal() else ""
