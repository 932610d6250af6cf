"""``apply --prune``: deletes what was applied before and is not in the files any more."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...errors import NotFoundError
from ...manifests import ManifestResult
from ...manifests._internal import by_selector, prune_objects
from ...models import resource_of, to_dict
from .._failures import CommandError
from .._manifests import Document
from .._merging import LAST_APPLIED
from .._resources import Target, group_kind
from ._requests import items_of, request_pages

if TYPE_CHECKING:
    from ...client import Client
    from ...models import ResourceInfo

__all__ = ["PRUNED_KINDS", "prune", "prune_by_manager"]

PRUNED_KINDS: Final = (
    "core/v1/ConfigMap",
    "core/v1/Endpoints",
    "core/v1/PersistentVolumeClaim",
    "core/v1/Pod",
    "core/v1/ReplicationController",
    "core/v1/Secret",
    "core/v1/Service",
    "batch/v1/Job",
    "batch/v1/CronJob",
    "networking.k8s.io/v1/Ingress",
    "apps/v1/DaemonSet",
    "apps/v1/Deployment",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "core/v1/Namespace",
    "core/v1/PersistentVolume",
)
"""The kinds that are searched, as for kubectl (``pkg/util/prune``)."""


async def prune(
    flags: argparse.Namespace,
    client: Client,
    documents: list[Document],
    visited: set[str],
    report: Callable[[str, str, Mapping[str, Any]], None],
    *,
    dry_run: str,
) -> None:
    """Delete the objects with the annotation of ``apply`` that are not among those that were applied.

    Args:
        flags: The flags; their selector limits what is deleted.
        client: The client.
        documents: What was applied; its namespaces are searched.
        visited: The uids of what was applied.
        report: Called with the label, the operation and the object.
        dry_run: With ``client``, nothing is deleted.

    Raises:
        TrioformerError: A kind cannot be listed, or an object not deleted.
        CommandError: A kind of ``--prune-allowlist`` does not exist.
    """
    resources = await _resources(client, flags.prune_allowlist)
    namespaces = dict.fromkeys(each.namespace for each in documents if each.namespace is not None)
    if flags.namespace:
        namespaces[flags.namespace] = None
    targets = [Target(each, place) for place in namespaces for each in resources if each.namespaced]
    targets += [Target(each, None) for each in resources if not each.namespaced]
    params = {"labelSelector": flags.selector} if flags.selector else {}
    for target in targets:
        pages = await request_pages(client, target, {**params, "limit": "500"}, accept="application/json")
        for obj in [obj for page in pages for obj in items_of(page, target)]:
            metadata = obj["metadata"]
            if LAST_APPLIED not in (metadata.get("annotations") or {}) or metadata["uid"] in visited:
                continue
            if dry_run != "client" and not await _delete(client, target, obj, is_dry_run=dry_run == "server"):
                continue
            report(f"{group_kind(target.resource)}/{metadata['name']}", "pruned", obj)


async def prune_by_manager(
    flags: argparse.Namespace,
    client: Client,
    documents: list[Document],
    report: Callable[[str, str, Mapping[str, Any]], None],
    *,
    is_dry_run: bool,
) -> None:
    """Delete the objects that the manager has applied by server-side apply, and that were not applied now.

    Raises:
        TrioformerError: A kind cannot be listed, or an object not deleted.
        CommandError: An object that was applied does not match the selector.
    """
    targets = [document.target for document in documents]

    def show(result: ManifestResult) -> None:
        obj = result.manifest.object
        report(f"{group_kind(resource_of(type(obj)))}/{obj.name}", "pruned", to_dict(obj))

    try:
        pruning = by_selector(client, flags.selector, targets, flags.field_manager)
    except ValueError as exc:
        raise CommandError(str(exc)) from exc
    await prune_objects(pruning, targets, show, dry_run=is_dry_run)


async def _delete(client: Client, target: Target, obj: dict[str, Any], *, is_dry_run: bool) -> bool:
    """Delete an object; returns whether it was there."""
    metadata = obj["metadata"]
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        # An object of the same name that was made meanwhile is somebody else's.
        "preconditions": {"uid": metadata["uid"]},
    }
    if is_dry_run:
        options["dryRun"] = ["All"]
    try:
        await client.request("DELETE", attrs.evolve(target, name=metadata["name"]).path(), body=options)
    except NotFoundError:
        return False
    return True


async def _resources(client: Client, allowed: list[str]) -> list[ResourceInfo]:
    served = await client.api_resources()
    found: list[ResourceInfo] = []
    for text in allowed or PRUNED_KINDS:
        group, _, rest = text.partition("/")
        version, _, kind = rest.partition("/")
        if not kind or "/" in kind:
            raise CommandError(f"invalid GroupVersionKind format: {text}, please follow <group/version/kind>")
        wanted = ("" if group == "core" else group, version, kind)
        match = [info for info in served if (info.group, info.version, info.kind) == wanted]
        if match:
            found.append(match[0])
        elif allowed:
            raise CommandError(f'no matches for kind "{kind}" in version "{"/".join(filter(None, wanted[:2]))}"')
    return found
