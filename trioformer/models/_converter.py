"""The cattrs converter, for the types that msgspec does not support; imported when the first such field is read.

These are quantities, the two types of time, free-form JSON, read-only maps, and the attrs classes and dataclasses of
custom kinds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Union, get_args, get_origin

import attrs
import cattrs
import msgspec
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from ._quantity import Quantity
from ._values import JSON, FrozenMap, MicroTime, Time, camel_case, freeze

UNSUPPORTED = (cattrs.StructureHandlerNotFoundError, NotImplementedError)
"""What the converter raises for a type that it does not know, whatever the value is."""


def _utc(value: datetime) -> datetime:
    """Convert a time to UTC, without its time zone."""
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.now(UTC)")
    return value.astimezone(UTC).replace(tzinfo=None)


def _structure_time(value: object, _: object) -> datetime:
    return value if isinstance(value, datetime) else msgspec.convert(value, datetime)


def _unstructure_time(value: datetime) -> str:
    # Not strftime: its "%Y" does not pad the years before 1000, and RFC 3339 has four digits.
    return _utc(value).isoformat(timespec="seconds") + "Z"


def _unstructure_micro_time(value: datetime) -> str:
    return _utc(value).isoformat(timespec="microseconds") + "Z"


def _structure_quantity(value: object, _: object) -> Quantity:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError("a quantity is a string or a number")
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
    """Make the converter.

    Args:
        hooks: Classes, and how they and their subclasses are structured and unstructured.
    """
    converter = cattrs.Converter(forbid_extra_keys=False)

    def make_structure_hook(cls: type[Any]) -> Callable[[Any, Any], Any]:
        structure = make_dict_structure_fn(cls, converter, **_renames(cls))

        def structure_object(value: Any, type_: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"expected an object, got {type(value).__name__}")
            return structure(value, type_)

        return structure_object

    def make_unstructure_hook(cls: type[Any]) -> Callable[[Any], Any]:
        unstructure = make_dict_unstructure_fn(cls, converter, **_renames(cls))
        # Such a class does not know which fields the program gave, so all are encoded, also those that equal a default.
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
    converter.register_structure_hook_func(_is(object), lambda value, _: value)
    converter.register_structure_hook_func(_is(JSON), lambda value, _: freeze(value))
    converter.register_unstructure_hook_func(_is(JSON), converter.unstructure)
    converter.register_structure_hook_func(
        lambda type_: get_origin(type_) in _MAPPINGS,
        lambda value, type_: FrozenMap(
            {k: freeze(converter.structure(v, get_args(type_)[1])) for k, v in value.items()}
        ),
    )
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


def error_messages(error: ExceptionGroup[Exception]) -> list[str]:
    """Return the messages of a converter's errors, one for each field."""
    return cattrs.transform_error(error, path="")
