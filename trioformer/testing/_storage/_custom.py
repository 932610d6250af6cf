"""CustomResourceDefinitions: creating one serves its kinds, deleting it removes the kinds and their objects.

The objects of a kind are pruned, defaulted and validated by the schema of the version that they are written in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...models import ResourceInfo
from ._definitions import DEFINITIONS as DEFINITIONS
from ._definitions import definition_causes, deprecation_of
from ._kinds import Kinds, ServedKind
from ._schemas import parse_schema
from ._status import bad_request
from ._storage import JSONObject


@contextmanager
def _as_bad_request() -> Iterator[None]:
    """Refuse a definition that kube-apiserver could not decode, because a part of it has another type."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as exc:
        kind = "CustomResourceDefinition"
        raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {exc!r}') from exc


def causes_of(definition: JSONObject, old: JSONObject | None) -> list[JSONObject]:
    """Return what is wrong with a definition, after its defaults.

    Raises:
        APIStatusError: 400 when a part of it has another type.
    """
    with _as_bad_request():
        causes = definition_causes(definition, old)
        if not causes:
            list(_versions_of(definition))
    return causes


def _versions_of(definition: JSONObject) -> Iterator[tuple[ResourceInfo, JSONObject]]:
    """Yield each version of a definition's kind, and what the definition says of it."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
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
        yield info, version


def update_kinds(kinds: Kinds, definition: JSONObject) -> None:
    """Serve the versions that a definition marks as served, and remove the others."""
    for info, version in _versions_of(definition):
        if version.get("served"):
            schema = parse_schema(version["schema"]["openAPIV3Schema"])
            kinds.add(info, schema=schema, deprecation=deprecation_of(definition["spec"], version))
        else:
            kinds.remove(info)


def remove_kinds(kinds: Kinds, definition: JSONObject) -> list[ServedKind]:
    """Stop serving the kinds of a definition; returns the removed kinds."""
    removed = [kinds.find(info.group, info.version, info.plural) for info, _ in _versions_of(definition)]
    for info, _ in _versions_of(definition):
        kinds.remove(info)
    return [served for served in removed if served is not None]


def accepted_status(definition: JSONObject, now: str) -> JSONObject:
    """Build the status that kube-apiserver's controllers set on a definition that they accept.

    Raises:
        APIStatusError: 400 when a part of the definition has another type.
    """
    with _as_bad_request():
        spec = definition.get("spec") or {}
        stored = [one["name"] for one in spec.get("versions") or () if one.get("storage")]
        names = spec.get("names") or {}
    reasons = {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    messages = {"NamesAccepted": "no conflicts found", "Established": "the initial names have been accepted"}
    return {
        "acceptedNames": names,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": messages[kind]}
            for kind, reason in reasons.items()
        ],
        "storedVersions": stored,
    }
