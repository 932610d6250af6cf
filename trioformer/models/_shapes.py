"""The JSON names of a model's fields, for code that handles objects as JSON and knows only their kind."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import attrs

from ._hints import without_none
from ._kinds import builtin_kind
from ._lazy import Model
from ._meta import ObjectMeta
from ._parts import model_in
from ._values import JSON, camel_case

__all__ = ["Shape", "builtin_shape", "metadata_shape"]

Shape: TypeAlias = Mapping[str, "tuple[type[Any] | None, type[Model] | None, bool]"]
"""For each JSON name: the container (``tuple``, ``Mapping`` or None), the model in it, and whether it is any JSON."""


def shape_of(cls: type[Model]) -> Shape:
    """Return the JSON names of a model's fields, and what is in them."""
    return _shape_of(cls)


def _make_shape(cls: type[Model]) -> Shape:
    hints = typing.get_type_hints(cls, include_extras=True)
    names = cls._json_names
    members = {}
    for attribute in attrs.fields(cls):
        if attribute.name == "_origin":
            continue
        hint = without_none(hints[attribute.name])
        container, model = model_in(hint, Model)
        name = names.get(attribute.name) or attribute.metadata.get("json") or camel_case(attribute.name)
        members[name] = container, model, _has_json(hint)
    return members


# mypy takes the hash of a model's class for that of its objects, which cannot be hashed.
_shape_of = cast("Callable[[type[Any]], Shape]", functools.cache(_make_shape))


def _has_json(hint: Any) -> bool:
    return hint in (JSON, Any, object) or hint == without_none(JSON)


def builtin_shape(api_version: str, kind: str) -> Shape | None:
    """Return the fields of a built-in kind, or None if it has no class."""
    try:
        return shape_of(cast("type[Model]", builtin_kind(api_version, kind)))
    except LookupError:
        return None


def metadata_shape() -> Shape:
    """Return the fields of the metadata of every object."""
    return shape_of(ObjectMeta)
