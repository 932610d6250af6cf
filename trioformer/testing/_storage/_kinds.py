"""Which kinds the embedded server serves, and what is particular about a few of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import attrs

from ...models import ResourceInfo, builtin_resources
from ...models._internal import dumps

WITH_GENERATION = frozenset(
    {
        "cronjobs.batch",
        "customresourcedefinitions.apiextensions.k8s.io",
        "daemonsets.apps",
        "deployments.apps",
        "deviceclasses.resource.k8s.io",
        "endpointslices.discovery.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "ingressclasses.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "jobs.batch",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "networkpolicies.networking.k8s.io",
        "poddisruptionbudgets.policy",
        "pods",
        "podtemplates",
        "priorityclasses.scheduling.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "replicasets.apps",
        "replicationcontrollers",
        "resourceslices.resource.k8s.io",
        "statefulsets.apps",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)
"""Built-in kinds whose ``metadata.generation`` counts the versions of what they want; all custom kinds do."""

STATUS_ON_CREATE = frozenset({"nodes"})
"""Kinds whose creator may set the status: the kubelet registers its node with one."""

NEEDS_RESOURCE_VERSION = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Built-in kinds that are not replaced without saying which state is meant; no custom kind is."""


def _type_meta(info: ResourceInfo, *, is_builtin: bool) -> bytes:
    # Go's structs have the kind first, its maps, which custom objects are, are sorted.
    names = {"kind": info.kind, "apiVersion": info.api_version}
    return dumps(names if is_builtin else dict(sorted(names.items())))[1:-1] + b","


@final
@attrs.frozen
class Served:
    """One version of one kind."""

    info: ResourceInfo
    """Where it lives."""
    is_builtin: bool
    """Whether it is Kubernetes' own; items of lists and patches of custom kinds differ."""
    resource: str = attrs.field(init=False, default=attrs.Factory(lambda self: str(self.info), takes_self=True))
    """``plural.group``: the key of its storage, which all versions share."""
    type_meta: bytes = attrs.field(
        init=False,
        default=attrs.Factory(lambda self: _type_meta(self.info, is_builtin=self.is_builtin), takes_self=True),
    )
    """``kind`` and ``apiVersion`` as the first members of an object."""

    @property
    def has_status(self) -> bool:
        """Whether the status is a subresource."""
        return "status" in self.info.subresources

    @property
    def has_generation(self) -> bool:
        """Whether ``metadata.generation`` counts the versions of what the object wants."""
        return not self.is_builtin or self.resource in WITH_GENERATION

    @property
    def needs_resource_version(self) -> bool:
        """Whether a replacement must say which state it replaces."""
        return not self.is_builtin or self.resource in NEEDS_RESOURCE_VERSION

    @property
    def is_namespace(self) -> bool:
        """Whether this is the Namespace kind."""
        return self.resource == "namespaces"


@final
@attrs.define(eq=False)
class Kinds:
    """The served kinds; new ones may come and go while the server runs."""

    _by_path: dict[tuple[str, str, str], Served] = attrs.field(factory=dict)

    @classmethod
    def builtin(cls) -> Kinds:
        """Serve what a fresh cluster serves."""
        kinds = cls()
        for info in builtin_resources():
            if "watch" in info.verbs:  # the others are questions to a real server, not objects
                kinds.add(info, is_builtin=True)
        return kinds

    def add(self, info: ResourceInfo, *, is_builtin: bool = False) -> Served:
        """Serve a kind; one that is served at the same place is replaced."""
        served = Served(info, is_builtin)
        self._by_path[info.group, info.version, info.plural] = served
        return served

    def remove(self, info: ResourceInfo) -> None:
        """Serve a kind no longer; nothing happens when it is not served."""
        self._by_path.pop((info.group, info.version, info.plural), None)

    @property
    def namespaces(self) -> Served:
        """The Namespace kind, which is always served."""
        return self._by_path["", "v1", "namespaces"]

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """Return the kind at a place in the API, or None."""
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Served | None:
        """Return the kind of that name, or None."""
        for served in self._by_path.values():
            if served.info.kind == kind and served.info.api_version == api_version:
                return served
        return None

    def find_resource(self, resource: str) -> Served | None:
        """Return the kind that ``plural`` or ``plural.group`` names, in its first version, or None."""
        for served in self._by_path.values():
            if resource in (served.resource, served.info.plural):
                return served
        return None

    def __iter__(self) -> Iterator[Served]:
        return iter(tuple(self._by_path.values()))
