"""The cattrs converter for the types that msgspec does not support, imported when the first such field is read.

These types are quantities, the two types of time, free-form JSON, read-only maps, and the attrs classes and
dataclasses in custom kinds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import attrs
import cattrs
import msgspec
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from ..errors import DecodeError
from ._quantity import Quantity
from ._values import JSON, NOT_FINITE, FrozenMap, MicroTime, Time, camel_case, freeze

UNSUPPORTED = (cattrs.StructureHandlerNotFoundError, NotImplementedError)
"""The converter's exceptions for an unknown type."""


def _utc(value: datetime) -> datetime:
    """Convert a time to a naive datetime in UTC."""
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, as in datetime.now(UTC)")
    try:
        return value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise ValueError("a time must be between the years 1 and 9999 in UTC") from error


_Zoned = Annotated[datetime, msgspec.Meta(tz=True)]


def _structure_time(value: object, _: object) -> datetime:
    found: datetime = value if isinstance(value, datetime) else msgspec.convert(value, _Zoned)
    if not 1 < found.year < 9999:
        _utc(found)
    return found


def _unstructure_float(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(NOT_FINITE)
    return value


def _unstructure_time(value: datetime) -> str:
    # Not strftime: its "%Y" does not pad the years before 1000, and RFC 3339 has four digits.
    return _utc(value).isoformat(timespec="seconds") + "Z"


def _unstructure_micro_time(value: datetime) -> str:
    return _utc(value).isoformat(timespec="microseconds") + "Z"


def _structure_quantity(value: object, _: object) -> Quantity:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DecodeError("a quantity is a string or a number")
    return Quantity(str(value))


def _is(tag: object) -> Callable[[Any], bool]:
    return lambda type_: type_ == tag


def _has_fields(type_: Any) -> bool:
    return isinstance(type_, type) and (attrs.has(type_) or dataclasses.is_dataclass(type_))


def _is_scalar_union(type_: Any) -> bool:
    members = {*get_args(type_)} - {type(None)}
    return get_origin(type_) in (Union, UnionType) and len(members) > 1 and members <= _SCALARS


_SCALARS = frozenset({str, int, float, bool})
_MAPPINGS: tuple[object, ...] = (Mapping, FrozenMap)


def _renames(cls: type[Any]) -> dict[str, Any]:
    fields: Iterable[Any] = attrs.fields(cls) if attrs.has(cls) else dataclasses.fields(cls)
    return {a.name: override(rename=a.metadata.get("json", camel_case(a.name))) for a in fields}


def make_converter(
    hooks: Iterable[tuple[type[Any], Callable[[Any, type[Any]], Any], Callable[[Any], Any]]],
) -> cattrs.Converter:
    """Return a new converter with all hooks registered.

    Args:
        hooks: Tuples, each with a class, its structure function and its unstructure function.  The functions also apply
            to subclasses.
    """
    converter = cattrs.Converter(forbid_extra_keys=False)

    def make_structure_hook(cls: type[Any]) -> Callable[[Any, Any], Any]:
        structure = make_dict_structure_fn(cls, converter, **_renames(cls))

        def structure_object(value: Any, type_: Any) -> Any:
            _check_type(value, dict, "an object")
            return structure(value, type_)

        return structure_object

    def make_unstructure_hook(cls: type[Any]) -> Callable[[Any], Any]:
        unstructure = make_dict_unstructure_fn(cls, converter, **_renames(cls))
        # Such a class does not know which fields the program gave, so all are encoded, even defaults.
        return lambda value: {key: member for key, member in unstructure(value).items() if member is not None}

    converter.register_structure_hook_factory(_has_fields, make_structure_hook)
    converter.register_unstructure_hook_factory(_has_fields, make_unstructure_hook)
    times = {Time: _unstructure_time, datetime: _unstructure_time, MicroTime: _unstructure_micro_time}
    for tag, unstructure_time in times.items():
        converter.register_structure_hook_func(_is(tag), _structure_time)
        converter.register_unstructure_hook_func(_is(tag), unstructure_time)
    converter.register_structure_hook_func(_is_scalar_union, msgspec.convert)
    converter.register_structure_hook(Quantity, _structure_quantity)
    converter.register_unstructure_hook(Quantity, str)
    converter.register_structure_hook(bytes, lambda value, _: msgspec.convert(value, bytes))
    converter.register_unstructure_hook(bytes, msgspec.to_builtins)
    converter.register_unstructure_hook(float, _unstructure_float)
    converter.register_structure_hook_func(_is(object), lambda value, _: value)
    converter.register_structure_hook_func(_is(JSON), lambda value, _: freeze(value))
    converter.register_unstructure_hook_func(_is(JSON), converter.unstructure)

    def structure_map(value: Any, type_: Any) -> FrozenMap[Any]:
        _check_type(value, dict, "an object")
        return FrozenMap({k: freeze(converter.structure(v, get_args(type_)[1])) for k, v in value.items()})

    def structure_items(value: Any, type_: Any) -> tuple[Any, ...]:
        # cattrs would accept the characters of a text as items.
        _check_type(value, list, "an array")
        item = get_args(type_)[0]
        found: list[Any] = []
        for index, each in enumerate(value):
            try:
                found.append(converter.structure(each, item))
            except UNSUPPORTED:
                raise
            except Exception as error:  # noqa: BLE001  # as in structure()
                note = cattrs.IterableValidationNote("an item", index, item)
                error.__notes__ = [*getattr(error, "__notes__", ()), note]
                problem = "an item is not valid"
                raise cattrs.IterableValidationError(problem, [error], type_) from None  # pyright: ignore[reportCallIssue]
        return tuple(found)

    converter.register_structure_hook_func(lambda type_: get_origin(type_) in _MAPPINGS, structure_map)
    converter.register_structure_hook_func(_has_like_items, structure_items)
    for cls, structure, unstructure in hooks:
        _register(converter, cls, structure, unstructure)
    return converter


def _register(
    converter: cattrs.Converter,
    cls: type[Any],
    structure: Callable[[Any, type[Any]], Any],
    unstructure: Callable[[Any], Any],
) -> None:
    def is_subclass(type_: Any) -> bool:
        return isinstance(type_, type) and issubclass(type_, cls)

    converter.register_structure_hook_func(is_subclass, structure)
    converter.register_unstructure_hook_func(is_subclass, unstructure)


def _check_type(value: object, wanted: type[Any], words: str) -> None:
    if not isinstance(value, wanted):
        raise DecodeError(f"expected {words}, got {type(value).__name__}")


def _has_like_items(type_: Any) -> bool:
    return get_origin(type_) is tuple and get_args(type_)[1:] == (...,)


_MAX_NAMED = 5


def describe(error: Exception, describe_one: Callable[[Exception], str]) -> str:
    """Return the text of a converter error: the invalid fields and the reasons, without the values.

    Args:
        error: The exception that the converter raised.
        describe_one: A function that returns the text for the error of one field.
    """
    found = _descriptions(error, "", None, describe_one)
    return "; ".join(found[:_MAX_NAMED]) + (f"; and {len(found) - _MAX_NAMED} more" if found[_MAX_NAMED:] else "")


def _descriptions(error: Exception, path: str, type_: Any, describe_one: Callable[[Exception], str]) -> list[str]:
    if isinstance(error, cattrs.ClassValidationError | cattrs.IterableValidationError):
        found: list[str] = []
        with_notes, without = error.group_exceptions()
        for each, note in with_notes:
            step = f".{note.name}" if isinstance(note, cattrs.AttributeValidationNote) else f"[{note.index}]"
            found += _descriptions(each, path + step, note.type, describe_one)
        for each in without:
            found += _descriptions(each, path, None, describe_one)
        return found
    if isinstance(error, KeyError):
        problem = "required field missing"
    elif isinstance(error, DecodeError | RecursionError | UnicodeError):
        problem = describe_one(error)
    elif type_ is not None:
        problem = f"invalid value for type, expected {getattr(type_, '__name__', type_)}"
    else:
        problem = describe_one(error)
    return [f"{problem} @ {path}" if path else problem]
