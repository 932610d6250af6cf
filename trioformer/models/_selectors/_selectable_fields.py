"""The fields that field selectors can use for each kind, and the text form of their values.

The code of kube-apiserver defines these fields for each kind.  ``AddFieldLabelConversionFunc`` in ``pkg/apis`` defines
the names, and ``ToSelectableFields`` in ``pkg/registry`` defines the values.
The table contains the fields of Kubernetes v1.36.  Kinds that are not in the table support only the name and the
namespace.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, cast, final

import attrs

from ...errors import SelectorError
from .._kinds import builtin_resources
from .._meta import KubernetesObject
from .._resources import ResourceInfo, resource_of


class _Field(NamedTuple):
    """One selectable field, with the paths to its value and a default value."""

    paths: tuple[str, ...]
    """Paths with the API's names.  The field's value is the first value that is not empty."""
    default: str = ""


_NAME, _NAMESPACE = "metadata.name", "metadata.namespace"
_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _plain(*names: str, **more: _Field) -> dict[str, _Field]:
    return {name: _Field((name,)) for name in names} | more


_TABLE: Mapping[tuple[str, str], Mapping[str, _Field]] = {
    ("", "Pod"): {
        **_plain(_NAME, _NAMESPACE, *_POD_FIELDS),
        "spec.hostNetwork": _Field(("spec.hostNetwork",), "false"),
        "spec.host": _Field(("spec.nodeName",)),  # the name before v1
        "status.podIPs": _Field(()),  # the server accepts the name, but sets no value
    },
    ("", "Event"): {
        **_plain(_NAME, _NAMESPACE, *(f"involvedObject.{name}" for name in _REFERENCE), "reason", "type"),
        "reportingComponent": _Field(("reportingComponent",)),
        "source": _Field(("source.component", "reportingComponent")),
    },
    ("events.k8s.io", "Event"): _plain(
        _NAME, _NAMESPACE, *(f"regarding.{name}" for name in _REFERENCE), "reason", "reportingController", "type"
    ),
    ("", "Namespace"): _plain(_NAME, "status.phase"),
    ("", "Node"): {**_plain(_NAME), "spec.unschedulable": _Field(("spec.unschedulable",), "false")},
    ("", "ReplicationController"): {
        **_plain(_NAME, _NAMESPACE),
        "status.replicas": _Field(("status.replicas",), "0"),
    },
    ("", "Secret"): _plain(_NAME, _NAMESPACE, "type"),
    ("", "Service"): _plain(_NAME, _NAMESPACE, "spec.clusterIP", "spec.type"),
    ("batch", "Job"): {**_plain(_NAME, _NAMESPACE), "status.successful": _Field(("status.succeeded",), "0")},
    ("certificates.k8s.io", "CertificateSigningRequest"): _plain(_NAME, "spec.signerName"),
    ("certificates.k8s.io", "ClusterTrustBundle"): _plain(_NAME, "spec.signerName"),
    ("certificates.k8s.io", "PodCertificateRequest"): _plain(_NAME, "spec.signerName", "spec.podName", "spec.nodeName"),
    ("resource.k8s.io", "ResourceSlice"): _plain(_NAME, "spec.nodeName", "spec.driver"),
}


@final
@attrs.frozen
class SelectableFields:
    """The fields that field selectors can use for one kind, and the values that the API server compares.

    All values are strings, including booleans (``true`` and ``false``) and decimal numbers.  The value of an absent
    field is the server's default or an empty string.
    """

    kind: str
    """The name of the kind, for error messages."""
    names: tuple[str, ...]
    """The sorted names of the fields, such as ``spec.nodeName``."""
    is_default: bool
    """Whether the kind has only the default fields, which are the name and the namespace."""
    _fields: Mapping[str, _Field]

    @classmethod
    def of(cls, kind: ResourceInfo | type[KubernetesObject]) -> SelectableFields:
        """Return the selectable fields of a kind; for a metadata kind, only metadata fields are selectable.

        Raises:
            TypeError: The class is not a kind.
        """
        return _fields_of(cast("Hashable", kind))  # for mypy a class with __hash__ is not Hashable

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def check(self, names: Iterable[str]) -> None:
        """Check that the kind supports all given fields.

        Raises:
            SelectorError: A field is not supported. The message lists the supported fields.
        """
        for name in names:
            if name not in self._fields:
                raise SelectorError(
                    f"{self.kind} cannot be selected by field {name!r}; supported fields: {', '.join(self.names)}"
                )

    def read(self, obj: object, name: str) -> str:
        """Return the value of a field as a string.

        Args:
            obj: An object of the kind, or its decoded JSON.
            name: The name of the field.  If it is not one of :attr:`names`, it is the path of a custom kind's field.
        """
        if isinstance(obj, KubernetesObject):  # from the head, without decoding the metadata
            if name == _NAME:
                return obj.name
            if name == _NAMESPACE:
                return obj.namespace or ""
        field = self._fields.get(name) or _Field((name,))
        for path in field.paths:
            value = obj
            for member, attribute in _steps(path):
                value = _member(value, member, attribute)
            if value is not None and value != "":
                return str(value).lower() if isinstance(value, bool) else str(value)
        return field.default


@functools.lru_cache(maxsize=1_000)  # bounded, because programs make classes of unstructured kinds
def _fields_of(kind: ResourceInfo | type[KubernetesObject]) -> SelectableFields:
    info = kind if isinstance(kind, ResourceInfo) else resource_of(kind)
    own = _TABLE.get((info.group, info.kind))
    fields = own if own is not None else _plain(_NAME, _NAMESPACE) if _has_namespace_field(info) else _plain(_NAME)
    if isinstance(kind, type):
        fields = {name: field for name, field in fields.items() if _can_read(kind, name)}
    return SelectableFields(info.kind, tuple(sorted(fields)), own is None, fields)


def _has_namespace_field(info: ResourceInfo) -> bool:
    # A cluster-scoped kind has the field, always empty, if it is built-in, and not if it is custom.
    return info.namespaced or any(
        (one.group, one.kind) == (info.group, info.kind) for one in builtin_resources(beta=True)
    )


def _can_read(cls: type[KubernetesObject], name: str) -> bool:
    return hasattr(cls, "get") or hasattr(cls, _steps(name)[0][1])


_WORD_END = re.compile(r"(?<=[a-z0-9])([A-Z]+)")


@functools.cache
def _steps(path: str) -> tuple[tuple[str, str], ...]:
    """Return the API name and the Python name for each step of a path."""
    return tuple((member, _WORD_END.sub(r"_\1", member).lower()) for member in path.split("."))


def _member(obj: object, member: str, attribute: str) -> object:
    if obj is None:
        return None
    if isinstance(obj, Mapping):
        return obj.get(member)
    if hasattr(type(obj), attribute):
        return getattr(obj, attribute)
    get = getattr(obj, "get", None)  # an Unstructured
    return get(member) if callable(get) else None
