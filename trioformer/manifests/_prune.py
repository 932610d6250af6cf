"""Delete objects that were applied before and are no longer among the manifests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, cast, final

import attrs

from ..client import Api, Client
from ..client._internal import LabelSelectorLike
from ..errors import ForbiddenError, NotFoundError
from ..models import KubernetesObject, LabelSelector, ResourceInfo, builtin_kind
from ..models._internal import ManagedFieldsEntry
from ._manifest import Manifest, ManifestResult
from ._targets import Target, rank_of

_COMMON: Final = (
    ("v1", ("ConfigMap", "PersistentVolumeClaim", "Pod", "Secret", "Service", "ServiceAccount")),
    ("apps/v1", ("DaemonSet", "Deployment", "StatefulSet")),
    ("autoscaling/v2", ("HorizontalPodAutoscaler",)),
    ("batch/v1", ("CronJob", "Job")),
    ("networking.k8s.io/v1", ("Ingress", "NetworkPolicy")),
    ("policy/v1", ("PodDisruptionBudget",)),
    ("rbac.authorization.k8s.io/v1", ("Role", "RoleBinding")),
)
"""Kinds to search for a selector even if no manifest has them; kubectl also has such a list."""


@final
@attrs.frozen
class Pruning:
    """The objects to delete."""

    selector: LabelSelector
    """The objects that may be deleted have these labels."""
    is_owned: Callable[[KubernetesObject], bool]
    """Whether such an object belongs to this set."""
    apis: Collection[Api[KubernetesObject]]
    """The kinds and namespaces to search."""
    may_be_forbidden: frozenset[ResourceInfo] = frozenset()
    """Kinds that are not searched if the server forbids it."""


async def prune_objects(
    pruning: Pruning, targets: Iterable[Target], report: Callable[[ManifestResult], None], *, dry_run: bool
) -> frozenset[ResourceInfo]:
    """Delete selected objects that are not among the targets, in the reverse order of applying.

    Returns:
        The kinds that could not be searched because the server does not serve them.

    Raises:
        TrioformerError: An object could not be listed or deleted; those before it are deleted.
    """
    kept = {target.key for target in targets}
    not_searched: set[ResourceInfo] = set()
    for api in sorted(pruning.apis, key=lambda api: rank_of(api.resource), reverse=True):
        resource = api.resource
        if not {"list", "delete"} <= set(resource.verbs):
            continue
        try:
            listing = await api.list(label_selector=pruning.selector)
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:  # a proxy's page
                raise
            not_searched.add(resource)
            continue
        except ForbiddenError:
            if resource in pruning.may_be_forbidden:
                continue
            raise
        for obj in listing:
            key = resource.group, resource.kind, obj.namespace, obj.name
            if key in kept or obj.metadata.deletion_timestamp is not None or not pruning.is_owned(obj):
                continue
            try:
                # The precondition protects an object of the same name that another program created meanwhile.
                left = await api.delete(obj, uid=obj.uid, dry_run=dry_run)
            except NotFoundError:
                continue
            report(ManifestResult(manifest=Manifest(object=obj), action="pruned", object=left))
    return frozenset(not_searched)


def by_selector(client: Client, selector: LabelSelectorLike, targets: Iterable[Target], field_manager: str) -> Pruning:
    """Prune objects that match a selector and that the manager applied, in the namespaces of the targets.

    Their kinds and some common ones are searched.

    Raises:
        ValueError: A target does not match the selector, so that the next call without it would not prune it; or the
            selector is empty.
    """
    parsed = LabelSelector.of(selector)
    if parsed.is_empty:
        raise ValueError("prune= has an empty selector, which selects every object; pass a label, or use an ApplySet")
    targets = tuple(targets)
    for target in targets:
        if not parsed.matches(target.object.metadata.labels):
            raise ValueError(f"{target.manifest} does not match the selector {str(parsed)!r} of prune=; label it")
    apis = {(target.api.resource, target.api.namespace): target.api for target in targets}
    common: set[ResourceInfo] = set()
    for namespace in {target.api.namespace for target in targets} - {None}:
        for api_version, kinds in _COMMON:
            for kind in kinds:
                api = client.api(builtin_kind(api_version, kind), namespace)
                if apis.setdefault((api.resource, namespace), api) is api:
                    common.add(api.resource)
    # One that is of the set in another namespace must be searched in each.
    common -= {target.api.resource for target in targets}
    return Pruning(
        parsed, lambda obj: is_applied_by(obj, field_manager), tuple(apis.values()), may_be_forbidden=frozenset(common)
    )


def is_applied_by(obj: KubernetesObject, field_manager: str) -> bool:
    """Whether a manager has applied the object, and no controller owns it."""
    return not _has_controller(obj) and any(entry.manager == field_manager for entry in _applied_parts(obj))


def is_applied_with_label(obj: KubernetesObject, label: str) -> bool:
    """Whether a manager has applied the object with a label, and no controller owns it.

    Controllers copy labels to their objects, for example from a Service to its EndpointSlices.
    """
    path = "f:metadata", "f:labels", f"f:{label}"
    return not _has_controller(obj) and any(_has_path(entry.fields_v1, path) for entry in _applied_parts(obj))


def _has_controller(obj: KubernetesObject) -> bool:
    """Whether a controller owns the object."""
    return any(owner.controller for owner in obj.metadata.owner_references)


def _applied_parts(obj: KubernetesObject) -> list[ManagedFieldsEntry]:
    return [entry for entry in obj.metadata.managed_fields if entry.operation == "Apply" and not entry.subresource]


def _has_path(fields: object, path: Iterable[str]) -> bool:
    for name in path:
        if not isinstance(fields, Mapping) or name not in fields:
            return False
        fields = cast("Mapping[str, object]", fields)[name]
    return True
