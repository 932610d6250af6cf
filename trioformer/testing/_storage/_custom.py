"""CustomResourceDefinitions: creating one serves its kinds, deleting it takes them away with their objects.

The schema is not looked at: objects of custom kinds are kept as they come.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...models import ResourceInfo
from ._kinds import Kinds, Served
from ._status import cause, invalid
from ._storage import JSONObject

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def check(definition: JSONObject) -> None:
    """Make sure that a definition can be read.

    Raises:
        RefusedError: 422: it cannot.
    """
    try:
        tuple(infos_of(definition))
        established(definition, "")
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        name = definition["metadata"].get("name", "")
        wrong = cause("FieldValueInvalid", f"Invalid value: {exc!r}", "spec")
        raise invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, [wrong]) from exc


def infos_of(definition: JSONObject) -> Iterator[tuple[ResourceInfo, bool]]:
    """Read the kinds of a definition, each with whether it is served; a definition that names none has none."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    if not (isinstance(names, dict) and names.get("plural") and names.get("kind")):
        return
    for version in spec.get("versions") or ():
        subresources = version.get("subresources") or {}
        info = ResourceInfo(
            group=spec.get("group", ""),
            version=version.get("name", ""),
            kind=names["kind"],
            plural=names["plural"],
            namespaced=spec.get("scope") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(sorted(subresources)),
        )
        yield info, bool(version.get("served", True))


def serve(kinds: Kinds, definition: JSONObject) -> None:
    """Serve what a definition says, and no longer what it says no longer."""
    for info, is_served in infos_of(definition):
        if is_served:
            kinds.add(info)
        else:
            kinds.remove(info)


def retire(kinds: Kinds, definition: JSONObject) -> list[Served]:
    """Serve the kinds of a definition no longer; returns what they were."""
    retired = [kinds.find(info.group, info.version, info.plural) for info, _ in infos_of(definition)]
    for info, _ in infos_of(definition):
        kinds.remove(info)
    return [served for served in retired if served is not None]


def established(definition: JSONObject, now: str) -> JSONObject:
    """Build the status that the real server's controllers give a definition that they accept."""
    spec = definition.get("spec") or {}
    reasons = {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    messages = {"NamesAccepted": "no conflicts found", "Established": "the initial names have been accepted"}
    return {
        "acceptedNames": spec.get("names") or {},
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": messages[kind]}
            for kind, reason in reasons.items()
        ],
        "storedVersions": [one["name"] for one in spec.get("versions") or () if one.get("storage")],
    }
