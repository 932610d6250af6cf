"""CustomResourceDefinitions, and the kinds that they define.

When a definition is created, its kinds are served.  When a definition is deleted, its kinds and their objects are
removed.
Objects are pruned, defaulted and validated with the schema of the version that the writer uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...models import ResourceInfo
from ._definitions import DEFINITIONS as DEFINITIONS
from ._definitions import deprecation_of
from ._kinds import ConversionWebhook, Kinds, ServedKind
from ._schemas import parse_schema
from ._storage import JSONObject
from ._values import conditions_of


def _versions_of(definition: JSONObject) -> Iterator[tuple[ResourceInfo, JSONObject]]:
    """Yield each version of a definition's kind, together with the version's entry in the definition."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        subresources = version.get("subresources") or {}
        info = ResourceInfo(
            group=spec.get("group", ""),
            version=version.get("name", ""),
            kind=names["kind"],
            plural=names["plural"],
            singular=names["singular"],
            namespaced=spec.get("scope") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(sorted(subresources)),
        )
        yield info, version


def update_kinds(kinds: Kinds, definition: JSONObject) -> None:
    """Serve exactly the versions of a kind that are marked as served in its definition."""
    if not _is_established(definition):
        return
    served = {info.version for info, version in _versions_of(definition) if version.get("served")}
    for known in kinds:
        if known.resource == definition["metadata"]["name"] and known.info.version not in served:
            kinds.remove(known.info)
    stored = next((one["name"] for one in definition["spec"]["versions"] if one.get("storage")), "")
    schemas = {one["name"]: parse_schema(one["schema"]["openAPIV3Schema"]) for one in definition["spec"]["versions"]}
    conversion = definition["spec"].get("conversion") or {}
    webhook = None
    if conversion.get("strategy") == "Webhook":
        webhook = ConversionWebhook(conversion["webhook"]["clientConfig"], schemas)
    for info, version in _versions_of(definition):
        if info.version in served:
            selectable = tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ())
            added = ServedKind(
                info,
                schema=schemas[info.version],
                deprecation=deprecation_of(definition["spec"], version),
                selectable_fields=selectable,
                columns=tuple(version.get("additionalPrinterColumns") or ()),
                storage_version=stored,
                scale=(version.get("subresources") or {}).get("scale"),
                release=kinds.release,
                conversion_webhook=webhook,
            )
            kinds.add(added)


def remove_kinds(kinds: Kinds, definition: JSONObject) -> list[ServedKind]:
    """Stop serving the kinds of a definition, and return these kinds."""
    removed = [kinds.find(info.group, info.version, info.plural) for info, _ in _versions_of(definition)]
    for info, _ in _versions_of(definition):
        kinds.remove(info)
    return [served for served in removed if served is not None]


def accepted_status(definition: JSONObject, now: str, others: Iterable[JSONObject] = ()) -> JSONObject:
    """Return the status that kube-apiserver's controllers set on a new definition.

    Args:
        definition: The definition.
        now: The time of the conditions in the status.
        others: The other definitions.  If one of these definitions uses the same name in the same group, the new kind
            is not served.
    """
    spec = definition["spec"]
    stored = [one.get("name", "") for one in spec.get("versions") or () if one.get("storage")]
    names = spec.get("names") or {}
    conflict = _name_conflict(spec, others)
    if conflict is None:
        accepted = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        established = ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        reason, message = conflict
        accepted = ("NamesAccepted", "False", reason, message)
        established = ("Established", "False", "NotAccepted", "not all names are accepted")
    return {
        "acceptedNames": names if conflict is None else {"plural": "", "kind": ""},
        "conditions": [
            {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
            for kind, status, reason, message in (accepted, established)
        ],
        "storedVersions": stored,
    }


def changed_status(definition: JSONObject, status: JSONObject, *, is_written: bool = False) -> JSONObject:
    """Return the new status of a changed definition.

    The new status still lists the versions in which objects have been stored.

    Args:
        definition: The definition.
        status: The old status, or the status in the request if the request writes the status.
        is_written: Whether the request writes the status.
    """
    spec = definition["spec"]
    stored = list(status.get("storedVersions") or ())
    used = [one.get("name", "") for one in spec.get("versions") or () if one.get("storage")]
    stored += [name for name in used if name not in stored]
    accepted = {"acceptedNames": spec.get("names")} if _is_established({"status": status}) and not is_written else {}
    return {**status, **accepted, "storedVersions": stored}


def _is_established(definition: JSONObject) -> bool:
    return conditions_of(definition).get("Established") == "True"


def _name_conflict(spec: JSONObject, others: Iterable[JSONObject]) -> tuple[str, str] | None:
    """As kube-apiserver does, return the reason and the message for the last name that is already in use."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == spec.get("group"):
            taken = other["spec"]["names"]
            resources |= {taken["plural"], taken.get("singular", ""), *(taken.get("shortNames") or ())}
            kinds |= {taken["kind"], taken.get("listKind", "")}
    names = spec.get("names") or {}
    found = None
    for reason, wanted, used in (
        ("PluralConflict", [names.get("plural")], resources),
        ("SingularConflict", [names.get("singular")], resources),
        ("ShortNamesConflict", names.get("shortNames") or [], resources),
        ("KindConflict", [names.get("kind")], kinds),
        ("ListKindConflict", [names.get("listKind")], kinds),
    ):
        for name in wanted:
            if name and name in used:
                found = (reason, f'"{name}" is already in use')
    return found
