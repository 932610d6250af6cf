"""Convert JSON values to protobuf messages, using the table of types."""

from __future__ import annotations

import base64
import functools
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from ...errors import DecodeError
from .. import _serde
from ._tables import WireField, WireType
from ._wire import tagged, varint_of

__all__ = ["encode_field", "to_message"]

Encode: TypeAlias = Callable[[Any], bytes]
"""Encodes a value, without its tag and its length."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PART_OF_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"[-+]?(0|({_PART_OF_DURATION.pattern})+)")
_NUMBERS: Final = frozenset({"i", "b", "d", "e", "*i", "*b", "*d", "*e"})
"""The kinds of values that are not bytes."""
_ALWAYS: Final[dict[str, Callable[[int], bytes]]] = {
    "s": lambda number: tagged(number, b""),
    "i": lambda number: _integer(number, 0),
    "b": lambda number: _integer(number, 0),
}
"""Encode the empty values of kinds that Go always writes, because only a pointer can be absent from a message."""
_TYPE_META: Final = frozenset({"apiVersion", "kind"})
"""The members of an object that are in its envelope instead of its message."""
_UNITS: Final = {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}


def _integer(number: int, value: int) -> bytes:
    return varint_of(number << 3) + varint_of(value)


def _time(value: str) -> bytes:
    passed = datetime.fromisoformat(value) - _EPOCH
    seconds = passed.days * 86_400 + passed.seconds
    return _integer(1, seconds) + (_integer(2, passed.microseconds * 1000) if passed.microseconds else b"")


def _duration(value: str) -> bytes:
    if _DURATION.fullmatch(value) is None:
        raise ValueError("it is not a duration")
    sign = -1 if value.startswith("-") else 1
    nanos = sum(round(float(number) * _UNITS[unit]) for number, unit in _PART_OF_DURATION.findall(value))
    return _integer(1, sign * nanos)


def _int_or_string(value: int | str) -> bytes:
    return _integer(1, 1) + tagged(3, value.encode()) if isinstance(value, str) else _integer(2, value)


_BYTES: Final[dict[str, Encode]] = {
    "s": str.encode,
    "y": base64.b64decode,
    "T": _time,
    "U": _time,
    "D": _duration,
    "Q": lambda value: tagged(1, str(value).encode()),
    "I": _int_or_string,
    "R": lambda value: tagged(1, _serde.dumps(value)),
    "F": lambda value: tagged(1, _serde.dumps(value)),
}


EncodeTagged: TypeAlias = Callable[[int, Any, "list[str] | None"], bytes]
"""Encodes a value with its tag, given the number of its field, and adds the names of lost members to the list."""


def _encoder_of(owner: WireType, kind: str) -> EncodeTagged:
    """Return a function that encodes one value of a kind."""
    if kind in ("i", "b"):
        return lambda number, value, lost: _integer(number, int(value))
    if kind in ("d", "e"):
        wire, form = (1, "<d") if kind == "d" else (5, "<f")
        return lambda number, value, lost: varint_of(number << 3 | wire) + struct.pack(form, value)
    encode = _BYTES.get(kind)
    if encode is not None:
        return lambda number, value, lost: tagged(number, encode(value))
    if kind in ("A", "B", "C"):
        props = owner.type_of("JSONSchemaProps")
        return lambda number, value, lost: tagged(number, _union(kind, props, value, lost))
    if kind.startswith("[="):
        item = _encoder_of(owner, kind[2:])
        return lambda number, value, lost: tagged(number, b"".join([item(1, each, lost) for each in value]))
    inner = owner.type_of(kind)
    return lambda number, value, lost: tagged(number, to_message(value, inner, lost))


def _union(kind: str, props: WireType, value: Any, lost: list[str] | None) -> bytes:
    if isinstance(value, Mapping):
        schema = tagged(2 if kind == "B" else 1, to_message(value, props, lost))
        return _integer(1, 1) + schema if kind == "B" else schema
    if kind == "B":
        return _integer(1, int(value))
    if kind == "C":
        return b"".join([tagged(2, each.encode()) for each in value])
    return b"".join([tagged(2, to_message(each, props, lost)) for each in value])


@functools.cache
def _names(type_: WireType) -> frozenset[str]:
    """Return the JSON names of all fields of a type, including those of its inlined types."""
    own = {field.json for field in type_.fields.values() if not field.is_inline}
    inlined = (_names(type_.inlined(number)) for number, field in type_.fields.items() if field.is_inline)
    return frozenset(own.union(*inlined))


_Step: TypeAlias = tuple[WireField, EncodeTagged | None]


@functools.cache
def _steps(type_: WireType) -> dict[str | int, _Step]:
    """Return the encoders of a type's fields, by JSON name, or by number for inlined fields."""
    steps: dict[str | int, _Step] = {}
    for number, field in type_.fields.items():
        if field.is_inline:
            steps[number] = field, None
        else:
            steps[field.json] = field, _encoder_of(type_, field.element)
    return steps


