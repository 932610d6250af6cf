"""The fields and quantities in an object's JSON, for code that knows only the JSON and the kind."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any, cast, final, get_args, get_origin

import attrs

from ..errors import DecodeError
from ._hints import without_none
from ._kinds import builtin_kind
from ._lazy import Model
from ._meta import ObjectMeta
from ._parts import model_in
from ._quantity import Quantity
from ._values import JSON, camel_case

__all__ = ["Shape", "builtin_shape", "metadata_shape", "with_amounts"]


@final
class Shape:
    """The fields of a model by their JSON names.

    This is not an attrs class, because the fields of a recursive model must be added after the object is created.
    """

    __slots__ = ("any", "below", "lists", "maps", "names", "parts")

    def __init__(self) -> None:
        self.names: set[str] = set()
        """The names of all fields."""
        self.any: set[str] = set()
        """The names of the fields that may contain any JSON, including null."""
        self.below: set[str] = set()
        """The names of all fields in ``parts``, ``lists`` and ``maps``."""
        self.parts: dict[str, Shape] = {}
        """The fields that contain a model."""
        self.lists: dict[str, Shape] = {}
        """The fields that contain a list of models."""
        self.maps: dict[str, Shape] = {}
        """The fields that contain a map of models."""


_shapes: dict[type[Any], Shape] = {}


def _shape_of(cls: type[Any]) -> Shape:
    if cls in _shapes:
        return _shapes[cls]
    shape = _shapes[cls] = Shape()
    hints = typing.get_type_hints(cls, include_extras=True)
    json_names: Mapping[str, str] = cls._json_names
    for attribute in attrs.fields(cls):
        if attribute.name == "_origin":
            continue
        hint = without_none(hints[attribute.name])
        container, model = model_in(hint, Model)
        name = json_names.get(attribute.name) or attribute.metadata.get("json") or camel_case(attribute.name)
        shape.names.add(name)
        if hint in (JSON, without_none(JSON)):
            shape.any.add(name)
        if model is not None:
            shape.below.add(name)
            of_container = shape.parts if container is None else shape.lists if container is tuple else shape.maps
            of_container[name] = _shape_of(model)
    return shape


@functools.cache
def builtin_shape(api_version: str, kind: str) -> Shape | None:
    """Return the fields of a built-in kind, or None if there is no class for the kind."""
    try:
        return _shape_of(builtin_kind(api_version, kind))
    except LookupError:
        return None


def metadata_shape() -> Shape:
    """Return the fields of ``metadata``, which are the same for every kind."""
    return _shape_of(ObjectMeta)


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
