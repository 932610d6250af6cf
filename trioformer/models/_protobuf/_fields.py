"""Decode the values of a model's fields from a message; the result is the same as from JSON."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast, final

from ...errors import DecodeError
from .._quantity import Quantity
from .._values import FrozenMap, freeze
from . import _plain
from ._tables import WireField, WireType, find_type
from ._wire import ABSENT, MAP_ITEM, Message, Unknown, Value, message, newer_field_in, read_level, text

__all__ = ["WireLevel", "message_to_plain", "type_of_class"]


_ZEROS: Final = {**_plain.ZEROS, "y": b""}

_log = logging.getLogger("trioformer.models")

MakePart: TypeAlias = Callable[[type[Any], Message], Any]
Convert: TypeAlias = Callable[[Value], Any]

_VALUES: Final[dict[str, Convert]] = {
    "s": text,
    "b": lambda value: bool(_plain.integer(value)),
    "i": _plain.integer,
    "d": _plain.real,
    "e": _plain.real,
    "y": message,
    "T": lambda value: _plain.time_of(value, is_micro=False),
    "U": lambda value: _plain.time_of(value, is_micro=True),
    "D": _plain.duration,
    "Q": lambda value: Quantity(_plain.quantity(value)),
    "I": _plain.int_or_string,
    "R": lambda value: freeze(_plain.raw_json(value)),
    "F": lambda value: freeze(_plain.raw_json(value)),
}


def _find_type(cls: type[Any]) -> WireType | None:
    package, _, module = cls.__module__.rpartition(".")
    if package != __name__.rpartition("._protobuf")[0]:
        return None
    return find_type("meta_v1" if module == "_meta" else module, cls.__name__)


type_of_class = cast("Callable[[type[Any]], WireType | None]", functools.cache(_find_type))
"""Returns the message type of a model's class, or None if the table does not have the type."""


def message_to_plain(cls: type[Any], data: bytes, unknown: Unknown | None = None) -> dict[str, Any]:
    """Convert the message of a model to the object in its JSON.

    Args:
        cls: The model's class.
        data: The bytes.
        unknown: A list that collects the fields that are not in the table.  If None, a warning is logged for the first
            such field.

    Raises:
        DecodeError: The bytes are not a message of this type.
    """
    type_ = type_of_class(cls)
    assert type_ is not None  # as in WireLevel
    found: Unknown = [] if unknown is None else unknown
    plain = _plain.to_plain(data, type_, unknown=found)
    if unknown is None and (name := newer_field_in(found)):
        _warn_of_newer_field(name)
    return plain


@functools.cache
def _warn_of_newer_field(name: str) -> None:
    _log.warning(
        "objects have a field that is newer than this version of trioformer (%s): their JSON and dicts omit the field, "
        "but replace() keeps it. To read it, pass options=ClientOptions(protobuf=False) to open_client()",
        name,
    )


@final
class WireLevel:
    """A decoder for the fields of one class, which reads messages of the corresponding type."""

    __slots__ = ("_fields",)

    def __init__(self, cls: type[Any], models: dict[str, type[Any]], make: MakePart) -> None:
        """Create the decoder for a class.

        Args:
            cls: The class.
            models: The class of each field that contains models, directly or in a container, by JSON name.
            make: A function that makes a model from its message.
        """
        type_ = type_of_class(cls)
        assert type_ is not None  # the bytes are of a type of the table
        self._fields = {
            json: _reader(path, owner, field, models.get(json), make) for json, path, owner, field in _flat(type_)
        }

    def reader(self, data: bytes, source: tuple[Any, ...]) -> Callable[[Any, object], Any]:
        """Split a message into fields, and return a function that decodes a field; it ignores its second argument.

        Args:
            data: The message.
            source: The source of the parts in the fields; see ``_places.py``.

        Raises:
            DecodeError: The bytes are not a message.  The returned function raises this error for a value of the wrong
                type.
        """
        found = _by_number(data)

        def read(field: Any, _: object) -> Any:
            read_value = self._fields.get(field.json)
            value = ABSENT if read_value is None else read_value(found)
            if value is ABSENT:
                return field.default
            if field.model is None:
                return value
            json = field.json
            if type(value) is tuple:
                for index, part in enumerate(value):
                    part._origin.source = source, json, index
            elif type(value) is FrozenMap:
                for part in value.values():
                    part._origin.source = source, json, MAP_ITEM
            else:
                value._origin.source = source, json, None
            return value

        return read


def _by_number(data: bytes) -> dict[int, list[Value]]:
    """Split a message into the values of each field."""
    found: dict[int, list[Value]] = {}
    for number, value in read_level(data):
        if number in found:
            found[number].append(value)
        else:
            found[number] = [value]
    return found


def _flat(type_: WireType, path: tuple[int, ...] = ()) -> list[tuple[str, tuple[int, ...], WireType, WireField]]:
    """Return the JSON name, path, owner and definition of each field of a type, including those of inlined types."""
    found: list[tuple[str, tuple[int, ...], WireType, WireField]] = []
    for number, field in type_.fields.items():
        if field.is_inline:
            found += _flat(type_.inlined(number), (*path, number))
        else:
            found.append((field.json, path, type_, field))
    return found


def _reader(
    path: tuple[int, ...], owner: WireType, field: WireField, model: type[Any] | None, make: MakePart
) -> Callable[[dict[int, list[Value]]], Any]:
    number, shape, kind = field.number, field.shape, field.element
    convert = _converter(owner, kind, model, make)
    if shape and kind in ("T", "U"):
        convert = _not_null(convert)
    zero = _ZEROS.get(field.kind, ABSENT) if field.omits_empty else ABSENT

    def read(values: list[Value]) -> Any:
        if shape == "[":
            return tuple([convert(value) for value in values])
        if shape == "{":
            entries = (_plain.entry_of(value, kind) for value in values)
            return FrozenMap({key: convert(item) for key, item in entries})
        found = convert(values[-1])
        return ABSENT if found is None or (found == zero and zero is not ABSENT) else found

    def read_nested(found: dict[int, list[Value]]) -> Any:
        for outer in path:
            if outer not in found:
                return ABSENT
            found = _by_number(message(found[outer][-1]))
        return read(found[number]) if number in found else ABSENT

    return read_nested


def _not_null(convert: Convert) -> Convert:
    def convert_item(value: Value) -> Any:
        found = convert(value)
        if found is None:
            raise DecodeError("expected a time, got the zero time, which is null in JSON")
        return found

    return convert_item


def _converter(owner: WireType, kind: str, model: type[Any] | None, make: MakePart) -> Convert:
    if model is not None and kind not in ("A", "B", "C"):
        return lambda value: make(model, Message(message(value)))
    if kind in _VALUES:
        return _VALUES[kind]
    plain = _plain.converter_of(owner, kind)
    return lambda value: freeze(plain(value, _plain.MAX_LEVELS, []))
