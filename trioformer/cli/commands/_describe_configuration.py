"""Describes ConfigMaps, Secrets, namespaces and what limits them (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ._describe_related import Objects, Related
from ._describe_text import Description, as_int, at, pairs_text

__all__ = ["CONFIGURATION"]

_LIMITS: Final = ("Type", "Resource", "Min", "Max", "Default Request", "Default Limit", "Max Limit/Request Ratio")
_SCOPES: Final = {
    "Terminating": "Matches all pods that have an active deadline. These pods have a limited lifespan on a node before "
    "being actively terminated by the system.",
    "NotTerminating": "Matches all pods that do not have an active deadline. These pods usually include long running "
    "pods whose container command is not expected to terminate.",
    "BestEffort": "Matches all pods that do not have resource requirements set. These pods have a best effort quality "
    "of service.",
    "NotBestEffort": "Matches all pods that have at least one resource requirement set. These pods have a burstable or "
    "guaranteed quality of service.",
}


def _config_map(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj)
    text.line(0, "\nData\n====")
    data = obj.get("data") or {}
    for key in sorted(data):
        text.line(0, f"{key}:\n----\n{data[key]}\n")
    text.line(0, "\nBinaryData\n====")
    binary = obj.get("binaryData") or {}
    for key in sorted(binary):
        text.line(0, f"{key}: {_size(binary[key])} bytes")
    text.line(0, "")
    text.events(events)
    return text.render()


def _secret(obj: Mapping[str, Any], _: Objects | None, __: Related) -> str:
    text = Description()
    text.head(obj)
    text.line(0, f"\nType:\t{obj.get('type') or ''}")
    text.line(0, "\nData\n====")
    data = obj.get("data") or {}
    for key in sorted(data):
        text.field(key, f"{_size(data[key])} bytes")
    return text.render()


def _size(encoded: object) -> int:
    return len(base64.b64decode(str(encoded)))


def _namespace(obj: Mapping[str, Any], _: Objects | None, related: Related) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    text.field("Status", at(obj, "status", "phase") or "")
    text.dated_conditions(at(obj, "status", "conditions"))
    text.line(0, "")
    _quotas(text, related.get("resourcequotas") or ())
    text.line(0, "")
    ranges = related.get("limitranges") or ()
    if not ranges:
        text.line(0, "No LimitRange resource.")
    else:
        text.line(0, "Resource Limits\n " + "\t".join(_LIMITS))
        text.line(0, " " + "\t".join("-" * len(name) for name in _LIMITS))
        for each in ranges:
            for row in _limit_rows(each):
                text.line(0, " " + "\t".join(row))
    return text.render()


def _quotas(text: Description, quotas: Objects) -> None:
    if not quotas:
        text.line(0, "No resource quota.")
        return
    text.line(0, "Resource Quotas")
    for quota in sorted(quotas, key=lambda each: str(at(each, "metadata", "name"))):
        text.field("Name", at(quota, "metadata", "name"), 1)
        _scopes(text, quota, 1, "* ")
        text.line(1, "Resource\tUsed\tHard")
        text.line(1, "--------\t---\t---")
        for row in _quota_rows(quota):
            text.line(1, "\t".join(row))


def _scopes(text: Description, quota: Mapping[str, Any], level: int, bullet: str) -> None:
    if scopes := sorted(at(quota, "spec", "scopes") or []):
        text.field("Scopes", ", ".join(scopes), level)
        for scope in scopes:
            if scope in _SCOPES:
                text.line(level, f"{bullet}{_SCOPES[scope]}")


def _quota_rows(quota: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    hard, used = (at(quota, "status", key) or {} for key in ("hard", "used"))
    for name in sorted(hard):
        yield name, str(used.get(name, "0")), str(hard[name])


def _limit_rows(limit_range: Mapping[str, Any]) -> Iterator[list[str]]:
    keys = ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")
    for item in at(limit_range, "spec", "limits") or []:
        for name in sorted({name for key in keys for name in item.get(key) or {}}):
            yield [str(item.get("type")), name, *(str((item.get(key) or {}).get(name, "-")) for key in keys)]


def _limit_range(obj: Mapping[str, Any], _: Objects | None, __: Related) -> str:
    text = Description()
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Namespace", at(obj, "metadata", "namespace") or "")
    text.table(_LIMITS, _limit_rows(obj), 0)
    return text.render()


def _resource_quota(obj: Mapping[str, Any], _: Objects | None, __: Related) -> str:
    text = Description()
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Namespace", at(obj, "metadata", "namespace") or "")
    _scopes(text, obj, 0, " * ")
    text.table(("Resource", "Used", "Hard"), _quota_rows(obj), 0)
    return text.render()


def _priority_class(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Value", as_int(obj.get("value")))
    text.field("GlobalDefault", str(bool(obj.get("globalDefault"))).lower())
    text.field("PreemptionPolicy", obj.get("preemptionPolicy") or "")
    text.field("Description", obj.get("description") or "")
    text.field("Annotations", pairs_text(at(obj, "metadata", "annotations")))
    text.events(events)
    return text.render()


CONFIGURATION: Final = {
    "configmaps": _config_map,
    "limitranges": _limit_range,
    "namespaces": _namespace,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "resourcequotas": _resource_quota,
    "secrets": _secret,
}
