"""JSON as kubectl prints it: keys in order, four spaces, and ``<``, ``>`` and ``&`` as escapes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

__all__ = ["to_json"]

_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def to_json(value: object, *, indent: int | None = 4) -> str:
    """Return a value as Go's ``json.MarshalIndent`` writes it; without an indent, without any space."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(_numbers(value), indent=indent, separators=separators, sort_keys=True, ensure_ascii=False)
    return text.translate(_ESCAPES)


def _numbers(value: Any) -> Any:
    """Make whole numbers of floats, as Go writes them."""
    if isinstance(value, float):
        return int(Decimal(repr(value))) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: _numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return value
