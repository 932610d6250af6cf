"""The JSON patch (RFC 6902) of a mutation, computed on raw JSON.

Members whose bytes have not changed are not decoded, and values in the patch are slices of the new JSON.  So the patch
never changes members that the class does not have, or numbers that Python cannot represent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from ..models._internal import Raw, canonical, list_items, map_items

Operation: TypeAlias = dict[str, Any]


def json_patch(old: bytes | Raw, new: bytes | Raw, path: str = "") -> Iterator[Operation]:
    """Yield the operations that change one JSON value into another.

    ``path`` is the JSON pointer of the value.

    Raises:
        ValueError: A value is not valid JSON.
        RecursionError: A value has too many levels.
    """
    before, after = bytes(old), bytes(new)
    if before == after:
        return
    if before[:1] == after[:1] == b"{":
        yield from _between_maps(map_items(old), map_items(new), path)
    elif before[:1] == after[:1] == b"[":
        yield from _between_lists(list_items(old), list_items(new), path)
    elif canonical(before) != canonical(after):
        yield {"op": "replace", "path": path, "value": new}


def _between_maps(old: dict[str, Raw], new: dict[str, Raw], path: str) -> Iterator[Operation]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in new.items():
        place = f"{path}/{_escaped(key)}"
        if key in old:
            yield from json_patch(old[key], value, place)
        else:
            yield {"op": "add", "path": place, "value": value}


def _between_lists(old: list[Raw], new: list[Raw], path: str) -> Iterator[Operation]:
    """Yield the operations between two lists.  Equal items at both ends stay, so an inserted item is one operation."""
    before, after = ([canonical(each) for each in items] for items in (old, new))
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    left = shorter - start
    end = next((i for i in range(left) if before[-1 - i] != after[-1 - i]), left)
    last_old, last_new = len(old) - end, len(new) - end
    both = min(last_old, last_new)
    for index in range(start, both):
        yield from json_patch(old[index], new[index], f"{path}/{index}")
    for index in reversed(range(both, last_old)):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(both, last_new):
        yield {"op": "add", "path": f"{path}/{index}", "value": new[index]}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
