"""Convert JSON defaults to Python expressions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ._source import Call, Expression, called, literal
from ._types import Schema, Type, Uses

__all__ = ["default_of", "empty_default"]


def empty_default(schema: Schema, found: Type, uses: Uses) -> Expression | None:
    """Return the default of an optional field, which is empty for a list or map and None for all other types."""
    if found.is_class or schema.get("x-kubernetes-int-or-string"):
        return None
    if schema.get("type") == "array":
        return "()"
    return f"{uses.use('trioformer.models', 'FrozenMap')}()" if schema.get("type") == "object" else None


def default_of(schema: Schema, found: Type, uses: Uses, *, can_be_made: bool) -> Expression | None:
    """Return the Python expression for a schema's default, or None if there is no simple expression.

    Args:
        schema: A schema that has a default.
        found: The Python type for the schema.
        uses: The imports of the module, to which the names in the expression are added.
        can_be_made: Whether the type is a class that can be called without arguments.
    """
    value: Any = schema["default"]
    if value is None:
        return None
    if found.is_class:
        return called(str(found.hint)) if value == {} and can_be_made else None
    if value in ([], {}):
        return empty_default(schema, found, uses)
    if found.hint == "Quantity":
        return called("Quantity", literal(str(value)))
    if found.hint == "bytes":
        return _bytes(value)
    if not found.is_literal:
        return None
    made = literal(value)
    return called(uses.use("trioformer.models", "FrozenMap"), made) if isinstance(value, Mapping) else made


def _bytes(value: object) -> Expression | None:
    try:
        return repr(base64.b64decode(str(value), validate=True)).replace("'", '"')
    except binascii.Error:
        return None


def is_empty(expression: Expression | None) -> bool:
    """Return whether a default is an empty list, map or object, which trioformer.crds omits from schemas by default."""
    return expression in ("()", "FrozenMap()") or (isinstance(expression, Call) and not expression.items)
