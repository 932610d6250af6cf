"""The kinds that the embedded server serves, and the differences between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

import attrs

from ...models import ResourceInfo
from ...models._internal import builtin_resources, decode, dumps
from ._conversions import CONVERSIONS, Conversion
from ._schemas import Schema
from ._storage import JSONObject, Stored, body_of

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
"""The built-in kinds whose ``metadata.generation`` counts the changes of the desired state. For custom kinds, it
always does."""

COUNTED_METADATA = {"deployments.apps": "annotations", "endpointslices.discovery.k8s.io": "labels"}
"""The field of the metadata whose changes also increment the generation."""

STATUS_ON_CREATE = frozenset({"nodes"})
"""The kinds whose status may be set on create, because a kubelet registers its node with a status."""

NEEDS_RESOURCE_VERSION = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""The built-in kinds whose updates require a ``resourceVersion``. For custom kinds, updates always do."""

CREATED_BY_UPDATES = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
    }
)
"""The kinds for which an update creates the object if it does not exist."""

RETURNED_BY_DELETE = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "deviceclasses.resource.k8s.io",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourcequotas",
        "resourceslices.resource.k8s.io",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    }
)
"""The kinds for which the response to a completed delete is the object.  For the other kinds, it is a Status."""

METADATA_NOT_IN_STATUS = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "resourceclaims.resource.k8s.io",
        "servicecidrs.networking.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""The built-in kinds for which a write of the status cannot change the metadata.  For custom kinds, it never can."""

KEPT_IN_STATUS = {"deployments.apps": "labels", "pods": "ownerReferences"}
"""The field of the metadata that a write of the status cannot change, although it can change the others."""

