"""The repr of models, which never raises an exception and is fast even for large objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Final, Protocol

from ..errors import DecodeError
from ._values import FrozenMap

__all__ = ["show"]

_LONGEST: Final = 60
"""The maximum length of a field's text."""
_LONGEST_PROBLEM: Final = 200
_MAX_LEVELS: Final = 4
_MAX_ITEMS: Final = 30
"""The maximum number of items in a field's text; more items would not fit."""
_LEVEL: Final[ContextVar[int]] = ContextVar("trioformer.models.repr_level", default=0)


class _Field(Protocol):
    name: str
    default: Any


def show(model: object, fields: Iterable[_Field]) -> str:
    """Return the class name and the truncated values of all fields that differ from their defaults.

    An undecodable field is shown as its error.

    Args:
        model: The model to show.
        fields: The fields of the model, without deferred ones.
    """
    level = _LEVEL.get()
    name = type(model).__name__
    if level == _MAX_LEVELS:
        return f"{name}(…)"
    token = _LEVEL.set(level + 1)
    try:
        return f"{name}({', '.join(_members(model, fields))})"
    finally:
        _LEVEL.reset(token)


def _members(model: object, fields: Iterable[_Field]) -> Iterator[str]:
    for field in fields:
        try:
            value = getattr(model, field.name)
            if value != field.default:
                yield f"{field.name}={_cut(repr(_beginning(value)), _LONGEST)}"
        except DecodeError as error:
            yield f"{field.name}=<{_cut(str(error), _LONGEST_PROBLEM)}>"


def _beginning(value: Any) -> Any:
    if type(value) is tuple and len(value) > _MAX_ITEMS:
        return value[:_MAX_ITEMS]
    if type(value) is FrozenMap and len(value) > _MAX_ITEMS:
        return dict(itertools.islice(value.items(), _MAX_ITEMS))
    return value


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
