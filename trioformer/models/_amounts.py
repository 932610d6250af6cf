"""The quantities in an object's JSON, for code that knows only the JSON and the class."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args, get_origin

import attrs

from ..errors import DecodeError
from ._hints import without_none
from ._lazy import Model
from ._quantity import Quantity
from ._values import camel_case

__all__ = ["with_amounts"]


def with_amounts(cls: type[Model], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of an object's members in which every quantity has its shortest text.

    A server rewrites quantities, for example ``0.5`` to ``500m``, so equal amounts can have different texts.

    Members that the class does not have and invalid quantities stay unchanged.

    Args:
        cls: The class of the object.
        members: The decoded JSON of the object.
    """
    hints = _hints_of(cls)
    return {name: _with_amounts(hints[name], value) if name in hints else value for name, value in members.items()}


def _with_amounts(hint: Any, value: Any) -> Any:
    if hint is Quantity:
        return _amount(value)
    origin = get_origin(hint)
    if origin is tuple and isinstance(value, list):
        return [_with_amounts(get_args(hint)[0], item) for item in value]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if origin is Mapping:
            return {name: _with_amounts(get_args(hint)[1], item) for name, item in members.items()}
        if isinstance(hint, type) and issubclass(hint, Model):
            return with_amounts(hint, members)
    return value


def _amount(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return f"{Quantity(str(value)).value.normalize():f}"
    except DecodeError:
        return value


def _make_hints(cls: type[Any]) -> Mapping[str, Any]:
    """Return the types of a class's fields, by JSON name."""
    hints = typing.get_type_hints(cls)
    own = [each for each in attrs.fields(cls) if each.name != "_origin"]
    names = {each.name: cls._json_names.get(each.name) or each.metadata.get("json") for each in own}
    return {json or camel_case(name): without_none(hints[name]) for name, json in names.items()}


_hints_of = cast("Callable[[type[Any]], Mapping[str, Any]]", functools.cache(_make_hints))
