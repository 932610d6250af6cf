"""Label and field selectors on stored states.

Which fields a kind can be selected by is decided by its conversion functions in a real server
(``AddFieldLabelConversionFunc``); the table here has those of v1.36 that people use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import attrs

from ..errors import SelectorError
from ..models import FieldMatcher, LabelMatcher, Raw, decode, level_decoder
from ._kinds import Served
from ._status import bad_request
from ._storage import JSONObject, Stored

_EVENT_FIELDS = frozenset(
    {
        f"involvedObject.{name}"
        for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    }
    | {"reason", "reportingComponent", "source", "type"}
)

FIELDS: Mapping[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
    "events": _EVENT_FIELDS,
    "namespaces": frozenset({"status.phase"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "replicationcontrollers": frozenset({"status.replicas"}),
    "secrets": frozenset({"type"}),
    "services": frozenset({"spec.clusterIP", "spec.type"}),
    "jobs.batch": frozenset({"status.successful"}),
    "certificatesigningrequests.certificates.k8s.io": frozenset({"spec.signerName"}),
}
"""What a kind can be selected by, beside its name and namespace."""

_DEFAULTS: Mapping[str, str] = {"spec.hostNetwork": "false", "spec.unschedulable": "false", "status.replicas": "0"}
_PATHS: Mapping[str, tuple[str, ...]] = {"status.successful": ("status", "succeeded")}

_metadata: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("metadata",))
_labels: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("labels",))


def labels_of(stored: Stored) -> Mapping[str, str]:
    """Read an object's labels, and decode nothing else of it."""
    (raw,) = _labels(_metadata(b"{" + stored.body)[0])
    labels: Mapping[str, str] | None = decode(raw) if bytes(raw) else None
    return labels or {}


@final
@attrs.frozen
class Selection:
    """What a list, a watch or a deletecollection is about, besides its namespace."""

    labels: LabelMatcher = attrs.field(factory=LabelMatcher)
    """Which labels."""
    fields: FieldMatcher = attrs.field(factory=FieldMatcher)
    """Which fields."""

    @classmethod
    def parse(cls, served: Served, label_selector: str, field_selector: str) -> Selection:
        """Read the two query parameters.

        Raises:
            RefusedError: 400: one does not parse, or the kind cannot be selected by a field.
        """
        try:
            selection = cls(LabelMatcher.parse(label_selector), FieldMatcher.parse(field_selector))
        except SelectorError as exc:
            raise bad_request(f"unable to parse requirement: {exc}") from exc
        known = FIELDS.get(served.resource)
        for requirement in selection.fields.requirements:
            path = requirement.path
            if path == "metadata.name" or (path == "metadata.namespace" and served.info.namespaced):
                continue
            if known is None:
                only = '"metadata.name", "metadata.namespace"'
                raise bad_request(f'"{path}" is not a known field selector: only {only}')
            if path not in known:
                raise bad_request(f"field label not supported: {path}")
        return selection

    @property
    def is_everything(self) -> bool:
        """Whether nothing is asked."""
        return self.labels.is_empty and self.fields.is_empty

    def matches(self, stored: Stored) -> bool:
        """Tell whether a state is selected."""
        if not self.fields.is_empty and not self.fields.matches(_Getter(stored)):
            return False
        return self.labels.is_empty or self.labels.matches(labels_of(stored))


@final
class _Getter:
    """Reads fields of one state as text; name and namespace without decoding it."""

    __slots__ = ("_obj", "_stored")

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._obj: JSONObject | None = None

    def __call__(self, path: str) -> str:
        if path == "metadata.name":
            return self._stored.name
        if path == "metadata.namespace":
            return self._stored.namespace
        if self._obj is None:
            self._obj = decode(b"{" + self._stored.body)
        if path == "source":
            component = _dig(self._obj, ("source", "component")) or _dig(self._obj, ("reportingComponent",))
            return _text(component, "")
        return _text(_dig(self._obj, _PATHS.get(path) or tuple(path.split("."))), _DEFAULTS.get(path, ""))


def _dig(obj: object, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def _text(value: object, default: str) -> str:
    if value is None:
        return default
    return str(value).lower() if isinstance(value, bool) else str(value)
