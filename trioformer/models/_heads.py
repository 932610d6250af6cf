"""The head of an object: the fields that the library itself reads from every object."""

from __future__ import annotations

from typing import final

import msgspec

from ._serde import ABSENT, INVALID_JSON, Raw, decode_error, dumps, map_items

__all__ = ["Head", "MetadataHead", "make_head", "scan_head", "scan_whole", "scan_without_managed_fields"]


@final
class MetadataHead(msgspec.Struct, gc=False):
    """The metadata fields that caches and queues need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  # with the API's name msgspec needs no rename


@final
class Head(msgspec.Struct, gc=False):
    """The fields that a scan extracts from an object's JSON.

    The class uses ``gc=False``, because heads contain no containers and a large number of heads would slow down every
    garbage collection.
    """

    metadata: MetadataHead
    spec: msgspec.Raw = ABSENT

    @property
    def key(self) -> str:
        """``namespace/name``, or only the name if the object has no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


_decode_head = msgspec.json.Decoder(Head).decode


class _NullableMetadataHead(msgspec.Struct, gc=False):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815  # as in MetadataHead


class _NullableHead(msgspec.Struct, gc=False):
    metadata: _NullableMetadataHead
    spec: msgspec.Raw = ABSENT


_decode_nullable_head = msgspec.json.Decoder(_NullableHead).decode


def scan_head(data: bytes) -> Head:
    """Return the head of an object from its JSON; null is read as an empty value, as in Go.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        return _decode_head(data)
    except INVALID_JSON:
        pass  # not below, where it would be the context of the next error
    try:
        found = _decode_nullable_head(data)
    except INVALID_JSON as error:
        raise decode_error(error, "an object's metadata") from error
    metadata = found.metadata
    texts = (metadata.name, metadata.namespace, metadata.uid, metadata.resourceVersion)
    return Head(MetadataHead(*(text or "" for text in texts)), found.spec)


def scan_whole(data: bytes) -> tuple[bytes, Head]:
    """Scan an object's JSON, and return the unchanged bytes with the head.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    return data, scan_head(data)


class _ManagedMetadataHead(msgspec.Struct, gc=False):
    managedFields: msgspec.Raw = ABSENT  # noqa: N815  # as in MetadataHead


class _ManagedHead(msgspec.Struct, gc=False):
    metadata: _ManagedMetadataHead


_find_managed_fields = msgspec.json.Decoder(_ManagedHead).decode
_MANAGED_FIELDS = b'"managedFields":'


def scan_without_managed_fields(data: bytes) -> tuple[bytes, Head]:
    """Remove ``metadata.managedFields`` from an object's bytes, and return the rest with the object's head.

    The removal often halves the size of the object.  The remaining bytes are copied once, and nothing is decoded.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        found = _find_managed_fields(data).metadata.managedFields
    except INVALID_JSON as error:
        raise decode_error(error, "an object's metadata") from error
    value = memoryview(found)
    if not value:
        return scan_whole(data)
    begin = data.find(_MANAGED_FIELDS)
    end = begin + len(_MANAGED_FIELDS) + len(value)
    # The key cannot be inside a string, which escapes quotes; but it may be in a nested object, or have white space.
    if begin > 0 and data[end - len(value) : end] == value:
        if data[begin - 1] == _COMMA:
            begin -= 1
        elif data[end] == _COMMA:
            end += 1
        rest = data[:begin] + data[end:]
        if _has_no_managed_fields(rest):
            return scan_whole(rest)
    return scan_whole(_without_managed_fields(data))


def _has_no_managed_fields(rest: bytes) -> bool:
    try:
        return not memoryview(_find_managed_fields(rest).metadata.managedFields)
    except INVALID_JSON:  # white space before the key: the comma before it is left
        return False


_COMMA = ord(",")


def _without_managed_fields(data: bytes) -> bytes:
    """Remove ``managedFields`` from an object in any JSON formatting, by decoding its members."""
    try:
        members = map_items(data)
        metadata = map_items(members["metadata"])
    except ValueError as error:
        raise decode_error(error, "an object's metadata") from error
    del metadata["managedFields"]
    members["metadata"] = Raw(_join(metadata))
    return _join(members)


def _join(members: dict[str, Raw]) -> bytes:
    return b"{" + b",".join([dumps(key) + b":" + bytes(raw) for key, raw in members.items()]) + b"}"


def make_head(name: str, namespace: str, uid: str, resource_version: str) -> Head:
    """Make the head of an object that was not decoded from JSON."""
    return Head(MetadataHead(name, namespace, uid, resource_version))
