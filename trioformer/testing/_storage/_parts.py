"""The parts of an object that can be written through subresources of the same kind.

Source: kubernetes ``pkg/registry/core/pod/strategy.go``, ``pkg/apis/core/validation`` and
``pkg/registry/certificates/certificates/strategy.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ._field_errors import duplicate, forbidden, required
from ._kinds import ServedKind
from ._metadata import json_equal, ordered
from ._status import invalid
from ._storage import JSONObject
from ._values import objects_at

Part: TypeAlias = Literal["main", "status", "whole", "approval", "binding", "ephemeralcontainers", "finalize", "resize"]
"""The part of an object that a write may change.  It is everything except the status, only the status, both (in the
direct API of :class:`APIServer`, or to bind a pod), or the fields of the subresource with this name."""

_SUBRESOURCES: Final[tuple[Part, ...]] = ("status", "approval", "ephemeralcontainers", "finalize", "resize")
PARTS: Final[Mapping[str, Part]] = {part: part for part in _SUBRESOURCES}
"""The parts that are subresources, by their name."""

_EPHEMERAL: Final = "spec.ephemeralContainers"


def changed_metadata(part: Part, served: ServedKind, old: JSONObject, new: JSONObject) -> JSONObject:
    """Return the metadata after a write of a part.  Some subresources can also change the metadata."""
    kept = served.kept_in_status if part == "status" else ""
    if part in ("ephemeralcontainers", "resize") or kept == "metadata":
        return old
    return ordered({**new, kept: old.get(kept)}) if kept else new


def changed_part(part: Part, served: ServedKind, name: str, old: JSONObject, new: JSONObject) -> JSONObject:
    """Return the old object without kind and metadata, and with this part taken from the new object.

    Raises:
        APIStatusError: The change is not allowed (422).
    """
    kept = {key: value for key, value in old.items() if key not in ("kind", "apiVersion", "metadata")}
    match part:
        case "status":
            return {**kept, "status": new.get("status")}
        case "finalize":
            return {**kept, "spec": {key: value for key, value in (new.get("spec") or {}).items() if value}}
        case "approval":
            status = {**(old.get("status") or {}), "conditions": (new.get("status") or {}).get("conditions")}
            return {**kept, "status": {key: value for key, value in status.items() if value is not None}}
        case "ephemeralcontainers":
            return {**kept, "spec": _with_ephemeral_containers(served, name, old["spec"], new.get("spec") or {})}
        case _:  # resize: the other parts are not parts of an object
            spec = dict(old["spec"])
            for field in ("containers", "initContainers"):
                if field in spec:
                    spec[field] = _resized(_items(spec, field), _items(new.get("spec"), field))
            return {**kept, "spec": spec}


def _items(obj: object, field: str) -> list[JSONObject]:
    """Return the objects in a list.  Objects whose name is not a string, which Go clients never send, are skipped."""
    return [one for one in objects_at(obj, field) if isinstance(one.get("name"), str | None)]


def _with_ephemeral_containers(served: ServedKind, name: str, old: JSONObject, new: JSONObject) -> JSONObject:
    """Return the old spec with the new ephemeral containers.

    Existing ephemeral containers may not be changed or removed.
    """
    before = {one.get("name"): one for one in _items(old, "ephemeralContainers")}
    after = _items(new, "ephemeralContainers")
    taken = {one.get("name") for field in ("containers", "initContainers") for one in _items(old, field)}
    causes = []
    for index, one in enumerate(after):
        where = f"{_EPHEMERAL}[{index}]"
        if not one.get("name"):
            causes.append(required(f"{where}.name"))
        elif one["name"] in taken:
            causes.append(duplicate(f"{where}.name", one["name"]))
        if not one.get("image"):
            causes.append(required(f"{where}.image"))
        taken.add(one.get("name"))
    names = {one.get("name") for one in after}
    for existing in before:
        problem = f'existing ephemeral containers "{existing}" may not be'
        if existing not in names:
            causes.append(forbidden(_EPHEMERAL, f"{problem} removed\n"))
        elif not json_equal(next(one for one in after if one.get("name") == existing), before[existing]):
            causes.append(forbidden(_EPHEMERAL, f"{problem} changed\n"))
    if causes:
        raise invalid(served.info.group, served.info.kind, name, causes)
    return {**old, "ephemeralContainers": after} if after else old


def _resized(old: list[JSONObject], new: list[JSONObject]) -> list[JSONObject]:
    """Return the old containers with the resources of the new containers with the same names."""
    wanted: dict[str | None, JSONObject] = {one.get("name"): one for one in new}
    resized = []
    for one in old:
        found = wanted.get(one.get("name"), one)
        kept: JSONObject = {key: found[key] for key in ("resources", "resizePolicy") if key in found}
        resized.append({**one, **kept})
    return resized