def to_message(plain: Mapping[str, Any], type_: WireType, lost: list[str] | None = None) -> bytes:
    """Encode a JSON object as a message of a type.

    Args:
        plain: The object.
        type_: The type.
        lost: A list that collects the names of members that the type does not have.  If None, these members are
            omitted, as in Go, and a value of the wrong type is encoded so that reading it raises an error.

    Raises:
        DecodeError: A value does not have the type of its field, and ``lost`` is a list.
    """
    if lost is not None:
        lost += [f"{type_.name}.{name}" for name in plain if name not in _names(type_) | _TYPE_META]
    return b"".join(_parts(plain, type_, lost))


def _parts(plain: Mapping[str, Any], type_: WireType, lost: list[str] | None) -> list[bytes]:
    parts: list[bytes] = []
    for field, encode in _steps(type_).values():
        if encode is None:
            inner = b"".join(_parts(plain, type_.inlined(field.number), lost))
            if inner or not field.kind.startswith("*"):
                parts.append(tagged(field.number, inner))
        elif field.json in plain:
            parts.append(_encode_value(type_, field, encode, plain[field.json], lost))
        elif field.omits_empty and field.kind in _ALWAYS:
            parts.append(_ALWAYS[field.kind](field.number))
    return parts


def encode_field(type_: WireType, json: str, value: Any, lost: list[str] | None) -> bytes:
    """Encode one field of a type with its tag; for ``lost``, see :func:`to_message`.

    Raises:
        DecodeError: The value does not have the type of the field.
    """
    field, encode = _steps(type_)[json]
    assert encode is not None  # an inlined field has no name
    return _encode_value(type_, field, encode, value, lost)


def _encode_value(type_: WireType, field: WireField, encode: EncodeTagged, value: Any, lost: list[str] | None) -> bytes:
    number, shape = field.number, field.shape
    if value is None:
        return tagged(number, b"") if field.kind in ("T", "U") else b""
    try:
        if not shape:
            return encode(number, value, lost)
        if None in (value if shape == "[" else value.values()):
            encode = _with_nulls(encode, field.kind)
        if shape == "[":
            return b"".join([encode(number, each, lost) for each in value])
        return b"".join(
            [tagged(number, tagged(1, key.encode()) + encode(2, each, lost)) for key, each in value.items()]
        )
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        if lost is None:
            # The value has the wrong type.  As with JSON, only reading this field raises an error.
            return tagged(number, b"") if field.kind in _NUMBERS else _integer(number, 0)
        raise DecodeError(f"{type_.name}.{field.json} has a value of the wrong type: {error}") from error


def _with_nulls(encode: EncodeTagged, kind: str) -> EncodeTagged:
    """Return a function that encodes an item of a list or map; a null item is encoded as the zero value, as in Go."""
    null = 0 if kind.lstrip("*[{") in ("i", "b") else None

    def encode_item(number: int, value: Any, lost: list[str] | None) -> bytes:
        if value is None and null is None:
            return tagged(number, b"")
        return encode(number, null if value is None else value, lost)

    return encode_item
