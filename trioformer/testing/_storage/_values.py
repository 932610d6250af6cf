"""Values at paths in decoded JSON objects, which may have other types than expected."""

from __future__ import annotations

from typing import Any

from ._storage import JSONObject


def value_at(obj: object, *path: str) -> Any:
    """Return the value at a path in nested dicts, or None if the path does not exist."""
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def objects_at(obj: object, *path: str) -> list[JSONObject]:
    """Return the dicts in the list at a path in nested dicts."""
    found = value_at(obj, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def conditions_of(obj: object) -> dict[str, str]:
    """Return the status of each condition of an object, by the type of the condition."""
    return {one.get("type", ""): one.get("status", "") for one in objects_at(obj, "status", "conditions")}
