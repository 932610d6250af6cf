"""The built-in kinds that are served in a version other than the one in which they are stored.

Events of the group ``events.k8s.io`` are stored as Events of the core group, with other names of some fields.
A HorizontalPodAutoscaler in ``autoscaling/v1`` is stored in ``v2``.  Fields that ``v1`` does not have are annotations
in ``v1``; they contain the fields of ``v2``, whereas those of kube-apiserver contain types of ``v1`` for this purpose.

The managed fields are not converted: if a client changes a field that has another name in another version, the managers
in that version still own the field.

Source: kubernetes ``pkg/apis/events/v1/conversion.go`` and ``pkg/apis/autoscaling/v1/conversion.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, final

import attrs

from ...errors import DecodeError
from ...models._internal import decode, dumps
from ._storage import JSONObject
from ._values import objects_at, value_at


@final
@attrs.frozen(eq=False)
class Conversion:
    """The conversion between a served version and the stored version.  The functions do not modify their argument."""

    api_version: str
    """The version in which the objects are stored."""
    from_stored: Callable[[JSONObject], JSONObject]
    """Returns an object in the served version."""
    to_stored: Callable[[JSONObject], JSONObject]
    """Returns an object in the stored version."""


# --- Events -----------------------------------------------------------------------------------------------------------

_EVENT_FIELDS: Final[Mapping[str, str]] = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_EVENT_FIELDS: Final[Mapping[str, str]] = {new: old for old, new in _EVENT_FIELDS.items()}


def _renamed(names: Mapping[str, str]) -> Callable[[JSONObject], JSONObject]:
    return lambda obj: {names.get(name, name): value for name, value in obj.items()}


# --- HorizontalPodAutoscalers -----------------------------------------------------------------------------------------

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_ANNOTATIONS: Final = (
    ("spec", "behavior", "behavior"),
    ("status", "conditions", "conditions"),
    ("status", "currentMetrics", "current-metrics"),
    ("spec", "metrics", "metrics"),
)
"""The fields that ``v1`` does not have, and their annotations."""


def _cpu(metric: JSONObject, word: str) -> Any:
    """Return the average utilization of a metric if it is the one for processors, which ``v1`` has as a field.

    ``word`` is ``target`` in the spec, and ``current`` in the status.
    """
    is_cpu = metric.get("type") == "Resource" and value_at(metric, "resource", "name") == "cpu"
    return value_at(metric, "resource", word, "averageUtilization") if is_cpu else None


def _cpu_metric(word: str, value: JSONObject) -> JSONObject:
    return {"type": "Resource", "resource": {"name": "cpu", word: value}}


def _parts(obj: JSONObject) -> JSONObject:
    return {name: dict(obj.get(name) or {}) for name in ("spec", "status")}


def _to_v1(obj: JSONObject) -> JSONObject:
    parts, metadata = _parts(obj), dict(obj["metadata"])
    metrics = objects_at(parts, "spec", "metrics")
    if (cpu := next((one for one in metrics if _cpu(one, "target") is not None), None)) is not None:
        parts["spec"]["targetCPUUtilizationPercentage"] = _cpu(cpu, "target")
        parts["spec"]["metrics"] = [one for one in metrics if one is not cpu]
    for metric in objects_at(parts, "status", "currentMetrics"):
        if (used := _cpu(metric, "current")) is not None:
            parts["status"].setdefault("currentCPUUtilizationPercentage", used)
    texts = {}
    for part, field, annotation in _ANNOTATIONS:
        if value := parts[part].pop(field, None):
            texts[_PREFIX + annotation] = dumps(value).decode()
    if annotations := {**(metadata.get("annotations") or {}), **texts}:
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata, **parts}


def _from_v1(obj: JSONObject) -> JSONObject:
    parts, metadata = _parts(obj), dict(obj["metadata"])
    annotations = dict(metadata.pop("annotations", None) or {})
    for part, field, annotation in _ANNOTATIONS:
        with suppress(DecodeError):
            value = decode(annotations.pop(_PREFIX + annotation, "null").encode())
            if value and isinstance(value, dict if field == "behavior" else list):
                parts[part][field] = value
    target = parts["spec"].pop("targetCPUUtilizationPercentage", None)
    used = parts["status"].pop("currentCPUUtilizationPercentage", None)
    if target is not None:
        cpu = _cpu_metric("target", {"type": "Utilization", "averageUtilization": target})
        parts["spec"]["metrics"] = [*parts["spec"].get("metrics", ()), cpu]
    if used is not None:
        parts["status"].setdefault("currentMetrics", [_cpu_metric("current", {"averageUtilization": used})])
    if annotations:
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata, **parts}


CONVERSIONS: Final[Mapping[tuple[str, str], Conversion]] = {
    ("events.k8s.io/v1", "Event"): Conversion("v1", _renamed(_EVENT_FIELDS), _renamed(_CORE_EVENT_FIELDS)),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): Conversion("autoscaling/v2", _to_v1, _from_v1),
}
"""The conversions, by the served version and the kind."""
