"""JSON to Python and back: msgspec scans bytes, and decodes and encodes plain values.

The cattrs converter of ``_converter.py`` does the same for the types that msgspec does not support; only these two
modules import msgspec or cattrs.
Nothing here knows a Kubernetes kind.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, final

import msgspec

from ..errors import DecodeError
from ._values import freeze

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = [
    "FAULTS",
    "Head",
    "Raw",
    "canonical",
    "check_object",
    "decode",
    "decode_error",
    "dumps",
    "level_decoder",
    "list_items",
    "loads",
    "make_head",
    "map_items",
    "merge_changes",
    "plain",
    "plain_decoder",
    "register_hooks",
    "scan_head",
    "scan_whole",
    "scan_without_managed_fields",
    "structure",
    "unstructure",
]

Raw = msgspec.Raw
"""A slice of bytes that was scanned but not decoded; it keeps these bytes alive."""

ABSENT = Raw(b"")


def decode_error(error: Exception, what: str) -> DecodeError:
    """Make the error for an exception of msgspec or cattrs about ``what``."""
    if isinstance(error, ExceptionGroup):
        from ._converter import error_messages  # noqa: PLC0415  # as in _converter()

        problem = "; ".join(error_messages(error))
    else:
        problem = " ".join(str(error).split())
    return DecodeError(f"cannot decode {what}: {problem}")


FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    ExceptionGroup,  # of cattrs, with the errors of all fields
    msgspec.MsgspecError,  # a ValueError only since msgspec 0.22
)
"""What decoding an invalid value may raise, mostly from hooks of the converter.

AttributeError is one of them because ``hasattr`` would hide it when a field is decoded on first access.
"""
# RecursionError for JSON that is nested a thousand levels deep, UnicodeDecodeError for a string that is not UTF-8.
_INVALID_JSON = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


# --- heads: the fields that the library itself reads of every object --------------------------------------------------


@final
class MetadataHead(msgspec.Struct, gc=False):
    """The metadata fields that caches and queues read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  # with the API's name msgspec needs no rename


@final
class Head(msgspec.Struct, gc=False):
    """The result of the scan of an object; the slice of ``spec`` costs nothing extra.

    ``gc=False``: a head refers to no container, and hundreds of thousands of heads would slow each garbage collection.
    """

    metadata: MetadataHead
    spec: msgspec.Raw = ABSENT

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for an object without namespace."""
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
    """Scan an object's bytes for its head; a null reads as empty, as in Go.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        return _decode_head(data)
    except _INVALID_JSON:
        try:
            found = _decode_nullable_head(data)
        except _INVALID_JSON as error:
            raise decode_error(error, "an object's metadata") from error
        metadata = found.metadata
        texts = (metadata.name, metadata.namespace, metadata.uid, metadata.resourceVersion)
        return Head(MetadataHead(*(text or "" for text in texts)), found.spec)


def scan_whole(data: bytes) -> tuple[bytes, Head]:
    """Scan an object's bytes, and return them unchanged with their head.

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
    """Remove ``metadata.managedFields`` from an object's bytes, which often halves them, and scan the rest.

    The bytes before and after it are copied once, and nothing is decoded.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        found = _find_managed_fields(data).metadata.managedFields
    except _INVALID_JSON as error:
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
        if not memoryview(_find_managed_fields(rest).metadata.managedFields):
            return scan_whole(rest)
    return scan_whole(_without_managed_fields(data))


_COMMA = ord(",")


def _without_managed_fields(data: bytes) -> bytes:
    """Remove them from an object in any JSON form, by its members."""
    members = map_items(data)
    metadata = map_items(members["metadata"])
    del metadata["managedFields"]
    members["metadata"] = Raw(_join(metadata))
    return _join(members)


def _join(members: dict[str, Raw]) -> bytes:
    return b"{" + b",".join([dumps(key) + b":" + bytes(raw) for key, raw in members.items()]) + b"}"


def make_head(name: str, namespace: str, uid: str, resource_version: str) -> Head:
    """Make the head of an object that was not decoded from JSON."""
    return Head(MetadataHead(name, namespace, uid, resource_version))


# --- levels: one JSON object, its members not decoded ----------------------------------------------------------------

_decode_list = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
_decode_map = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def level_decoder(keys: tuple[str, ...]) -> Callable[[bytes | Raw], tuple[Raw, ...]]:
    """Make a function that returns the raw values of ``keys`` in a JSON object; an absent one is the empty ``Raw``.

    The function raises ValueError for bytes that are not a JSON object, and RecursionError for too many levels.
    """
    fields = [(f"f{i}", msgspec.Raw, msgspec.field(default=ABSENT, name=key)) for i, key in enumerate(keys)]
    level = msgspec.defstruct("Level", fields, gc=False)
    find = msgspec.json.Decoder(level).decode

    def find_values(data: bytes | Raw) -> tuple[Raw, ...]:
        try:
            return msgspec.structs.astuple(find(data))
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from error

    return find_values


def list_items(data: bytes | Raw) -> list[Raw]:
    """Return the raw items of a JSON array; null reads as empty.

    Raises:
        ValueError: It is not an array.
        RecursionError: It has too many levels.
    """
    try:
        return _decode_list(data) or []
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def map_items(data: bytes | Raw) -> dict[str, Raw]:
    """Return the raw members of a JSON object; null reads as empty.

    Raises:
        ValueError: It is not an object.
        RecursionError: It has too many levels.
    """
    try:
        return _decode_map(data) or {}
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def check_object(data: bytes, what: str) -> None:
    """Check that the bytes are one JSON object.

    Raises:
        DecodeError: They are not.
    """
    try:
        _decode_object(data)
    except _INVALID_JSON as error:
        raise decode_error(error, what) from error


