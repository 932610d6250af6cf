"""The built-in kinds that are served in a version other than the one in which they are stored.

Events of the group ``events.k8s.io`` are stored as Events of the core group, with other names of some fields.
A HorizontalPodAutoscaler in ``autoscaling/v1`` is stored in ``v2``.  Fields that ``v1`` does not have are annotations
in ``v1``.

The managed fields are not converted: if a client changes a field that has another name in another version, the managers
in that version still own the field.

Source: kubernetes ``pkg/apis/events/v1/conversion.go`` and ``pkg/apis/autoscaling/v1/conversion.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, final

import attrs

from ...errors import DecodeError
from ...models._internal import decode, dumps
from ._storage import JSONObject


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
_METRICS: Final[Mapping[str, Mapping[str, str]]] = {
    "Resource": {
        "name": "name",
        "{}AverageUtilization": "{}.averageUtilization",
        "{}AverageValue": "{}.averageValue",
    },
    "ContainerResource": {
        "name": "name",
        "{}AverageUtilization": "{}.averageUtilization",
        "{}AverageValue": "{}.averageValue",
        "container": "container",
    },
    "Pods": {"metricName": "metric.name", "{}AverageValue": "{}.averageValue", "selector": "metric.selector"},
    "Object": {
        "target": "describedObject",
        "metricName": "metric.name",
        "{}Value": "{}.value",
        "selector": "metric.selector",
        "averageValue": "{}.averageValue",
    },
    "External": {
        "metricName": "metric.name",
        "metricSelector": "metric.selector",
        "{}Value": "{}.value",
        "{}AverageValue": "{}.averageValue",
    },
}
"""The fields of each type of metric in ``v1``, and their paths in ``v2``.  ``{}`` is ``target`` in the spec, and
``current`` in the status."""
_TARGETS: Final = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}


def _member(kind: str) -> str:
    return kind[:1].lower() + kind[1:]


def _pairs(kind: str, word: str) -> Iterator[tuple[str, list[str]]]:
    for name, path in _METRICS.get(kind, {}).items():
        yield name.format(word), path.format(word).split(".")


def _v1_metric(metric: JSONObject, word: str) -> JSONObject:
    """Return a metric in ``v1``.  ``word`` is ``target`` or ``current``."""
    kind = str(metric.get("type"))
    given, converted = metric.get(_member(kind)) or {}, {}
    for name, path in _pairs(kind, word):
        value = given
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            converted[name] = value
    return {"type": kind, _member(kind): converted}


def _v2_metric(metric: JSONObject, word: str) -> JSONObject:
    """Return a metric in ``v2``.  ``word`` is ``target`` or ``current``."""
    kind = str(metric.get("type"))
    given, converted = metric.get(_member(kind)) or {}, JSONObject()
    for name, path in _pairs(kind, word):
        if isinstance(given, dict) and name in given:
            parent = converted if len(path) == 1 else converted.setdefault(path[0], {})
            parent[path[-1]] = given[name]
    target = converted.get("target")
    if word == "target" and target:
        target["type"] = next(text for name, text in _TARGETS.items() if name in target)
    return {"type": kind, _member(kind): converted}


def _cpu_utilization(metric: JSONObject, word: str) -> Any:
    resource = metric.get("resource") if metric.get("type") == "Resource" else None
    if not isinstance(resource, dict) or resource.get("name") != "cpu":
        return None
    value = resource.get(word)
    return value.get("averageUtilization") if isinstance(value, dict) else None


def _cpu(utilization: Any, word: str) -> JSONObject:
    kind = {"type": "Utilization"} if word == "target" else {}
    return {"type": "Resource", "resource": {"name": "cpu", word: {**kind, "averageUtilization": utilization}}}


def _with_initials(value: Any, change: Callable[[str], str]) -> Any:
    """Change the first letters of all keys.  The annotation for the behavior contains the fields of a Go struct."""
    if isinstance(value, dict):
        return {change(key[:1]) + key[1:]: _with_initials(one, change) for key, one in value.items() if one is not None}
    return [_with_initials(one, change) for one in value] if isinstance(value, list) else value


def _objects(value: object) -> list[JSONObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _to_v1(obj: JSONObject) -> JSONObject:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, current = _objects(spec.pop("metrics", None)), _objects(status.pop("currentMetrics", None))
    values = {
        "behavior": _with_initials(spec.pop("behavior", None), str.upper),
        "conditions": status.pop("conditions", None),
        "current-metrics": [_v1_metric(metric, "current") for metric in current],
    }
    cpu = next((metric for metric in metrics if _cpu_utilization(metric, "target") is not None), None)
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = _cpu_utilization(cpu, "target")
    values["metrics"] = [_v1_metric(metric, "target") for metric in metrics if metric is not cpu]
    used = [found for metric in current if (found := _cpu_utilization(metric, "current")) is not None]
    if used:
        status["currentCPUUtilizationPercentage"] = used[0]
    texts = {_PREFIX + name: dumps(value).decode() for name, value in sorted(values.items()) if value}
    metadata = dict(obj["metadata"])
    if annotations := {**(metadata.get("annotations") or {}), **texts}:
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata, "spec": spec, "status": status}


def _from_v1(obj: JSONObject) -> JSONObject:
    spec, status, metadata = dict(obj.get("spec") or {}), dict(obj.get("status") or {}), dict(obj["metadata"])
    annotations = dict(metadata.pop("annotations", None) or {})

    def taken(name: str) -> Any:
        try:
            return decode(annotations.pop(_PREFIX + name, "null").encode())
        except DecodeError:
            return None

    metrics = [_v2_metric(metric, "target") for metric in _objects(taken("metrics"))]
    if (target := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        metrics.append(_cpu(target, "target"))
    current = [_v2_metric(metric, "current") for metric in _objects(taken("current-metrics"))]
    used = status.pop("currentCPUUtilizationPercentage", None)
    if used is not None and not current:
        current = [_cpu(used, "current")]
    behavior, conditions = taken("behavior"), _objects(taken("conditions"))
    if behavior:
        spec["behavior"] = _with_initials(behavior, str.lower)
    for part, name, value in (
        (spec, "metrics", metrics),
        (status, "currentMetrics", current),
        (status, "conditions", conditions),
    ):
        if value:
            part[name] = value
    if annotations:
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata, "spec": spec, "status": status}


CONVERSIONS: Final[Mapping[tuple[str, str], Conversion]] = {
    ("events.k8s.io/v1", "Event"): Conversion("v1", _renamed(_EVENT_FIELDS), _renamed(_CORE_EVENT_FIELDS)),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): Conversion("autoscaling/v2", _to_v1, _from_v1),
}
"""The conversions, by the served version and the kind."""
