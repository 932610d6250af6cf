"""Errors for applied configurations that do not match the type of their kind, as in kube-apiserver v1.36.

Source: structured-merge-diff ``typed/validate.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._field_sets import element_text
from ._field_types import FieldType, ListType, MapType, Scalar
from ._go_formats import go_syntax, go_type, go_value
from ._typed_values import item_element


def problems(of: FieldType, value: object, path: str = "") -> Iterator[str]:
    """Yield the reasons why an applied value does not match its type, with the paths of the fields."""
    of = of.of(value)
    if value is None:
        return
    if of.map is not None:
        if isinstance(value, dict):
            yield from _map_problems(of.map, value, path)
        else:
            yield f"{path}: expected map, got {go_value(value)}"
    elif of.scalar is not None:
        expected = _SCALARS[of.scalar]
        if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
            yield f"{path}: expected {_scalar_problem(of.scalar, value)}"
    elif of.items is not None:
        if isinstance(value, list):
            yield from _list_problems(of.items, value, path)
        else:
            yield f"{path}: expected list, got {go_value(value)}"


_SCALARS = {"string": (str,), "numeric": (int, float), "boolean": (bool,), "untyped": (str, int, float, bool)}


def _scalar_problem(expected: Scalar, value: object) -> str:
    """Return the last part of an error message. Its Go format depends on the type of the value."""
    match expected:
        case "numeric":
            return f"numeric (int or float), got {go_type(value)}"
        case "string":
            return f"string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
        case "boolean":
            return f"boolean, got {go_value(value)}"
        case _:
            return f"any scalar, got {go_value(value)}"


def _map_problems(of: MapType, value: dict[str, Any], path: str) -> Iterator[str]:
    for name, member in value.items():
        if name not in of.fields and of.element is None:
            yield f"{path}.{name}: field not declared in schema"
        else:
            yield from problems(of.member(name), member, f"{path}.{name}")


def _list_problems(of: ListType, value: list[Any], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if not of.is_atomic:
            try:
                element = item_element(of, item)
            except ValueError as exc:
                yield f"{path}: element {index}: {exc}"
                return
            if element in seen:
                yield f"{path}: duplicate entries for key {element_text(element)}"
            seen.add(element)
        yield from problems(of.item, item, path + element_text(element))