def plain_decoder(type_: Any) -> Callable[[bytes | Raw], Any]:
    """Make a decoder of a type that msgspec supports."""
    return msgspec.json.Decoder(type_).decode


def decode(data: bytes | bytearray | memoryview | Raw) -> Any:
    """Decode JSON to plain dicts, lists and scalars.

    Raises:
        DecodeError: It is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except _INVALID_JSON as error:
        raise decode_error(error, "JSON") from error


_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def canonical(data: bytes | Raw) -> bytes:
    """Return the canonical form of JSON: two values are the same if it is, whatever the order of their members.

    ``1``, ``1.0`` and ``true`` differ; ``1.0`` and ``1.00`` do not.
    What cannot be decoded, such as a number of 400 digits, is returned as it is.
    """
    try:
        return _encode_sorted(msgspec.json.decode(data))
    except (*_INVALID_JSON, ValueError):
        return bytes(data)


def merge_changes(old: bytes, before: bytes, after: bytes) -> bytes:
    """Apply the difference between two values to a third, of which the first knows only a part.

    Args:
        old: The JSON that the server sent.
        before: What is encoded from the value that was decoded from it.
        after: What is encoded from the changed value.

    Returns:
        The changed JSON, with the members that the class of the value does not have.
    """
    return msgspec.json.encode(_merged(*map(msgspec.json.decode, (old, before, after))))


def _merged(old: Any, before: Any, after: Any) -> Any:
    if all(isinstance(value, dict) for value in (old, before, after)):
        members = {key: value for key, value in old.items() if key in after or key not in before}
        for key, value in after.items():
            if key not in before or not _is_same(before[key], value):
                members[key] = _merged(old.get(key), before.get(key), value)
        return members
    if all(isinstance(value, list) for value in (old, before, after)) and len(old) == len(before):
        return _merged_items(old, before, after)
    return after


def _merged_items(old: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Replace each item that is not changed, but may have moved, by the old one.

    Items may differ only in what the class does not have, so each old one is taken once: those at both ends that are
    alike belong together, and those between them by value, in order.
    """
    was, now = list(map(_encode_sorted, before)), list(map(_encode_sorted, after))
    front = _count_alike(was, now)
    back = _count_alike(was[front:][::-1], now[front:][::-1])
    left: dict[bytes, collections.deque[Any]] = {}
    for i in range(front, len(was) - back):
        left.setdefault(was[i], collections.deque()).append(old[i])
    between = [left[now[i]].popleft() if left.get(now[i]) else after[i] for i in range(front, len(now) - back)]
    return [*old[:front], *between, *old[len(old) - back :]]


def _count_alike(one: list[bytes], other: list[bytes]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_same(one: object, other: object) -> bool:
    return _encode_sorted(one) == _encode_sorted(other)


def dumps(value: object) -> bytes:
    """Encode plain values (dicts, sequences, scalars, base64 for bytes) as compact JSON; for a model use ``encode``.

    Raises:
        TypeError: A value cannot be encoded as JSON.
    """
    return msgspec.json.encode(value, enc_hook=_unstructure_other)


def _unstructure_other(value: object) -> Any:
    found = plain(value)
    if type(found) is type(value):
        raise TypeError(f"a {type(value).__name__} cannot be encoded as JSON")
    return found


def plain(value: object) -> object:
    """Convert the models and other values in dicts and sequences for :func:`dumps`.

    Otherwise msgspec would encode them by its own rules for attrs classes.
    """
    found: object = _converter().unstructure(value)
    return found


def loads(data: bytes | bytearray | memoryview | Raw) -> Any:
    """Decode JSON to immutable plain values: tuples, read-only maps and scalars.

    Raises:
        DecodeError: It is not JSON.
    """
    return freeze(decode(data))


# --- the converter ---------------------------------------------------------------------------------------------------


Structure: TypeAlias = Callable[[Any, type[Any]], Any]
Unstructure: TypeAlias = Callable[[Any], Any]

_hooks: list[tuple[type[Any], Structure, Unstructure]] = []


@functools.cache
def _converter() -> Converter:
    # cattrs is a fifth of this library's import time, and most programs read no field that needs it immediately.
    from ._converter import make_converter  # noqa: PLC0415

    return make_converter(_hooks)


def register_hooks(cls: type[Any], structure: Structure, unstructure: Unstructure) -> None:
    """Register how the converter structures and unstructures a class and its subclasses, before its first use."""
    _hooks.append((cls, structure, unstructure))


def structure(data: bytes | Raw, type_: Any) -> Any:
    """Decode JSON, and structure it as ``type_`` with the converter.

    Raises:
        TypeError: The converter does not know the type.
    """
    converter = _converter()
    try:
        return converter.structure(msgspec.json.decode(data), type_)
    except Exception as error:
        from ._converter import UNSUPPORTED  # noqa: PLC0415  # as in _converter()

        if isinstance(error, UNSUPPORTED):
            raise TypeError(str(error)) from error
        raise


def unstructure(value: object, type_: Any) -> Any:
    """Convert a value of ``type_`` for :func:`dumps`."""
    return _converter().unstructure(value, unstructure_as=type_)
