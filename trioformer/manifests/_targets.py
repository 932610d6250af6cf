"""Find the API for each manifest and the order in which to apply the manifests."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, final

import attrs

from .._suggestions import describe
from ..client import Api, Client
from ..errors import ConnectionFailedError, ManifestError, TrioformerError, UnauthorizedError
from ..errors._internal import ManifestFailure, ManifestProblem
from ..models import KubernetesObject, ResourceInfo, Unstructured, from_dict, resource_of, to_dict, unstructured_kind
from ._load import kinds_defined_by
from ._manifest import Manifest

_NAMESPACES: Final = 0
CRDS: Final = 1
"""The rank of CustomResourceDefinitions.  Objects of the defined kinds have a higher rank."""
_OTHERS: Final = 6
# Objects that admission requires come first, as in Helm and kustomize; objects that call webhooks of the set come last.
# kubectl keeps the order of the files, as do kinds of the same rank here.
_RANKS: Final[Mapping[tuple[str, str], int]] = {
    ("", "Namespace"): _NAMESPACES,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): CRDS,
    **dict.fromkeys(
        (
            ("", "LimitRange"),
            ("", "ResourceQuota"),
            ("", "ServiceAccount"),
            ("networking.k8s.io", "IngressClass"),
            ("node.k8s.io", "RuntimeClass"),
            ("scheduling.k8s.io", "PriorityClass"),
            ("storage.k8s.io", "CSIDriver"),
            ("storage.k8s.io", "StorageClass"),
        ),
        2,
    ),
    **{("rbac.authorization.k8s.io", kind): 3 for kind in ("ClusterRole", "Role")},
    **{("rbac.authorization.k8s.io", kind): 4 for kind in ("ClusterRoleBinding", "RoleBinding")},
    **{("", kind): 5 for kind in ("ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "Secret", "Service")},
    ("apiregistration.k8s.io", "APIService"): 7,
    **{
        ("admissionregistration.k8s.io", kind): 8
        for kind in (
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        )
    },
}


def rank_of(resource: ResourceInfo) -> int:
    """Return the rank of a kind; lower ranks are applied first."""
    return _RANKS.get((resource.group, resource.kind), _OTHERS)


@final
@attrs.frozen
class Target:
    """One manifest with the API for its kind and namespace."""

    manifest: Manifest
    object: KubernetesObject
    """The object, as an instance of the API's class."""
    api: Api[KubernetesObject]

    @property
    def key(self) -> tuple[str, str, str | None, str]:
        """The group, kind, namespace and name, which together identify the object."""
        gvk = self.api.resource.gvk
        return gvk.group, gvk.kind, self.api.namespace, self.object.name

    @property
    def rank(self) -> int:
        """The rank of the kind; lower ranks are applied first."""
        return rank_of(self.api.resource)

    def failure(self, error: TrioformerError) -> ManifestFailure:
        """Convert an error to a failure of this manifest."""
        return ManifestFailure(str(self.manifest), error)


@final
@attrs.frozen
class Targets:
    """The targets that :func:`find_targets` has found."""

    found: tuple[Target, ...]
    """The targets in the order in which they are applied."""
    not_served: tuple[tuple[Manifest, TrioformerError], ...]
    """The manifests whose kinds the server does not serve, each with the error from the server."""

    @property
    def failures(self) -> list[ManifestFailure]:
        """Return a failure for each manifest whose kind is not served."""
        return [ManifestFailure(str(manifest), error) for manifest, error in self.not_served]


async def find_targets(
    client: Client,
    manifests: Iterable[Manifest | KubernetesObject],
    namespace: str | None,
) -> Targets:
    """Find the API for each manifest; only unknown kinds are looked up on the server.

    Args:
        client: The cluster.
        manifests: Manifests, or objects that the program has created.
        namespace: The namespace for objects without a namespace. None means the namespace in the client's
            configuration.

    Raises:
        ManifestError: Two manifests describe the same object, or a manifest has no name.
        StatusError: The server rejected the credentials.
        ConnectionFailedError: No complete response arrived.
    """
    given = [each if isinstance(each, Manifest) else _made_by_program(each) for each in manifests]
    namespace = client.config.namespace if namespace is None else namespace
    defined = {gk: info for each in given for gk, info in kinds_defined_by(each.object)}
    resources: dict[tuple[str, str], ResourceInfo | TrioformerError] = {}
    targets: list[Target] = []
    not_served: list[tuple[Manifest, TrioformerError]] = []
    for manifest in given:
        obj = manifest.object
        info = await _resource(client, obj, defined, resources)
        if isinstance(info, TrioformerError):
            not_served.append((manifest, info))
            continue
        targets.append(_target(client, manifest, info, namespace))
    _check(targets)
    return Targets(tuple(sorted(targets, key=operator.attrgetter("rank"))), tuple(not_served))


def _made_by_program(obj: object) -> Manifest:
    if not isinstance(obj, KubernetesObject):
        raise TypeError(f"a manifest must be a Manifest from load_manifests() or an object, not {describe(obj)}")
    return Manifest(object=obj)


async def _resource(
    client: Client,
    obj: KubernetesObject,
    defined: Mapping[tuple[str, str], ResourceInfo],
    resources: dict[tuple[str, str], ResourceInfo | TrioformerError],
) -> ResourceInfo | TrioformerError:
    known = resource_of(type(obj))
    if not isinstance(obj, Unstructured):
        return known
    if (known.group, known.kind) in defined:
        return attrs.evolve(defined[known.group, known.kind], version=known.version)
    key = known.api_version, known.kind
    if key not in resources:
        try:
            resources[key] = resource_of(await client.discover(*key))
        except (ConnectionFailedError, UnauthorizedError):
            raise
        except TrioformerError as exc:
            resources[key] = exc
    return resources[key]


def _target(client: Client, manifest: Manifest, info: ResourceInfo, namespace: str) -> Target:
    obj = manifest.object
    cls = unstructured_kind(info) if isinstance(obj, Unstructured) else type(obj)
    place = (obj.namespace or namespace) if info.namespaced else None
    edited = _without_server_fields(obj, drop_namespace=not info.namespaced)
    if edited is not None or cls is not type(obj):
        obj = from_dict(cls, to_dict(obj) if edited is None else edited)
    return Target(manifest, obj, cast("Api[KubernetesObject]", client.api(cls, place)))


def _without_server_fields(obj: KubernetesObject, *, drop_namespace: bool) -> dict[str, Any] | None:
    """Remove fields that cannot be applied, such as managedFields and the namespace of a cluster-scoped object."""
    of_server = obj.metadata.managed_fields or obj.metadata.creation_timestamp is not None
    if not (drop_namespace and obj.namespace) and not of_server:
        return None
    edited = to_dict(obj)
    edited["metadata"].pop("managedFields", None)
    edited["metadata"].pop("creationTimestamp", None)  # the server ignores it, and with a uid it says: read
    if drop_namespace:
        edited["metadata"].pop("namespace", None)
    return edited


def _check(targets: Iterable[Target]) -> None:
    problems: list[ManifestProblem] = []
    seen: dict[tuple[str, str, str | None, str], Target] = {}
    for target in targets:
        if not target.object.name:
            what = f"the {target.object.kind} has only a generateName; give it a name, or create it with Api.create()"
            problems.append(target.manifest.problem(what))
            continue
        first = seen.setdefault(target.key, target)
        if first is not target:
            where = f" at {first.manifest.place}" if first.manifest.place else ""
            what = f"{Manifest(object=target.object)} is already among the manifests{where}; remove one of them"
            problems.append(target.manifest.problem(what))
    if problems:
        raise ManifestError(problems)
