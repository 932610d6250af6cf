"""The one cattrs converter: what msgspec does not know by itself; imported when the first such field is read.

Quantities, the two kinds of time, free-form JSON, read-only maps, and the attrs classes that users bring for their own
kinds.
"""

from __future__ import annotations

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


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.now(UTC)")
    return value.astimezone(UTC)


def _structure_time(value: object, _: object) -> datetime:
    return value if isinstance(value, datetime) else msgspec.convert(value, datetime)


def _unstructure_time(value: datetime) -> str:
    return _utc(value).strftime("%Y-%m-%dT%H:%M:%SZ")


def _unstructure_micro_time(value: datetime) -> str:
    return _utc(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _structure_quantity(value: object, _: object) -> Quantity:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError("a quantity is a string or a number")
    return Quantity(str(value))


def _is(tag: object) -> Callable[[Any], bool]:
    return lambda type_: type_ == tag


def _is_user_class(type_: Any) -> bool:
    return isinstance(type_, type) and attrs.has(type_)


def _is_plain_union(type_: Any) -> bool:
    arms = {*get_args(type_)} - {type(None)}
    return get_origin(type_) in (Union, UnionType) and len(arms) > 1 and arms <= _PLAIN


_PLAIN = frozenset({str, int, float, bool})


def _renames(cls: type[Any]) -> dict[str, Any]:
    return {
        a.name: override(rename=a.metadata.get("json", camel_case(a.name)), omit_if_default=True)
        for a in attrs.fields(cls)
    }


def make_converter(
    hooks: Iterable[tuple[type[Any], Callable[[Any, type[Any]], Any], Callable[[Any], Any]]],
) -> cattrs.Converter:
    """Make the converter, with all that it has been taught."""
    made = cattrs.Converter(forbid_extra_keys=False)

    def reader(cls: type[Any]) -> Callable[[Any, Any], Any]:
        read = make_dict_structure_fn(cls, made, **_renames(cls))

        def read_object(value: Any, type_: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"expected an object, got {type(value).__name__}")
            return read(value, type_)

        return read_object

    def writer(cls: type[Any]) -> Callable[[Any], Any]:
        return make_dict_unstructure_fn(cls, made, **_renames(cls))

    made.register_structure_hook_factory(_is_user_class, reader)
    made.register_unstructure_hook_factory(_is_user_class, writer)
    times = {Time: _unstructure_time, datetime: _unstructure_time, MicroTime: _unstructure_micro_time}
    for tag, unstructure_time in times.items():
        made.register_structure_hook_func(_is(tag), _structure_time)
        made.register_unstructure_hook_func(_is(tag), unstructure_time)
    made.register_structure_hook_func(_is_plain_union, msgspec.convert)
    made.register_structure_hook(Quantity, _structure_quantity)
    made.register_unstructure_hook(Quantity, str)
    made.register_structure_hook(bytes, lambda value, _: msgspec.convert(value, bytes))
    made.register_unstructure_hook(bytes, msgspec.to_builtins)
    made.register_structure_hook_func(_is(JSON), lambda value, _: freeze(value))
    made.register_unstructure_hook_func(_is(JSON), made.unstructure)
    made.register_structure_hook_func(
        lambda type_: get_origin(type_) in _MAPPINGS,
        lambda value, type_: FrozenMap({k: made.structure(v, get_args(type_)[1]) for k, v in value.items()}),
    )
    for cls, read, write in hooks:
        _register(made, cls, read, write)
    return made


def _register(
    made: cattrs.Converter, cls: type[Any], read: Callable[[Any, type[Any]], Any], write: Callable[[Any], Any]
) -> None:
    def is_known(type_: Any) -> bool:
        return isinstance(type_, type) and issubclass(type_, cls)

    made.register_structure_hook_func(is_known, read)
    made.register_unstructure_hook_func(is_known, write)


def what_is_wrong(error: ExceptionGroup[Exception]) -> list[str]:
    """Say what a converter found wrong, a line for each field."""
    return cattrs.transform_error(error, path="")


_MAPPINGS: tuple[object, ...] = (Mapping, FrozenMap)
