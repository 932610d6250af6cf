"""Convert protobuf messages to JSON values, using the table of types."""

from __future__ import annotations

import base64
import functools
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, final

from ...errors import DecodeError
from .. import _serde
from .._values import MAX_LEVELS, TOO_DEEP
from ._tables import WireField, WireType
from ._wire import (
    MAP_ITEM,
    DamagedFieldError,
    MalformedMessageError,
    Unknown,
    Value,
    message,
    read_level,
    step_of,
    text,
)

__all__ = [
    "MAX_LEVELS",
    "ZEROS",
    "converter_of",
    "duration",
    "entry_of",
    "int_or_string",
    "integer",
    "quantity",
    "raw_json",
    "real",
    "time_of",
    "to_plain",
]

Convert: TypeAlias = Callable[[Value, int, Unknown], Any]
"""Converts a value, given the number of levels that it may still have, and adds unknown fields to a list."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = 1 << 53
"""Every integer up to this number can be represented exactly as a float."""
_TOO_LARGE: Final = 1e21
"""Go writes this number and larger numbers with an exponent."""
_CLAIMS: Final = ("StatefulSetSpec", "volumeClaimTemplates")
"""Nested objects for which kube-apiserver adds kind and apiVersion to the JSON; messages do not contain these."""
_BOTH: Final = {"A": ("schema", "jSONSchemas"), "B": ("allows", "schema"), "C": ("schema", "property")}


def integer(value: Value) -> int:
    """Decode a signed integer."""
    if type(value) is not int:
        raise MalformedMessageError("an integer has the wire type of a string")
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return value - (1 << 64) if value >> 63 else value


def real(value: Value) -> float:
    """Decode an eight-byte or four-byte float."""
    data = message(value)
    try:
        found: float = struct.unpack("<d" if len(data) == 8 else "<f", data)[0]
    except struct.error:
        raise MalformedMessageError("a float has neither eight nor four bytes") from None
    return found


def time_of(value: Value, *, is_micro: bool) -> datetime | None:
    """Decode a Time or a MicroTime; an empty message is the zero time, which is null in JSON."""
    fields = dict(read_level(message(value)))
    if not fields:
        return None
    try:
        seconds, nanos = integer(fields.get(1, 0)), integer(fields.get(2, 0)) if is_micro else 0
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise MalformedMessageError("a time is outside the years 1 to 9999") from None


def _time(value: Value) -> str | None:
    found = time_of(value, is_micro=False)
    return None if found is None else found.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _micro_time(value: Value) -> str | None:
    found = time_of(value, is_micro=True)
    return None if found is None else found.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def duration(value: Value) -> str:
    """Decode a Duration, and format it as Go's ``time.Duration.String`` does."""
    nanos = integer(dict(read_level(message(value))).get(1, 0))
    sign, left = ("-", -nanos) if nanos < 0 else ("", nanos)
    if left < 1_000_000_000:
        for unit, size in (("ms", 1_000_000), ("µs", 1000), ("ns", 1)):
            if left >= size:
                return sign + _decimal(left, size) + unit
        return "0s"
    minutes, left = divmod(left, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    begin = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return sign + begin + _decimal(left, 1_000_000_000) + "s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    fraction = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


def quantity(value: Value) -> str:
    """Decode a Quantity; an empty message is zero."""
    return text(dict(read_level(message(value))).get(1, b"")) or "0"


def int_or_string(value: Value) -> int | str:
    """Decode an IntOrString."""
    fields = dict(read_level(message(value)))
    return text(fields.get(3, b"")) if fields.get(1, 0) else integer(fields.get(2, 0))


def entry_of(value: Value, kind: str) -> tuple[str, Value]:
    """Return the key and the value of a map entry, given the kind of the map's values."""
    fields = dict(read_level(message(value)))
    return text(fields.get(1, b"")), fields.get(2, 0 if kind in ("i", "b") else b"")


def raw_json(value: Value) -> Any:
    """Decode the JSON in a RawExtension, FieldsV1 or JSON."""
    data = message(dict(read_level(message(value))).get(1, b""))
    return _serde.decode(data) if data else None


def _number(value: Value) -> int | float:
    """Decode a float as in Go's JSON, where 1.0 is written as 1."""
    found = real(value)
    if not found.is_integer() or abs(found) >= _TOO_LARGE:
        return found
    return int(found) if abs(found) <= _EXACT else int(Decimal(repr(found)))  # the digits that Go writes


_SCALARS: Final[dict[str, Callable[[Value], Any]]] = {
    "s": text,
    "b": lambda value: bool(integer(value)),
    "i": integer,
    "d": _number,
    "e": _number,
    "y": lambda value: base64.b64encode(message(value)).decode(),
    "T": _time,
    "U": _micro_time,
    "D": duration,
    "Q": quantity,
    "I": int_or_string,
    "R": raw_json,
    "F": raw_json,
}
ZEROS: Final[dict[str, Any]] = {"s": "", "b": False, "i": 0, "d": 0.0, "e": 0.0}


def _ignoring(convert: Callable[[Value], Any]) -> Convert:
    return lambda value, levels, unknown: convert(value)


def converter_of(owner: WireType, kind: str) -> Convert:
    """Return a function that converts one value of a kind: a list item, a map value, or the value of a field."""
    if kind in _SCALARS:
        return _ignoring(_SCALARS[kind])
    if kind in _BOTH:
        return _union(kind, owner)
    if kind.startswith("[="):
        item = converter_of(owner, kind[2:])
        return lambda value, levels, unknown: [
            item(each, levels - 1, unknown) for number, each in read_level(message(value)) if number == 1
        ]
    inner = owner.type_of(kind)
    return lambda value, levels, unknown: to_plain(message(value), inner, levels - 1, unknown)


def _union(kind: str, owner: WireType) -> Convert:
    """Return a function that converts a schema or, for some kinds, a list of schemas, a bool or a list of strings."""
    props = owner.type_of("JSONSchemaProps")

    def convert(value: Value, levels: int, unknown: Unknown) -> Any:
        fields = read_level(message(value))
        found = dict(fields)
        schema_number = 2 if kind == "B" else 1
        if schema_number in found:
            return to_plain(message(found[schema_number]), props, levels - 1, unknown)
        if kind == "B":
            return bool(integer(found.get(1, 0)))
        others = [each for number, each in fields if number == 2]
        if kind == "C":
            return [text(each) for each in others]
        return [to_plain(message(each), props, levels - 1, unknown) for each in others]

    return convert


def _claim(convert: Convert) -> Convert:
    type_meta = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    return lambda value, levels, unknown: {**type_meta, **convert(value, levels, unknown)}


@final
class _Plan:
    """The conversions of the fields of one type."""

    __slots__ = ("fields", "name", "nulls")

    def __init__(self, type_: WireType) -> None:
        self.name = type_.name
        self.fields: dict[int, tuple[WireField, Convert]] = {}
        for number, field in type_.fields.items():
            convert = converter_of(type_, field.element)
            if (type_.name, field.json) == _CLAIMS:
                convert = _claim(convert)
            self.fields[number] = field, convert
        self.nulls = tuple(
            field.json
            for field in type_.fields.values()
            if (field.kind[0] in "*[{" or field.kind in ("y", "T", "U")) and not (field.omits_empty or field.is_inline)
        )
        """The members that are null in JSON if absent: pointers, lists, maps and times that Go does not omit."""


_plan_of = functools.cache(_Plan)


def to_plain(data: bytes, type_: WireType, levels: int = MAX_LEVELS, unknown: Unknown | None = None) -> dict[str, Any]:
    """Convert a message to the object in its JSON.

    Args:
        data: The message.
        type_: The type of the message.
        levels: The maximum number of nested levels.
        unknown: A list that collects the fields that are not in the table.

    Raises:
        DecodeError: The bytes are not a message of this type, or the message has too many levels.
    """
    if levels <= 0:
        raise DecodeError(TOO_DEEP)
    if unknown is None:
        unknown = []
    plan = _plan_of(type_)
    found: dict[str, Any] = {}
    for number, value in read_level(data):
        entry = plan.fields.get(number)
        if entry is None:
            unknown.append((f"{plan.name}.{number}", value))
            continue
        field, convert = entry
        try:
            if field.shape == "[":
                found.setdefault(field.json, []).append(convert(value, levels - 1, unknown))
            elif field.shape == "{":
                key, item = entry_of(value, field.element)
                found.setdefault(field.json, {})[key] = convert(item, levels - 1, unknown)
            else:
                plain = convert(value, levels, unknown)
                if field.is_inline:
                    found.update(plain)
                elif field.omits_empty and _is_empty(field.kind, plain):
                    continue
                else:
                    found[field.json] = plain
        except DecodeError as error:
            if field.is_inline:
                raise
            index = MAP_ITEM if field.shape == "{" else len(found.get(field.json, ())) if field.shape else None
            step = step_of(field.json, index)
            if not isinstance(error, DamagedFieldError):
                raise DamagedFieldError(f"{step}: {error}") from error
            error.args = (f"{step}.{error}",)
            raise
    for name in plan.nulls:
        found.setdefault(name)
    return found


def _is_empty(kind: str, plain: Any) -> bool:
    return not plain and (kind in ZEROS or kind in ("y", "T"))
