"""Delete objects that were applied earlier and no longer have a manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from ..client import Api
from ..errors import NotFoundError
from ..models import KubernetesObject, ResourceInfo
from ._manifest import Manifest, ManifestResult
from ._targets import Target, rank_of


async def prune_objects(
    apis: Iterable[Api[KubernetesObject]],
    label: str,
    value: str,
    targets: Iterable[Target],
    report: Callable[[ManifestResult], None],
    *,
    dry_run: bool,
) -> frozenset[ResourceInfo]:
    """Delete objects that were applied with a label and are not among the targets, in the reverse of the apply order.

    Args:
        apis: The APIs to search, each for one kind and namespace.
        label: The label of the objects that may be deleted.
        value: The value of the label.
        targets: The objects to keep.
        report: A function that is called with each deleted object.
        dry_run: Whether the server only validates the deletion, without storing it.

    Returns:
        The kinds that could not be searched because the server does not serve them.

    Raises:
        TrioformerError: A kind could not be listed or an object could not be deleted.  The objects before it have
            already been deleted.
    """
    kept = {target.key for target in targets}
    not_searched: set[ResourceInfo] = set()
    for api in sorted(apis, key=lambda api: rank_of(api.resource), reverse=True):
        resource = api.resource
        if not {"list", "delete"} <= set(resource.verbs):
            continue
        try:
            listing = await api.list(label_selector={label: value})
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:  # a proxy's page
                raise
            not_searched.add(resource)
            continue
        for obj in listing:
            key = resource.group, resource.kind, obj.namespace, obj.name
            if key in kept or obj.metadata.deletion_timestamp is not None or not _is_applied_with_label(obj, label):
                continue
            try:
                # The precondition protects an object of the same name that another program created meanwhile.
                left = await api.delete(obj, uid=obj.uid, dry_run=dry_run)
            except NotFoundError:
                continue
            report(ManifestResult(manifest=Manifest(object=obj), action="pruned", object=left))
    return frozenset(not_searched)


def _is_applied_with_label(obj: KubernetesObject, label: str) -> bool:
    """Return whether a field manager has applied a label to the object and no controller owns the object.

    The check is necessary because controllers copy labels, for example from a Service to its EndpointSlices.
    """
    path = "f:metadata", "f:labels", f"f:{label}"
    applied = (part for part in obj.metadata.managed_fields if part.operation == "Apply" and not part.subresource)
    has_controller = any(owner.controller for owner in obj.metadata.owner_references)
    return not has_controller and any(_has_path(part.fields_v1, path) for part in applied)


def _has_path(fields: object, path: Iterable[str]) -> bool:
    for name in path:
        if not isinstance(fields, Mapping) or name not in fields:
            return False
        fields = cast("Mapping[str, object]", fields)[name]
    return True
