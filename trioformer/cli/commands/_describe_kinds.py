"""Describes the kinds that are described most, and every other one by its fields (kubectl ``pkg/describe``)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..printing import sprint
from ._describe_pods import describe_pod, describe_pod_template
from ._describe_text import Description, as_int, at, controller_of, rfc1123, selector_text

__all__ = ["DESCRIBERS", "Objects", "describe_fields"]

Objects = Sequence[Mapping[str, Any]]
_WORD: Final = re.compile(r"[A-Z]{3,}[a-z]+|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
"""Words of a name; several capitals and the letters behind them are one, such as ``URLs``."""
_ACRONYMS: Final = ("API", "URL", "UID", "GUID")
_SKIPPED: Final = {f".metadata.{name}" for name in ("managedFields", "name", "namespace", "labels", "annotations")}


def describe_fields(obj: Mapping[str, Any], events: Objects | None) -> str:
    """Return the description of an object of any kind: all its fields."""
    text = Description()
    text.head(obj)
    _fields(text, 0, obj, "")
    text.events(events)
    return text.render()


def _fields(text: Description, level: int, content: Mapping[str, Any], prefix: str) -> None:
    for name in sorted(content):
        value, path = content[name], f"{prefix}.{name}"
        if path in _SKIPPED:
            continue
        label = _label(name)
        if isinstance(value, Mapping):
            text.line(level, f"{label}:")
            _fields(text, level + 1, value, path)
        elif isinstance(value, list):
            text.line(level, f"{label}:")
            for each in value:
                if isinstance(each, Mapping):
                    _fields(text, level + 1, each, path)
                else:
                    text.line(level + 1, sprint(each))
        else:
            text.field(label, sprint(value), level)


def _label(name: str) -> str:
    """Return words for the name of a field: ``apiVersion`` becomes ``API Version``."""
    if not all(character.isalpha() or character == "-" for character in name):
        return name
    words = []
    for word in _WORD.findall(name):
        if word.upper() in _ACRONYMS:
            words.append(word.upper())
        else:
            words.append(word.title() if word.islower() else word)
    return " ".join(words)


def _config_map(obj: Mapping[str, Any], events: Objects | None, _: Objects) -> str:
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


def _secret(obj: Mapping[str, Any], _: Objects | None, __: Objects) -> str:
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


def _namespace(obj: Mapping[str, Any], _: Objects | None, __: Objects) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    text.field("Status", at(obj, "status", "phase") or "")
    text.line(0, "\nNo resource quota.")
    text.line(0, "\nNo LimitRange resource.")
    return text.render()


def _service(obj: Mapping[str, Any], events: Objects | None, slices: Objects) -> str:
    text = Description()
    spec = obj.get("spec") or {}
    text.head(obj)
    selector = spec.get("selector") or {}
    text.field("Selector", ",".join(f"{key}={selector[key]}" for key in sorted(selector)) or "<none>")
    text.field("Type", spec.get("type") or "")
    if spec.get("ipFamilyPolicy"):
        text.field("IP Family Policy", spec["ipFamilyPolicy"])
    text.field("IP Families", ",".join(spec.get("ipFamilies") or []) or "<none>")
    text.field("IP", spec.get("clusterIP") or "")
    text.field("IPs", ",".join(spec.get("clusterIPs") or []) or "<none>")
    for name, value in (
        ("External IPs", ",".join(spec.get("externalIPs") or [])),
        ("Desired LoadBalancer IP", spec.get("loadBalancerIP")),
        ("External Name", spec.get("externalName")),
        ("LoadBalancer Ingress", _ingress(at(obj, "status", "loadBalancer", "ingress"))),
    ):
        if value:
            text.field(name, value)
    for port in spec.get("ports") or []:
        name, protocol = port.get("name") or "<unset>", port.get("protocol") or ""
        text.field("Port", f"{name}\t{port.get('port')}/{protocol}")
        text.field("TargetPort", f"{port.get('targetPort', port.get('port'))}/{protocol}")
        if port.get("appProtocol"):
            text.field("AppProtocol", port["appProtocol"])
        if port.get("nodePort"):
            text.field("NodePort", f"{name}\t{port['nodePort']}/{protocol}")
        text.field("Endpoints", _endpoints(slices, port.get("name") or ""))
    text.field("Session Affinity", spec.get("sessionAffinity") or "")
    for name, value in (
        ("External Traffic Policy", spec.get("externalTrafficPolicy")),
        ("Internal Traffic Policy", spec.get("internalTrafficPolicy")),
        ("HealthCheck NodePort", spec.get("healthCheckNodePort")),
        ("LoadBalancer Source Ranges", ",".join(spec.get("loadBalancerSourceRanges") or [])),
        ("Traffic Distribution", spec.get("trafficDistribution")),
    ):
        if value:
            text.field(name, value)
    text.events(events)
    return text.render()


def _ingress(ingress: Any) -> str:
    texts = []
    for each in ingress or []:
        mode = f" ({each['ipMode']})" if each.get("ipMode") else ""
        texts.append(f"{each['ip']}{mode}" if each.get("ip") else str(each.get("hostname", "")))
    return ", ".join(texts)


def _endpoints(slices: Objects, name: str) -> str:
    if not slices:
        return "<none>"
    found: list[str] = []
    for each in slices:
        for port in each.get("ports") or []:
            if (port.get("name") or "") != name:
                continue
            for endpoint in each.get("endpoints") or []:
                if at(endpoint, "conditions", "ready") is False:
                    continue
                for address in endpoint.get("addresses") or []:
                    host = f"[{address}]" if ":" in address else address
                    found.append(f"{host}:{port.get('port')}")
    shown = ",".join(found[:3])
    return f"{shown} + {len(found) - 3} more..." if len(found) > 3 else shown


def _deployment(obj: Mapping[str, Any], events: Objects | None, replica_sets: Objects) -> str:
    text = Description()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Namespace", at(obj, "metadata", "namespace"))
    text.field("CreationTimestamp", rfc1123(at(obj, "metadata", "creationTimestamp")))
    text.labels("Labels", at(obj, "metadata", "labels"))
    text.annotations(at(obj, "metadata", "annotations"))
    text.field("Selector", selector_text(spec.get("selector")))
    counts = [
        f"{as_int(status.get(key))} {word}"
        for word, key in (
            ("updated", "updatedReplicas"),
            ("total", "replicas"),
            ("available", "availableReplicas"),
            ("unavailable", "unavailableReplicas"),
        )
    ]
    text.field("Replicas", " | ".join([f"{spec.get('replicas', 1)} desired", *counts]))
    text.field("StrategyType", at(spec, "strategy", "type") or "")
    text.field("MinReadySeconds", as_int(spec.get("minReadySeconds")))
    if (rolling := at(spec, "strategy", "rollingUpdate")) is not None:
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        text.field("RollingUpdateStrategy", f"{unavailable} max unavailable, {surge} max surge")
    describe_pod_template(text, spec.get("template"))
    text.conditions(obj)
    if replica_sets:
        key = "deployment.kubernetes.io/revision"
        revision = at(obj, "metadata", "annotations", key)
        new = [each for each in replica_sets if at(each, "metadata", "annotations", key) == revision]
        text.field("OldReplicaSets", _replica_sets([each for each in replica_sets if each not in new]))
        text.field("NewReplicaSet", _replica_sets(new))
    text.events(events)
    return text.render()


def _replica_sets(found: Objects) -> str:
    texts = []
    for each in found:
        created, wanted = as_int(at(each, "status", "replicas")), as_int(at(each, "spec", "replicas"))
        texts.append(f"{at(each, 'metadata', 'name')} ({created}/{wanted} replicas created)")
    return ", ".join(texts) or "<none>"


def _replica_set(obj: Mapping[str, Any], events: Objects | None, pods: Objects) -> str:
    text = Description()
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Namespace", at(obj, "metadata", "namespace"))
    text.field("Selector", selector_text(at(obj, "spec", "selector")))
    text.labels("Labels", at(obj, "metadata", "labels"))
    text.annotations(at(obj, "metadata", "annotations"))
    if controller := controller_of(obj):
        text.field("Controlled By", controller)
    current, desired = as_int(at(obj, "status", "replicas")), as_int(at(obj, "spec", "replicas"))
    text.field("Replicas", f"{current} current / {desired} desired")
    phases = [at(pod, "status", "phase") for pod in pods]
    words = (("Running", "Running"), ("Waiting", "Pending"), ("Succeeded", "Succeeded"), ("Failed", "Failed"))
    text.field("Pods Status", " / ".join(f"{phases.count(phase)} {word}" for word, phase in words))
    describe_pod_template(text, at(obj, "spec", "template"))
    text.conditions(obj)
    text.events(events)
    return text.render()


def _pod(obj: Mapping[str, Any], events: Objects | None, _: Objects) -> str:
    return describe_pod(obj, events)


DESCRIBERS: Final[Mapping[str, Callable[[Mapping[str, Any], Objects | None, Objects], str]]] = {
    "configmaps": _config_map,
    "deployments.apps": _deployment,
    "namespaces": _namespace,
    "pods": _pod,
    "replicasets.apps": _replica_set,
    "secrets": _secret,
    "services": _service,
}
"""What describes an object, by its resource; it is given the object, its events and what belongs to it."""
