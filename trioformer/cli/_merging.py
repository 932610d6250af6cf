"""What an object becomes when a changed manifest is applied to it: kubectl's three-way merge.

Three states decide: the manifest that was applied last, which an annotation of the object has, the manifest now, and
the object as it is.  What the manifest has is set, what it had and has not any more is removed, and the rest, which the
server and other programs have set, stays.

kubectl sends a patch that the server merges.  Here the result is made, and its difference to the object that was read
is sent, with the version of that object.  Both write the same; but lists in which two items have the same key are not
mixed up here, such as the ports of a Service for TCP and UDP.

Source: apimachinery ``pkg/util/strategicpatch`` for built-in kinds, ``pkg/util/jsonmergepatch`` for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..testing._internal import DEDUCED, MISSING, FieldType, ListType, builtin_type, named_type
from .printing import to_json

__all__ = ["LAST_APPLIED", "annotated", "merge_manifest", "with_annotation", "without_nulls"]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation that has the manifest that was applied last."""

_RETAINED: Final = (
    ("apps.v1.DeploymentSpec", ("strategy",)),
    ("core.v1.PodSpec", ("resourceClaims", "volumes")),
)
"""Fields whose objects have no other members than the manifest has: what the server has added depends on a type that
may change (``patchStrategy:"retainKeys"`` in the Go types)."""

_REPLACED: Final = (("policy.v1.PodDisruptionBudgetSpec", ("selector",)),)
"""Fields whose objects are replaced as a whole (``patchStrategy:"replace"``)."""


def annotated(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the annotation that has it, to the letter as kubectl writes it."""
    text = to_json(with_annotation(manifest, None), indent=None) + "\n"
    return with_annotation(manifest, text)


def with_annotation(manifest: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return a manifest with an annotation of this text, or without one; it has a mapping of annotations anyhow."""
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), LAST_APPLIED: text}
    if text is None:
        del annotations[LAST_APPLIED]
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def merge_manifest(last: Mapping[str, Any], wanted: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an object becomes.

    Args:
        last: The manifest that was applied last; empty if that is not known.
        wanted: The manifest.
        live: The object as the server has it.
    """
    kind = builtin_type(str(live.get("apiVersion")), str(live.get("kind"))) or DEDUCED
    return _merge_maps(kind, last, wanted, live)


def without_nulls(value: Any) -> Any:
    """Return a value without the members that are null, which mean that the field is not set."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def _merge_maps(
    of: FieldType, last: Mapping[str, Any], wanted: Mapping[str, Any], live: Mapping[str, Any]
) -> dict[str, Any]:
    merged = {key: value for key, value in live.items() if key in wanted or key not in last}
    for key, value in wanted.items():
        if value is None:
            merged.pop(key, None)
        else:
            member = DEDUCED if of.map is None else of.map.member(key)
            found = None if _is_one_of(_REPLACED, of, key) else merged.get(key)
            merged[key] = _merge(member, last.get(key), value, found, retains=_is_one_of(_RETAINED, of, key))
    return merged


def _is_one_of(fields: tuple[tuple[str, tuple[str, ...]], ...], of: FieldType, key: str) -> bool:
    return any(key in names and of is named_type(struct) for struct, names in fields)


def _merge(of: FieldType, last: Any, wanted: Any, live: Any, *, retains: bool) -> Any:
    if isinstance(wanted, dict) and isinstance(live, dict):
        if retains:
            live = _retained(wanted, live)
        return _merge_maps(of, last if isinstance(last, dict) else {}, wanted, live)
    if isinstance(wanted, list) and isinstance(live, list) and of.items is not None:
        return _merge_lists(of.items, last if isinstance(last, list) else [], wanted, live, retains=retains)
    return without_nulls(wanted)


def _retained(wanted: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """Return only those members that the manifest has, unless it has none."""
    kept = without_nulls(wanted)
    return {key: value for key, value in live.items() if key in kept} if kept else live


# --- lists ------------------------------------------------------------------------------------------------------------


def _merge_lists(of: ListType, last: list[Any], wanted: list[Any], live: list[Any], *, retains: bool) -> list[Any]:
    identify = _identity_in(of, wanted, live)
    if identify is None:
        return [without_nulls(item) for item in wanted]
    of_last = {identify(item): item for item in last}
    of_wanted = {identify(item): item for item in wanted}
    of_live = {identify(item): item for item in live}
    merged = {key: item for key, item in of_live.items() if key in of_wanted or key not in of_last}
    for key, item in of_wanted.items():
        if key not in merged or not isinstance(item, dict):
            merged[key] = without_nulls(item)
        else:
            found = _retained(item, merged[key]) if retains else merged[key]
            before = of_last.get(key)
            merged[key] = _merge_maps(of.item, before if isinstance(before, dict) else {}, item, found)
    return [merged[key] for key in _ordered(list(merged), list(of_wanted), list(of_live))]


def _identity_in(of: ListType, wanted: list[Any], live: list[Any]) -> Callable[[Any], str | None] | None:
    """Return what tells the items of a list from each other; None for a list that is replaced as a whole."""
    if of.patch_key is None:
        return None
    if of.patch_key == "":
        return to_json
    for keys in ((of.patch_key,), of.keys):

        def identify(item: Any, keys: tuple[str, ...] = keys) -> str | None:
            if not isinstance(item, dict):
                return None
            values = [item.get(key, _default_of(of, key)) for key in keys]
            return None if None in values else to_json(values)

        if keys and all(_has_distinct(identify, items) for items in (wanted, live)):
            return identify
    return None


def _has_distinct(identify: Callable[[Any], str | None], items: list[Any]) -> bool:
    found = [identify(item) for item in items]
    return None not in found and len(set(found)) == len(found)


def _default_of(of: ListType, key: str) -> Any:
    """Return what the server has for a key that an item does not have; None without a default."""
    field = None if of.item.map is None else of.item.map.fields.get(key)
    return None if field is None or field.default is MISSING else field.default


def _ordered(keys: list[Any], wanted: list[Any], live: list[Any]) -> list[Any]:
    """Return items in the order of the manifest, and the others near their neighbours, as the server does."""
    places = {key: index for index, key in enumerate(wanted)}
    live_places = {key: index for index, key in enumerate(live)}
    mine = sorted((key for key in keys if key in places), key=places.__getitem__)
    result: list[Any] = []
    index = 0
    for key in keys:
        if key in places:
            continue
        while index < len(mine) and not live_places[key] < live_places.get(mine[index], -1):
            result.append(mine[index])
            index += 1
        result.append(key)
    return result + mine[index:]
