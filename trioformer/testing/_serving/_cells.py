"""The cells of Tables in ``kubectl get``.

Source: kubernetes ``pkg/printers/internalversion``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from .._storage._storage import JSONObject

Cell: TypeAlias = str | int | float
CellOf: TypeAlias = Callable[[JSONObject, datetime], Cell]
"""A function that returns the cell of an object at the current time."""
NONE = "<none>"
UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400


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


def human_duration(seconds: float) -> str:
    """Format an age in the same way as apimachinery's ``HumanDuration``, for example as ``3s``, ``2m21s`` or ``5d``."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    for limit, unit, size, small, small_size in (
        (2 * _MINUTE, "s", 1, "", 1),
        (10 * _MINUTE, "m", _MINUTE, "s", 1),
        (3 * _HOUR, "m", _MINUTE, "", 1),
        (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
        (2 * _DAY, "h", _HOUR, "", 1),
        (8 * _DAY, "d", _DAY, "h", _HOUR),
        (2 * _YEAR, "d", _DAY, "", 1),
        (8 * _YEAR, "y", _YEAR, "d", _DAY),
    ):
        if total < limit:
            rest = total % size // small_size if small else 0
            return f"{max(total, 0) // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{total // _YEAR}y"


def since(text: object, now: datetime) -> str:
    try:
        then = datetime.fromisoformat(str(text))
    except ValueError:
        return UNKNOWN
    return human_duration((now - then.replace(tzinfo=then.tzinfo or UTC)).total_seconds())


def name_of(obj: JSONObject, _: datetime) -> Cell:
    return str(value_at(obj, "metadata", "name"))


def age_of(obj: JSONObject, now: datetime) -> Cell:
    return since(value_at(obj, "metadata", "creationTimestamp"), now)


def text_of(*path: str, default: str = NONE) -> CellOf:
    return lambda obj, _: str(value_at(obj, *path) or default)


def number_of(*path: str, default: Cell = 0) -> CellOf:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        value = value_at(obj, *path)
        return value if isinstance(value, int) else default

    return cell


def given_of(*path: str) -> CellOf:
    return lambda obj, _: "N/A" if (value := value_at(obj, *path)) is None else str(value)


def count_of(*path: str) -> Callable[[JSONObject, datetime], int]:
    def cell(obj: JSONObject, _: datetime) -> int:
        value = value_at(obj, *path)
        return len(value) if isinstance(value, dict | list) else 0

    return cell


def joined(*path: str, default: str = NONE) -> CellOf:
    return lambda obj, _: ",".join(map(str, value_at(obj, *path) or ())) or default


def names_of(field: str, *path: str) -> CellOf:
    """Return a function that joins a field of the objects in a list."""
    return lambda obj, _: ",".join(str(one.get(field) or "") for one in objects_at(obj, *path))


def labels_of(*path: str) -> CellOf:
    return lambda obj, _: ",".join(f"{key}={one}" for key, one in sorted((value_at(obj, *path) or {}).items())) or NONE


def selector_of(*path: str) -> CellOf:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        selector = value_at(obj, *path) or {}
        parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
        for one in selector.get("matchExpressions") or ():
            key, values = one["key"], ",".join(sorted(one.get("values") or ()))
            words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
            parts.append(words.get(one["operator"], f"!{key}"))
        return ",".join(parts) or NONE

    return cell


def flag_of(*path: str) -> CellOf:
    return lambda obj, _: "<unset>" if (value := value_at(obj, *path)) is None else str(bool(value))


def truth_of(*path: str, default: bool = False) -> CellOf:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        value = value_at(obj, *path)
        return default if value is None else bool(value)

    return cell


def elapsed_since(*path: str) -> CellOf:
    return lambda obj, now: since(found, now) if (found := value_at(obj, *path)) else NONE


def ready_replicas(obj: JSONObject, _: datetime) -> Cell:
    count = value_at(obj, "spec", "replicas")
    return f"{value_at(obj, 'status', 'readyReplicas') or 0}/{1 if count is None else count}"


def template_cells(*path: str) -> dict[str, CellOf]:
    containers = (*path, "spec", "containers")
    return {"Containers": names_of("name", *containers), "Images": names_of("image", *containers)}


def workload_cells(**cells: CellOf) -> dict[str, CellOf]:
    """Return the cells of a kind with a template of pods in its spec, besides the name and the age."""
    return cells | template_cells("spec", "template") | {"Selector": selector_of("spec", "selector")}


def limited(found: list[str], limit: int = 3, default: str = "<unset>", separator: str = ",") -> str:
    more = f" + {len(found) - limit} more..." if len(found) > limit else ""
    return separator.join(found[:limit]) + more or default


def reference_of(*path: str) -> CellOf:
    return lambda obj, _: f"{value_at(obj, *path, 'kind')}/{value_at(obj, *path, 'name')}"
