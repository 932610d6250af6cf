"""Objects as paths and values, so that two states can be compared field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_IDENTIFYING: Final = ("type", "name", "key", "topologyKey", "ip", "port")
"""The fields that identify an object in a list."""
_SERVER: Final = ("metadata.managedFields", "metadata.resourceVersion", "metadata.generation")
"""The fields that change with every write."""


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the path and the value of each field that is not an object or a list.

    Elements of lists are named after their content where possible, so that another order is no difference.
    """
    if isinstance(value, dict) and value:
        for name in sorted(value):
            yield from flatten(value[name], f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for index, one in enumerate(value):
            yield from flatten(one, f"{path}[{_name_of(one, index)}]")
    else:
        yield path, value if not isinstance(value, dict | list) else ""


def _name_of(one: object, index: int) -> object:
    if isinstance(one, dict):
        return next((one[name] for name in _IDENTIFYING if name in one), index)
    return index if isinstance(one, list) else one


def changed_paths(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    """Return the paths whose values differ, except for those that the server changes with each write."""
    before, after = dict(flatten(old)), dict(flatten(new))
    return {path for path in {*before, *after} if before.get(path) != after.get(path) and not path.startswith(_SERVER)}
