"""The values of a YAML document, which show nothing of their content: each may be a credential in the wrong place."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TypeAlias, final

from .._secret import Secret


@final
class Number(enum.Enum):
    """A number; a kubeconfig has none that is used, so its value is not kept."""

    INTEGER = "an integer"
    DECIMAL = "a number"


@final
class Fields:
    """A mapping whose keys are strings; ``repr()`` shows only how many."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, RawValue] | None = None) -> None:
        self._fields: dict[str, RawValue] = {} if fields is None else fields

    def get(self, key: str) -> Value:
        """Return the value of a key; None if it is absent, as if it were null."""
        return _conceal(self._fields.get(key))

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<{len(self)} fields>"


@final
class Items:
    """A list; ``repr()`` shows only how long it is."""

    __slots__ = ("_items",)

    def __init__(self, items: list[RawValue]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Value]:
        return map(_conceal, self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{len(self)} items>"


Value: TypeAlias = Secret[str] | bool | Number | Fields | Items | None
RawValue: TypeAlias = str | bool | Number | Fields | Items | None
"""A value inside of a collection, which conceals it; concealing each when it is read takes a third longer."""


def _conceal(value: RawValue) -> Value:
    return Secret(value) if isinstance(value, str) else value


def kind_of(value: Value) -> str:
    """Return the name of a value's type; never the value, which may be a secret."""
    match value:
        case Secret():
            return "a string"
        case bool():
            return "a boolean"
        case Number():
            return value.value
        case Fields():
            return "a mapping"
        case Items():
            return "a list"
        case None:
            return "nothing"