DEPRECATIONS = {
    ("v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""The warnings of built-in kinds in deprecated versions that the server still serves."""


def _type_meta(info: ResourceInfo, *, is_builtin: bool) -> bytes:
    # Go structs begin with the kind; custom objects are Go maps, which are encoded sorted.
    names = {"kind": info.kind, "apiVersion": info.api_version}
    return dumps(names if is_builtin else dict(sorted(names.items())))[1:-1] + b","


@final
@attrs.frozen
class ServedKind:
    """A version of a kind that the server serves."""

    info: ResourceInfo
    """The group, version, kind and plural."""
    is_builtin: bool
    """Whether this is a built-in kind.  Lists and patches of custom kinds differ in some details."""
    schema: Schema | None = attrs.field(default=None, eq=False)
    """The schema of a custom kind, or None if every object is valid."""
    deprecation: str = ""
    """The warning in each response if this version is deprecated."""
    selectable_fields: tuple[str, ...] = ()
    """The paths, such as ``spec.host``, that field selectors may use, in addition to the fields that are selectable
    for every kind."""
    columns: tuple[Mapping[str, Any], ...] = attrs.field(default=(), eq=False)
    """The ``additionalPrinterColumns`` of a custom kind."""
    storage_version: str = attrs.field(default="", eq=False)
    """The version in which the objects of a custom kind are stored."""
    scale: Mapping[str, Any] | None = attrs.field(default=None, eq=False)
    """The paths for the Scale of a custom kind, or None."""
    conversion: Conversion | None = attrs.field(
        init=False,
        eq=False,
        default=attrs.Factory(
            lambda self: CONVERSIONS.get((self.info.api_version, self.info.kind)) if self.is_builtin else None,
            takes_self=True,
        ),
    )
    """The conversion if the kind is stored in another version."""
    resource: str = attrs.field(
        init=False,
        default=attrs.Factory(
            # Events of both groups are stored as Events of the core group.
            lambda self: "events" if self.is_builtin and self.info.plural == "events" else str(self.info),
            takes_self=True,
        ),
    )
    """``plural.group``: the key of its storage, which all versions share."""
    type_meta: bytes = attrs.field(
        init=False,
        default=attrs.Factory(lambda self: _type_meta(self.info, is_builtin=self.is_builtin), takes_self=True),
    )
    """``kind`` and ``apiVersion`` as the first members of an object."""

    def to_stored(self, obj: JSONObject) -> JSONObject:
        """Return an object of the kind in the version in which it is stored."""
        return obj if self.conversion is None else self.conversion.to_stored(obj)

    def from_stored(self, obj: JSONObject) -> JSONObject:
        """Return a stored object in the version of the kind."""
        return obj if self.conversion is None else self.conversion.from_stored(obj)

    def body(self, stored: Stored) -> bytes:
        """Return the JSON of a stored object in the version of the kind, in the form of :attr:`Stored.body`."""
        if self.conversion is None:
            return stored.body
        return body_of(self.conversion.from_stored(decode(b"{" + stored.body)))

    @property
    def is_stored(self) -> bool:
        """Whether objects of the kind are stored.  The server only responds to Bindings and reviews."""
        return not self.is_builtin or self.info.verbs != ("create",)

    @property
    def has_status(self) -> bool:
        """Whether the kind has the subresource ``status``."""
        return "status" in self.info.subresources

    @property
    def has_generation(self) -> bool:
        """Whether ``metadata.generation`` counts the changes of the desired state."""
        return not self.is_builtin or self.resource in WITH_GENERATION

    @property
    def needs_resource_version(self) -> bool:
        """Whether updates require a ``resourceVersion``."""
        return not self.is_builtin or self.resource in NEEDS_RESOURCE_VERSION

    @property
    def keeps_metadata_in_status(self) -> bool:
        """Whether a write of the status cannot change the metadata."""
        return not self.is_builtin or self.resource in METADATA_NOT_IN_STATUS

    @property
    def is_returned_by_delete(self) -> bool:
        """Whether the response to a completed delete is the object instead of a Status."""
        return self.resource in RETURNED_BY_DELETE

    @property
    def is_created_by_updates(self) -> bool:
        """Whether an update creates an object that does not exist."""
        return self.resource in CREATED_BY_UPDATES

    @property
    def is_namespace(self) -> bool:
        """Whether this kind is Namespace."""
        return self.resource == "namespaces"


@final
@attrs.define(eq=False)
class Kinds:
    """The served kinds.  Kinds can be added and removed while the server runs."""

    _by_path: dict[tuple[str, str, str], ServedKind] = attrs.field(factory=dict)
    _by_kind: dict[tuple[str, str], ServedKind] = attrs.field(init=False, factory=dict)
    """The kinds by apiVersion and kind.  It is empty after a change."""

    @classmethod
    def builtin(cls) -> Kinds:
        """Return the kinds that a new cluster serves."""
        kinds = cls()
        for info in builtin_resources():
            if info.kind != "ComponentStatus":
                deprecation = DEPRECATIONS.get((info.api_version, info.kind), "")
                kinds.add(info, is_builtin=True, deprecation=deprecation)
        return kinds

    def add(
        self,
        info: ResourceInfo,
        *,
        is_builtin: bool = False,
        schema: Schema | None = None,
        deprecation: str = "",
        selectable_fields: tuple[str, ...] = (),
        columns: tuple[Mapping[str, Any], ...] = (),
        storage_version: str = "",
        scale: Mapping[str, Any] | None = None,
    ) -> ServedKind:
        """Serve a kind. This replaces any kind with the same group, version and plural."""
        version = storage_version or info.version
        served = ServedKind(info, is_builtin, schema, deprecation, selectable_fields, columns, version, scale)
        self._by_path[info.group, info.version, info.plural] = served
        self._by_kind = {}
        return served

    def remove(self, info: ResourceInfo) -> None:
        """Stop serving a kind. This has no effect if the kind is not served."""
        self._by_path.pop((info.group, info.version, info.plural), None)
        self._by_kind = {}

    def copy(self) -> Kinds:
        """Return a copy that later changes do not affect."""
        return Kinds(dict(self._by_path))

    def replace(self, others: Kinds) -> None:
        """Serve exactly the kinds in ``others``."""
        self._by_path, self._by_kind = dict(others._by_path), {}

    @property
    def namespaces(self) -> ServedKind:
        """The Namespace kind, which is always served."""
        return self._by_path["", "v1", "namespaces"]

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind with this group, version and plural, or None."""
        return self._by_path.get((group, version, plural))

    def has_builtin(self, group: str) -> bool:
        """Return whether a built-in kind belongs to this group."""
        return any(served.is_builtin and served.info.group == group for served in self._by_path.values())

    def find_kind(self, api_version: str, kind: str) -> ServedKind | None:
        """Return the kind with this apiVersion and kind, or None."""
        if not self._by_kind:
            first_last = reversed(self._by_path.values())
            self._by_kind = {(served.info.api_version, served.info.kind): served for served in first_last}
        return self._by_kind.get((api_version, kind))

    def find_resource(self, resource: str) -> ServedKind | None:
        """Return the first version of the kind with this ``plural`` or ``plural.group``, or None."""
        for served in self._by_path.values():
            if resource in (str(served.info), served.info.plural):
                return served
        return None

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(tuple(self._by_path.values()))
