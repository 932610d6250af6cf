"""Decode and encode one level of a protobuf message."""

from __future__ import annotations

import codecs
from typing import Any, Final, TypeAlias, cast, final

import msgspec

from ...errors import DecodeError

__all__ = [
    "ABSENT",
    "FIXED",
    "MAP_ITEM",
    "DamagedFieldError",
    "MalformedMessageError",
    "Message",
    "Unknown",
    "Value",
    "message",
    "newer_field_in",
    "read_level",
    "step_of",
    "tagged",
    "text",
    "varint",
    "varint_of",
]

Value: TypeAlias = int | bytes
"""An integer, or the bytes of a string, a message or a number with a fixed size."""

Unknown: TypeAlias = list[tuple[str, Value]]
"""Fields that the table of types does not have: a name, such as ``PodSpec.45``, and the value."""

FIXED: Final = {1: 8, 5: 4}
"""The sizes of numbers with a fixed size, by wire type."""


@final
class MalformedMessageError(DecodeError):
    """The error for bytes that are not a protobuf message; its text does not quote the bytes."""


MAP_ITEM: Final = "…"
"""The index of a value in a map; errors do not contain the keys of maps."""


def step_of(json: str, index: int | str | None) -> str:
    """Return one step of a field's path, such as ``containers[0]``; the index is None for a single value."""
    return json if index is None else f"{json}[{index}]"


@final
class DamagedFieldError(DecodeError):
    """The error for a field that cannot be decoded; its text begins with the field's path."""


@final
class Message(msgspec.Struct, gc=False, eq=False):
    """A protobuf message, which an object stores instead of JSON.

    The garbage collector does not track messages.  It would track a subclass of ``bytes``, and making one copies the
    bytes twice.
    """

    data: bytes
    source: tuple[Any, ...] | None = None
    """Where a part was read, for errors; see ``_places.py``."""

    def __bytes__(self) -> bytes:
        return self.data

    def __eq__(self, other: object) -> bool:
        return type(other) is Message and self.data == other.data

    def __ne__(self, other: object) -> bool:  # a struct has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash(self.data)


ABSENT: Final[Any] = object()
"""The value of a field that is absent, or that Go would omit from JSON."""


def newer_field_in(unknown: Unknown) -> str:
    """Return the name of the first unknown field with a value, or an empty string.

    Go writes zeros and empty strings of all fields that are not pointers, so these are not values.
    """
    return next((name for name, value in unknown if value not in (0, b"")), "")


def varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return the integer at a position, and the position after the integer.

    Raises:
        IndexError: The data ends within the integer.
        MalformedMessageError: The integer has more than ten bytes.
    """
    found = shift = 0
    while True:
        byte = data[position]
        position += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:  # the highest bit says whether another byte follows
            return found, position
        shift += 7
        if shift > 63:  # ten bytes have 70 bits
            raise MalformedMessageError("an integer has more than ten bytes")


def varint_of(number: int) -> bytes:
    """Encode an integer; a negative integer takes ten bytes."""
    if 0 <= number <= 0x7F:
        return bytes((number,))
    number &= 0xFFFF_FFFF_FFFF_FFFF
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def tagged(number: int, data: bytes) -> bytes:
    """Encode a field whose value is bytes, with its tag and length."""
    return varint_of(number << 3 | 2) + varint_of(len(data)) + data


def read_level(data: bytes) -> list[tuple[int, Value]]:
    """Return the numbers and values of all fields in a message, in the order in which they appear.

    Raises:
        MalformedMessageError: The bytes are not a message.
    """
    fields: list[tuple[int, Value]] = []
    position, end = 0, len(data)
    try:
        while position < end:
            tag = data[position]
            position += 1
            if tag > 0x7F:  # as in varint()
                tag, position = varint(data, position - 1)
            wire = tag & 7
            if wire == 2:  # a string, a message or a list of numbers
                size = data[position]
                position += 1
                if size > 0x7F:
                    size, position = varint(data, position - 1)
                begin = position
                position += size
                if position > end:
                    break
                fields.append((tag >> 3, data[begin:position]))
            elif wire == 0:
                value = data[position]
                position += 1
                if value > 0x7F:
                    value, position = varint(data, position - 1)
                fields.append((tag >> 3, value))
            else:
                size = FIXED.get(wire, 0)
                if not size:
                    raise MalformedMessageError(f"a field has the unknown wire type {wire}")
                fields.append((tag >> 3, data[position : position + size]))
                position += size
    except IndexError:
        position = end + 1
    if position != end:
        raise MalformedMessageError("a field is longer than its message")
    return fields


def _replace_each(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("trioformer.replace_each", _replace_each)


def text(value: Value) -> str:
    """Decode a string; each byte that is not UTF-8 is replaced with U+FFFD, as in Go's JSON."""
    try:
        return str(value, "utf-8")  # type: ignore[arg-type]
    except UnicodeDecodeError:
        return str(cast("bytes", value), "utf-8", "trioformer.replace_each")
    except TypeError:
        raise MalformedMessageError("a string has the wire type of a number") from None


def message(value: Value) -> bytes:
    """Return the value of a field that is a message or bytes."""
    if type(value) is int:
        raise MalformedMessageError("a message has the wire type of a number")
    return cast("bytes", value)
