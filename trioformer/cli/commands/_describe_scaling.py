"""Describes autoscalers (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ._describe_related import Objects, Related
from ._describe_text import Description, as_int, at, rfc1123, set_or_not

__all__ = ["SCALING"]

_UNKNOWN: Final = "<unknown>"


def _autoscaler(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    text.head(obj)
    text.field("CreationTimestamp", rfc1123(at(obj, "metadata", "creationTimestamp")))
    text.field("Reference", f"{target.get('kind', '')}/{target.get('name', '')}")
    if str(obj.get("apiVersion")).endswith("/v1"):
        _utilization(text, spec, status)
    else:
        _metrics(text, spec.get("metrics") or [], status.get("currentMetrics") or [])
    text.field("Min replicas", set_or_not(spec.get("minReplicas")))
    text.field("Max replicas", as_int(spec.get("maxReplicas")))
    if (behavior := spec.get("behavior")) is not None:
        text.line(0, "Behavior:")
        for name, key in (("Scale Up", "scaleUp"), ("Scale Down", "scaleDown")):
            _direction(text, name, behavior.get(key))
    current, desired = as_int(status.get("currentReplicas")), as_int(status.get("desiredReplicas"))
    text.field(f"{target.get('kind', '')} pods", f"{current} current / {desired} desired")
    if conditions := status.get("conditions"):
        text.line(0, "Conditions:")
        keys = ("type", "status", "reason", "message")
        text.table(("Type", "Status", "Reason", "Message"), [[each.get(key) for key in keys] for each in conditions])
    text.events(events)
    return text.render()


def _utilization(text: Description, spec: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    wanted = spec.get("targetCPUUtilizationPercentage")
    if wanted is not None:
        current = status.get("currentCPUUtilizationPercentage")
        text.field("Target CPU utilization", f"{wanted}%")
        text.field("Current CPU utilization", f"{_UNKNOWN if current is None else current}%")


def _metrics(text: Description, metrics: Objects, current: Objects) -> None:
    text.field("Metrics", "( current / target )")
    for index, metric in enumerate(metrics):
        measured = current[index] if index < len(current) else {}
        text.line(1, _metric(metric, measured))


def _metric(metric: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    kind = str(metric.get("type"))
    key = kind[:1].lower() + kind[1:]
    source, now = metric.get(key) or {}, at(measured, key, "current") or {}
    target = source.get("target") or {}
    name = json.dumps(at(source, "metric", "name") or "", ensure_ascii=False)
    match kind:
        case "Resource":
            return f"resource {source.get('name')} on pods{_of_pods(target, now, '  ')}"
        case "ContainerResource":
            container = json.dumps(source.get("container") or "", ensure_ascii=False)
            return f"resource {source.get('name')} of container {container} on pods{_of_pods(target, now, '  ')}"
        case "Pods":
            return f"{name} on pods:\t{_amounts(now, target, 'averageValue')}"
        case "Object":
            subject = source.get("describedObject") or {}
            return f"{name} on {subject.get('kind')}/{subject.get('name')} {_of_target(target, now)}"
        case "External":
            return f"{name} {_of_target(target, now)}"
    return f'<unknown metric type "{kind}">'


def _of_pods(target: Mapping[str, Any], now: Mapping[str, Any], space: str) -> str:
    if target.get("averageValue") is not None:
        return f":\t{_amounts(now, target, 'averageValue')}"
    used, wanted = now.get("averageUtilization"), target.get("averageUtilization")
    current = _UNKNOWN if used is None else f"{used}% ({now.get('averageValue', '<nil>')})"
    return f"{space}(as a percentage of request):\t{current} / {'<auto>' if wanted is None else f'{wanted}%'}"


def _of_target(target: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    key = "value" if target.get("averageValue") is None else "averageValue"
    name = "target value" if key == "value" else "target average value"
    return f"({name}):\t{_amounts(now, target, key)}"


def _amounts(now: Mapping[str, Any], target: Mapping[str, Any], key: str) -> str:
    return f"{now.get(key, _UNKNOWN)} / {target.get(key, '<nil>')}"


def _direction(text: Description, name: str, rules: Mapping[str, Any] | None) -> None:
    if rules is None:
        return
    text.line(1, f"{name}:")
    if (window := rules.get("stabilizationWindowSeconds")) is not None:
        text.line(2, f"Stabilization Window: {window} seconds")
    if policies := rules.get("policies"):
        text.line(2, f"Select Policy: {rules.get('selectPolicy', 'Max')}")
        text.line(2, "Policies:")
        for each in policies:
            period = f"Period: {as_int(each.get('periodSeconds'))} seconds"
            text.line(3, f"- Type: {each.get('type')}\tValue: {as_int(each.get('value'))}\t{period}")


SCALING: Final = {"horizontalpodautoscalers.autoscaling": _autoscaler}
