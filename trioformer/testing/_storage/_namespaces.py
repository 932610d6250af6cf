"""The rules for namespaces: their label, the names that every cluster has, and the end of their deletion."""

from __future__ import annotations

from typing import Final

from ._kinds import Kinds, ServedKind
from ._metadata import ordered
from ._storage import JSONObject, Storage

SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
PROTECTED_NAMESPACES: Final = ("default", "kube-public", "kube-system")
"""The namespaces that cannot be deleted."""


def labelled(metadata: JSONObject) -> JSONObject:
    """Return the metadata of a namespace with the label for its name."""
    return ordered(
        {**metadata, "labels": {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata["name"]}}
    )


def namespaced(kinds: Kinds) -> list[ServedKind]:
    """Return one version of each namespaced kind."""
    return list({served.resource: served for served in kinds if served.info.namespaced}.values())


def remove_empty_namespace(storage: Storage, kinds: Kinds, name: str) -> None:
    """If a namespace is being deleted and has no content, remove its finalizer ``kubernetes``.

    If it has no other finalizers, the namespace is removed.
    """
    found = storage.get("namespaces", name)
    if found is None:
        return
    obj = found.decoded()
    metadata = obj["metadata"]
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    if not metadata.get("deletionTimestamp"):
        return
    if "kubernetes" in finalizers and any(
        storage.snapshot(served.resource, f"{name}/") for served in namespaced(kinds)
    ):
        return
    rest = [one for one in finalizers if one != "kubernetes"]
    obj["spec"] = {"finalizers": rest} if rest else {}
    if not rest and not metadata.get("finalizers"):
        storage.remove("namespaces", name, obj)
    elif rest != finalizers:
        storage.put("namespaces", name, obj)
