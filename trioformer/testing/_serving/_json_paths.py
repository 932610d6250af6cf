"""The JSONPaths of the columns in CustomResourceDefinitions.

The parser supports fields, list indexes, slices, wildcards, recursive descent, and filters.

Source: client-go ``util/jsonpath``.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

Step: TypeAlias = Callable[[Any], Iterable[Any]]
"""A function that returns the values to which one step of a path leads from a value.

It raises ``LookupError`` or ``TypeError`` if the value has the wrong type.
"""

_STEP: Final = re.compile(
    r"""\.\.(?P<deep>(?:\\.|[^.\[\]])+) | \.?\*(?P<all>) | \.(?P<field>(?:\\.|[^.\[\]\\*])+)
    | \['(?P<quoted>(?:\\.|[^'\\])*)'\] | \[\*\](?P<items>) | \[(?P<index>-?\d+)\]
    | \[(?P<slice>-?\d*:-?\d*(?::-?\d*)?)\]
    | \[\?\(@(?P<left>[^=!<>()]*?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<right>[^()]+))?\)\]""",
    re.VERBOSE,
)
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@functools.lru_cache(256)
def parse_path(text: str) -> tuple[Step, ...] | None:
    """Parse a JSONPath such as ``.spec.replicas``.  Return None if the path is not supported."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            return None
        steps.append(_step_of(found))
        position = found.end()
    return tuple(steps)


def find_all(value: Any, path: tuple[Step, ...]) -> list[Any]:
    """Return the values at a path.  The list is empty if the path does not exist."""
    try:
        found = [value]
        for step in path:
            found = [below for one in found for below in step(one)]
    except (LookupError, TypeError):
        return []
    return found


def _step_of(found: re.Match[str]) -> Step:
    name = found.lastgroup
    if found["left"] is not None:
        return functools.partial(_filtered, path=parse_path(found["left"]), op=found["op"], right=found["right"])
    text = found[name or ""]
    match name:
        case "deep":
            return functools.partial(_deep, name=_unescaped(text))
        case "field" | "quoted":
            return functools.partial(_field, name=_unescaped(text))
        case "index":
            return lambda value: iter([_list(value)[int(text)]])
        case "slice":
            part = slice(*(int(one) if one else None for one in text.split(":")))
            return lambda value: iter(_list(value)[part])
        case _:
            return lambda value: iter(value.values() if isinstance(value, dict) else _list(value))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} is not a list")
    return value


def _field(value: Any, name: str) -> Iterable[Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} is not an object")
    return (value[name],) if name in value else ()


def _deep(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for key in sorted(value):
            yield from _deep(value[key], name)
    elif isinstance(value, list):
        for item in value:
            yield from _deep(item, name)


def _filtered(value: Any, path: tuple[Step, ...] | None, op: str | None, right: str | None) -> Iterator[Any]:
    for item in _list(value):
        found = [] if path is None else find_all(item, path)
        if not found:
            continue
        if op is None or right is None:
            yield item
            continue
        left = found[0]
        wanted = json.loads(f'"{right[1:-1]}"') if right[:1] in "'\"" else json.loads(right)
        if type(left) is type(wanted) and _OPERATORS[op](left, wanted):
            yield item
