"""Encode a model as a protobuf message, keeping the bytes of fields that are not in the table of types.

A client usually sends JSON.  But an object that was read as a message may have fields that are newer than the table.
JSON would omit these fields, and a PUT request would remove them from the stored object.  Such an object is therefore
sent as a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _serde
from ._lazy import Edits, Model, plan_of
from ._protobuf._encode import encode_field, to_message
from ._protobuf._fields import type_of_class
from ._protobuf._heads import spans
from ._protobuf._tables import WireType
from ._protobuf._wire import Message, tagged

__all__ = ["message_of"]


def message_of(model: Model, lost: list[str]) -> bytes:
    """Encode a model as a message.

    Args:
        model: The model, whose class must be in the table.
        lost: A list that collects the names of members that were decoded from JSON, but do not exist in messages.

    Raises:
        DecodeError: A value in the model does not have the type of its field.
    """
    origin = model._origin
    if type(origin) is Message:
        return origin.data
    type_ = type_of_class(type(model))
    assert type_ is not None  # as above; and so are the classes of its parts
    if not isinstance(origin, Edits):
        return to_message(_serde.decode(origin), type_, lost)
    raw, data = origin.raw, b""
    if type(raw) is Message:
        data = raw.data
    elif raw is not None:
        data = to_message(_serde.decode(raw), type_, lost)
    values: dict[str, Callable[[WireType, int], bytes]] = {}
    for name, field in plan_of(type(model)).fields.items():
        if field.argument in origin.names:
            values[field.json] = _encoder(field.json, getattr(model, name), field.unstructure, lost)
    return _rewritten(data, type_, values)


def _encoder(
    json: str, value: Any, unstructure: Callable[[Any], bytes], lost: list[str]
) -> Callable[[WireType, int], bytes]:
    """Return a function that encodes a field's new value with its tag, given the field's owner type and number."""

    def encode(owner: WireType, number: int) -> bytes:
        if value is None:
            return b""
        if isinstance(value, Model):
            return tagged(number, message_of(value, lost))
        if isinstance(value, tuple) and value and isinstance(value[0], Model):
            return b"".join(tagged(number, message_of(each, lost)) for each in value)
        if isinstance(value, Mapping) and value and isinstance(next(iter(value.values())), Model):
            entries = ((key.encode(), message_of(each, lost)) for key, each in value.items())
            return b"".join(tagged(number, tagged(1, key) + tagged(2, data)) for key, data in entries)
        return encode_field(owner, json, _serde.decode(unstructure(value)), lost)

    return encode


def _rewritten(data: bytes, type_: WireType, values: Mapping[str, Callable[[WireType, int], bytes]]) -> bytes:
    """Return a message with the values of some fields replaced; the remaining fields keep their bytes."""
    inlined = {number: type_.inlined(number) for number, field in type_.fields.items() if field.is_inline}
    old: dict[int, bytes] = dict.fromkeys(inlined, b"")
    parts: list[tuple[int, bytes]] = []
    for number, tag, begin, end in spans(data, 0, len(data)):
        field = type_.fields.get(number)
        if number in inlined:
            old[number] = data[begin:end]
        elif field is None or field.json not in values:
            parts.append((number, data[tag:end]))
    for number, field in type_.fields.items():
        if number in inlined:
            inner = _rewritten(old[number], inlined[number], values)
            if inner or not field.kind.startswith("*"):
                parts.append((number, tagged(number, inner)))
        elif field.json in values:
            parts.append((number, values[field.json](type_, number)))
    parts.sort(key=_number_of)  # as Go writes them, and stable: the items of a list keep their order
    return b"".join([part for _, part in parts])


def _number_of(part: tuple[int, bytes]) -> int:
    return part[0]
