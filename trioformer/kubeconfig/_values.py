"""The values of a YAML document, which show nothing of their content: each may be a credential in the wrong place."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, final

from .._secret import Secret
from ._checks import CheckError


@final
class NumberKind(enum.Enum):
    """What a number is for Go."""

    INTEGER = "an integer"
    DECIMAL = "a number"


@final
class Number:
    """A number; only a cluster's extension for credential plugins has one that is used."""

    __slots__ = ("_digits", "kind")

    def __init__(self, kind: NumberKind, digits: str) -> None:
        self.kind = kind
        self._digits = digits

    def to_json(self) -> int | float:
        """Return the value that kubectl gives it: ``017`` is octal, and an integer of more than 64 bits a float64.

        Raises:
            CheckError: JSON does not have it.
        """
        digits = self._digits.lower()
        if digits.endswith(("inf", "nan")):
            raise CheckError("contains an infinite number or .nan, which JSON does not have")
        if self.kind is NumberKind.DECIMAL:
            return float(digits)
        sign, unsigned = ("-", digits[1:]) if digits[0] == "-" else ("", digits.lstrip("+"))
        base = _BASES.get(unsigned[:2])
        if base is None:
            unsigned = unsigned.lstrip("0") or "0"
            base = 8 if unsigned != digits.lstrip("+-") and set(unsigned) <= _OCTAL else 10
        value = int(f"{sign}{unsigned}", base)
        if -(1 << 63) <= value < 1 << 64:
            return value
        return float(f"{sign}{unsigned}")  # an octal number that overflows is a decimal one

    def __repr__(self) -> str:
        return f"<{self.kind.value}>"


@final
class Fields:
    """A mapping whose keys are strings; ``repr()`` shows only how many."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, RawValue] | None = None) -> None:
        self._fields: dict[str, RawValue] = {} if fields is None else fields

    def get(self, key: str) -> Value:
        """Return the value of a key; None if it is absent, as if it were null."""
        return _conceal(self._fields.get(key))

    def keys(self) -> list[str]:
        """Return the keys, which may be credentials in the wrong place."""
        return list(self._fields)

    def replace(self, fields: Mapping[str, RawValue]) -> Fields:
        """Return a copy with other values for some keys."""
        return Fields({**self._fields, **fields})

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


_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_OCTAL: Final = frozenset("01234567")

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
            return value.kind.value
        case Fields():
            return "a mapping"
        case Items():
            return "a list"
        case None:
            return "nothing"


def to_json(value: Value) -> object:
    """Return a value as Python's ``json`` would: dicts, lists, strings, numbers, booleans and None, not concealed.

    Raises:
        CheckError: JSON does not have a number in it.
    """
    match value:
        case Secret():
            return value.reveal()
        case Number():
            return value.to_json()
        case Fields():
            return {key: to_json(value.get(key)) for key in value.keys()}  # noqa: SIM118  # it is no dict
        case Items():
            return [to_json(item) for item in value]
        case _:
            return value
