"""The parts of an object that can be written through subresources of the same kind.

Source: kubernetes ``pkg/registry/core/pod/strategy.go``, ``pkg/apis/core/validation`` and
``pkg/registry/certificates/certificates/strategy.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ._custom import DEFINITIONS, changed_status
from ._field_errors import duplicate, forbidden, required
from ._kinds import ServedKind
from ._metadata import check_metadata_change, json_equal, ordered, with_server_fields
from ._namespaces import labelled
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


def merged(
    part: Part, served: ServedKind, old: JSONObject, new: JSONObject, given: JSONObject, *, is_applied: bool
) -> JSONObject:
    """Return the old object with this part and the metadata taken from the new object, without kind and apiVersion.

    Raises:
        APIStatusError: The change is not allowed (422).
    """
    name, old_metadata = old["metadata"]["name"], old["metadata"]
    if served.is_builtin or part != "status":  # kube-apiserver ignores other metadata of a custom object's status
        check_metadata_change(served, old_metadata, given)
    metadata = with_server_fields(given, old_metadata)
    rest = {key: value for key, value in new.items() if key not in ("kind", "apiVersion", "metadata")}
    if part in PARTS:
        metadata = changed_metadata(part, served, old_metadata, metadata)
        rest = changed_part(part, served, name, old, new)
    elif part == "main" and served.has_status:
        rest["status"] = old.get("status")
        if served.is_namespace:
            rest["spec"] = old.get("spec")
    if served.resource == DEFINITIONS and part != "whole":
        rest["status"] = changed_status(rest, rest.get("status") or {}, is_written=part == "status")
    if rest.get("status", ...) is None and not (is_applied and _may_check_null_status(served, part, old, new)):
        del rest["status"]
    return {"metadata": labelled(metadata) if served.is_namespace else metadata, **rest}


def _may_check_null_status(served: ServedKind, part: Part, old: JSONObject, new: JSONObject) -> bool:
    """Return whether a null status in an applied custom object is validated rather than treated as missing."""
    has_schema = served.schema is not None and "status" in served.schema.properties
    return has_schema and part == "status" and "status" in old and "status" in new


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
