"""``--sort-by`` (kubectl ``pkg/cmd/get/sorter.go``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import DecodeError
from ...models import Quantity
from .._failures import CommandError
from ..printing import JSONPath, JSONPathError, relaxed_path

__all__ = ["sort_by"]

T = TypeVar("T")


def sort_by(values: Sequence[T], path: str, object_of: Callable[[T], Mapping[str, Any]]) -> list[T]:
    """Return values in the order of a field of their objects; those without it are first.

    Raises:
        CommandError: The path is not valid, or no object has the field.
    """
    try:
        template = relaxed_path(path)
        parsed = JSONPath(template)
        keyed = [(_first(parsed.find(object_of(each))), each) for each in values]
    except JSONPathError as exc:
        raise CommandError(str(exc)) from exc
    if keyed and all(key is None for key, _ in keyed):
        raise CommandError(f'couldn\'t find any field with path "{template}" in the list of objects')
    order = functools.cmp_to_key(_compare)
    return [each for _, each in sorted(keyed, key=lambda one: order(one[0]))]


def _first(results: list[list[Any]]) -> Any:
    return results[0][0] if results and results[0] else None


def _order_of_amounts(left: str, right: str) -> int | None:
    try:
        amounts = Quantity(left), Quantity(right)
        return int(amounts[0] > amounts[1]) - int(amounts[0] < amounts[1])
    except (ValueError, DecodeError):
        return None


def _compare(left: Any, right: Any) -> int:
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, str) and isinstance(right, str):
        order = _order_of_amounts(left, right)
        if order is not None:
            return order
    elif isinstance(left, list | Mapping) or type(left) is not type(right):
        return 0
    return int(left > right) - int(left < right)
