"""CustomResourceDefinitions: creating one serves its kinds, deleting it removes the kinds and their objects.

The schema is ignored: objects of custom kinds are stored as received.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...models import ResourceInfo
from ._kinds import Kinds, ServedKind
from ._status import cause, invalid
from ._storage import JSONObject

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def check(definition: JSONObject) -> None:
    """Check that a definition is well-formed.

    Raises:
        APIStatusError: 422 when it is not.
    """
    name = definition["metadata"].get("name", "")
    try:
        for info, _ in infos_of(definition):
            if name != f"{info.plural}.{info.group}":  # a kind without a group could replace a built-in one
                raise ValueError(f"the name must be {info.plural}.{info.group}")  # noqa: TRY301  # one way to refuse
        accepted_status(definition, "")
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        wrong = cause("FieldValueInvalid", f"Invalid value: {exc!r}", "spec")
        raise invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, [wrong]) from exc


def infos_of(definition: JSONObject) -> Iterator[tuple[ResourceInfo, bool]]:
    """Yield each version of a definition's kind and whether it is served; nothing when the definition names no kind."""
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


def update_kinds(kinds: Kinds, definition: JSONObject) -> None:
    """Serve the versions that a definition marks as served, and remove the others."""
    for info, is_served in infos_of(definition):
        if is_served:
            kinds.add(info)
        else:
            kinds.remove(info)


def remove_kinds(kinds: Kinds, definition: JSONObject) -> list[ServedKind]:
    """Stop serving the kinds of a definition; returns the removed kinds."""
    removed = [kinds.find(info.group, info.version, info.plural) for info, _ in infos_of(definition)]
    for info, _ in infos_of(definition):
        kinds.remove(info)
    return [served for served in removed if served is not None]


def accepted_status(definition: JSONObject, now: str) -> JSONObject:
    """Build the status that kube-apiserver's controllers set on a definition that they accept."""
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
