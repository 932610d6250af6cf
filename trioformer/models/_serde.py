"""JSON in, JSON out: msgspec scans bytes and turns plain leaves into Python values.

What msgspec does not know is left to the one cattrs converter of ``_converter.py``; no other module names either.
Nothing here knows a Kubernetes kind, and nothing here is structured before :mod:`._lazy` asks for it.
"""

from __future__ import annotations

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
    "check_object",
    "decode",
    "decode_error",
    "dumps",
    "level_decoder",
    "list_items",
    "loads",
    "make_head",
    "map_items",
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
"""A slice of somebody's bytes that has been skipped over, not decoded; it keeps those bytes alive."""

ABSENT = Raw(b"")


def decode_error(error: Exception, what: str) -> DecodeError:
    """The library's own error for what msgspec or cattrs found wrong in ``what``."""
    if isinstance(error, ExceptionGroup):
        from ._converter import what_is_wrong  # noqa: PLC0415  # as below

        wrong = "; ".join(what_is_wrong(error))
    else:
        wrong = " ".join(str(error).split())
    return DecodeError(f"cannot decode {what}: {wrong}")


FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    ExceptionGroup,  # cattrs gathers what is wrong with an object
    msgspec.MsgspecError,  # a ValueError only since msgspec 0.22
)
"""What structuring a bad value may raise, most of it out of converter hooks.

AttributeError is one of them because Python's ``hasattr`` would hide it where a field is decoded on first access.
"""
# RecursionError when it is nested a thousand times; UnicodeDecodeError when a string is not UTF-8.
_NO_JSON = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


# --- heads: what the pipe itself reads of every object ---------------------------------------------------------------


@final
class MetadataHead(msgspec.Struct, gc=False):
    """The metadata fields that caches and queues read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  # the wire's spelling spares msgspec a rename table


@final
class Head(msgspec.Struct, gc=False):
    """The one scan that every object gets; ``spec`` is captured for nothing on the way.

    ``gc=False``: a head refers to no container, and hundreds of thousands of them would slow each collection.
    """

    metadata: MetadataHead
    spec: msgspec.Raw = ABSENT

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for what has no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


_decode_head = msgspec.json.Decoder(Head).decode


def scan_head(data: bytes) -> Head:
    """Scan an object's bytes for its head.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        return _decode_head(data)
    except _NO_JSON as error:
        raise decode_error(error, "an object's metadata") from error


def scan_whole(data: bytes) -> tuple[bytes, Head]:
    """Scan an object's bytes that are kept as they are.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    return data, scan_head(data)


class _ManagedMetadataHead(msgspec.Struct, gc=False):
    managedFields: msgspec.Raw = ABSENT  # noqa: N815  # as above


class _ManagedHead(msgspec.Struct, gc=False):
    metadata: _ManagedMetadataHead


_find_managed_fields = msgspec.json.Decoder(_ManagedHead).decode
_MANAGED_FIELDS = b'"managedFields":'


def scan_without_managed_fields(data: bytes) -> tuple[bytes, Head]:
    """Cut ``metadata.managedFields`` out of an object's bytes, which often halves them, and scan the rest.

    The bytes before and after are copied once, and nothing is decoded.

    Raises:
        DecodeError: The bytes are not a JSON object with ``metadata``.
    """
    try:
        found = _find_managed_fields(data).metadata.managedFields
    except _NO_JSON as error:
        raise decode_error(error, "an object's metadata") from error
    value = memoryview(found)
    if not value:
        return scan_whole(data)
    begin = data.find(_MANAGED_FIELDS)
    end = begin + len(_MANAGED_FIELDS) + len(value)
    # The key cannot be part of a string, where its quotes are escaped, but it may be a deeper object's, or spaced.
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
    """Cut them out of an object in any spelling, by its members."""
    members = map_items(data)
    metadata = map_items(members["metadata"])
    del metadata["managedFields"]
    members["metadata"] = Raw(_join(metadata))
    return _join(members)


def _join(members: dict[str, Raw]) -> bytes:
    return b"{" + b",".join([dumps(key) + b":" + bytes(raw) for key, raw in members.items()]) + b"}"


def make_head(name: str, namespace: str, uid: str, resource_version: str) -> Head:
    """The head of an object that was built in Python, not read."""
    return Head(MetadataHead(name, namespace, uid, resource_version))


# --- levels: one JSON object, its members skipped over ----------------------------------------------------------------

_decode_list = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
_decode_map = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def level_decoder(keys: tuple[str, ...]) -> Callable[[bytes | Raw], tuple[Raw, ...]]:
    """Make a function that finds the raw values of ``keys`` in a JSON object; an absent one is the empty ``Raw``.

    The function raises ValueError for what is no JSON object, and RecursionError for one that is nested too deeply.
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
        ValueError: It is no array.
        RecursionError: It is nested too deeply.
    """
    try:
        return _decode_list(data) or []
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def map_items(data: bytes | Raw) -> dict[str, Raw]:
    """Return the raw members of a JSON object; null reads as empty.

    Raises:
        ValueError: It is no object.
        RecursionError: It is nested too deeply.
    """
    try:
        return _decode_map(data) or {}
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def check_object(data: bytes, what: str) -> None:
    """Make sure that the bytes are one JSON object.

    Raises:
        DecodeError: They are not.
    """
    try:
        _decode_object(data)
    except _NO_JSON as error:
        raise decode_error(error, what) from error


def plain_decoder(type_: Any) -> Callable[[bytes | Raw], Any]:
    """A decoder of a leaf type that msgspec knows by itself."""
    return msgspec.json.Decoder(type_).decode


def decode(data: bytes | bytearray | memoryview | Raw) -> Any:
    """Decode JSON to plain dicts, lists and scalars.

    Raises:
        DecodeError: It is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except _NO_JSON as error:
        raise decode_error(error, "JSON") from error


def dumps(value: object) -> bytes:
    """Encode plain values (dicts, sequences, scalars, base64 for bytes) as compact JSON.

    A model is not one of them: it has ``encode``.

    Raises:
        TypeError: A value has no JSON form.
    """
    return msgspec.json.encode(value, enc_hook=_plainer)


def _plainer(value: object) -> Any:
    made = plain(value)
    if type(made) is type(value):
        raise TypeError(f"a {type(value).__name__} has no JSON form here")
    return made


def plain(value: object) -> object:
    """Turn the models and other values in dicts and sequences into what :func:`dumps` takes.

    Without it, msgspec would take them for attrs classes of its own rules.
    """
    made: object = _converter().unstructure(value)
    return made


def loads(data: bytes | bytearray | memoryview | Raw) -> Any:
    """Decode JSON to frozen plain values: tuples and read-only maps.

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
    # cattrs is a fifth of this library's import time, and most programs read no field that needs it at once.
    from ._converter import make_converter  # noqa: PLC0415

    return make_converter(_hooks)


def register_hooks(cls: type[Any], structure: Structure, unstructure: Unstructure) -> None:
    """Register how the converter reads and writes a class and its subclasses; only before its first use."""
    _hooks.append((cls, structure, unstructure))


def structure(data: bytes | Raw, type_: Any) -> Any:
    """Decode JSON and let the converter structure it as ``type_``."""
    return _converter().structure(msgspec.json.decode(data), type_)


def unstructure(value: object, type_: Any) -> Any:
    """Turn a value of ``type_`` into what :func:`dumps` takes."""
    return _converter().unstructure(value, unstructure_as=type_)
