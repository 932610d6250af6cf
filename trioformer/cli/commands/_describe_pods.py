"""Describes pods, and the templates of pods (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...models import Quantity
from .._clock import age_of
from ..printing import sprint
from ._describe_storage import volume_lines
from ._describe_text import Description, as_int, at, controller_of, rfc1123, selector_text

__all__ = ["describe_pod", "describe_pod_template"]

_STANDARD: Final = ("cpu", "memory")


def describe_pod(pod: Mapping[str, Any], events: Sequence[Mapping[str, Any]] | None) -> str:
    """Return the description of a pod."""
    text = Description()
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    text.field("Name", at(pod, "metadata", "name"))
    text.field("Namespace", at(pod, "metadata", "namespace"))
    if spec.get("priority") is not None:
        text.field("Priority", spec["priority"])
    for name, key in (
        ("Priority Class Name", "priorityClassName"),
        ("Runtime Class Name", "runtimeClassName"),
        ("Service Account", "serviceAccountName"),
    ):
        if spec.get(key):
            text.field(name, spec[key])
    text.field("Node", f"{spec['nodeName']}/{status.get('hostIP') or ''}" if spec.get("nodeName") else "<none>")
    if status.get("startTime"):
        text.field("Start Time", rfc1123(status["startTime"]))
    text.labels("Labels", at(pod, "metadata", "labels"))
    text.annotations(at(pod, "metadata", "annotations"))
    deleted = at(pod, "metadata", "deletionTimestamp")
    if deleted and status.get("phase") not in ("Failed", "Succeeded"):
        text.field("Status", f"Terminating (lasts {age_of(deleted)})")
        text.field("Termination Grace Period", f"{as_int(at(pod, 'metadata', 'deletionGracePeriodSeconds'))}s")
    else:
        text.field("Status", status.get("phase") or "")
    for name, key in (("Reason", "reason"), ("Message", "message")):
        if status.get(key):
            text.field(name, status[key])
    _seccomp(text, spec, 0)
    text.field("IP", status.get("podIP") or "")
    addresses = status.get("podIPs") or []
    text.line(0, "IPs:" if addresses else "IPs:\t<none>")
    for each in addresses:
        text.field("IP", each.get("ip"), 1)
    if controller := controller_of(pod):
        text.field("Controlled By", controller)
    if status.get("nominatedNodeName"):
        text.field("NominatedNodeName", status["nominatedNodeName"])
    if spec.get("resources") is not None:
        text.line(0, "Resources:")
        _resources(text, spec["resources"], 1)
    if spec.get("initContainers"):
        _containers(text, "Init Containers", spec["initContainers"], status.get("initContainerStatuses"), "", pod)
    _containers(text, "Containers", spec.get("containers"), status.get("containerStatuses"), "", pod)
    if spec.get("ephemeralContainers"):
        statuses = status.get("ephemeralContainerStatuses")
        _containers(text, "Ephemeral Containers", spec["ephemeralContainers"], statuses, "", pod)
    _pod_conditions(text, spec, status)
    _volumes(text, spec.get("volumes"), "")
    text.field("QoS Class", status.get("qosClass") or _qos(spec))
    text.labels("Node-Selectors", spec.get("nodeSelector"))
    text.many("Tolerations", _tolerations(spec))
    _spread(text, spec, 0)
    _group(text, spec, 0)
    text.events(events)
    return text.render()


def describe_pod_template(text: Description, template: object) -> None:
    """Add the template of a workload's pods."""
    found = template if isinstance(template, Mapping) else {}
    spec = found.get("spec") or {}
    text.line(0, "Pod Template:")
    text.labels("Labels", at(found, "metadata", "labels"), 1)
    if at(found, "metadata", "annotations"):
        text.annotations(at(found, "metadata", "annotations"), 1)
    if spec.get("serviceAccountName"):
        text.field("Service Account", spec["serviceAccountName"], 1)
    if spec.get("initContainers"):
        _containers(text, "Init Containers", spec["initContainers"], None, "  ", None)
    _containers(text, "Containers", spec.get("containers"), None, "  ", None)
    _volumes(text, spec.get("volumes"), "  ")
    _spread(text, spec, 1)
    if spec.get("priorityClassName"):
        text.field("Priority Class Name", spec["priorityClassName"], 1)
    text.labels("Node-Selectors", spec.get("nodeSelector"), 1)
    text.many("Tolerations", _tolerations(spec), 1)
    _group(text, spec, 1)


def _pod_conditions(text: Description, spec: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    conditions = status.get("conditions") or []
    if spec.get("readinessGates"):
        states = {each.get("type"): each.get("status") for each in conditions}
        text.line(0, "Readiness Gates:\n  Type\tStatus")
        for gate in spec["readinessGates"]:
            kind = gate.get("conditionType")
            text.line(1, f"{kind} \t{states.get(kind, '<none>')} ")
    if conditions:
        text.line(0, "Conditions:\n  Type\tStatus")
        for each in conditions:
            text.line(1, f"{each.get('type')} \t{each.get('status')} ")


def _seccomp(text: Description, holder: Mapping[str, Any], level: int) -> None:
    profile = at(holder, "securityContext", "seccompProfile")
    if profile:
        text.field("SeccompProfile", profile.get("type"), level)
        if profile.get("type") == "Localhost":
            text.field("LocalhostProfile", profile.get("localhostProfile"), level + 1 if level else 0)


def _containers(
    text: Description, label: str, containers: Any, statuses: Any, space: str, pod: Mapping[str, Any] | None
) -> None:
    by_name = {each.get("name"): each for each in statuses or []}
    text.line(0, f"{space}{label}:{'' if containers else ' <none>'}")
    for container in containers or []:
        status = by_name.get(container.get("name"))
        _container_head(text, container, status, " " if space else "")
        for name, key in (("Command", "command"), ("Args", "args")):
            if container.get(key):
                text.line(2, f"{name}:")
                for argument in container[key]:
                    for line in str(argument).split("\n"):
                        text.line(3, line)
        if status is not None:
            _container_state(text, status)
        _resources(text, container.get("resources") or {})
        for name, key in (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")):
            if container.get(key):
                text.field(name, _probe(container[key]), 2)
        _environment(text, container, pod)
        _mounts(text, container)


def _container_head(text: Description, container: Mapping[str, Any], status: Any, indent: str) -> None:
    text.line(1, f"{indent}{container.get('name')}:")
    if status is not None:
        text.field("Container ID", status.get("containerID") or "", 2)
    text.field("Image", container.get("image") or "", 2)
    if status is not None:
        text.field("Image ID", status.get("imageID") or "", 2)
    ports = container.get("ports") or []
    for name, key in (("Port", "containerPort"), ("Host Port", "hostPort")):
        shown = [
            f"{as_int(port.get(key))}/{port.get('protocol') or ''}" + (f" ({port['name']})" if port.get("name") else "")
            for port in ports
        ]
        text.field(f"{name}s" if len(shown) > 1 else name, ", ".join(shown) or "<none>", 2)
    _seccomp(text, container, 2)


def _container_state(text: Description, status: Mapping[str, Any]) -> None:
    _state(text, "State", status.get("state") or {})
    if at(status, "lastState", "terminated"):
        _state(text, "Last State", status["lastState"])
    text.field("Ready", str(bool(status.get("ready"))), 2)
    text.field("Restart Count", as_int(status.get("restartCount")), 2)


def _state(text: Description, name: str, state: Mapping[str, Any]) -> None:
    if (running := state.get("running")) is not None:
        text.field(name, "Running", 2)
        text.field("Started", rfc1123(running.get("startedAt")), 3)
    elif (ended := state.get("terminated")) is not None:
        text.field(name, "Terminated", 2)
        for label, key in (("Reason", "reason"), ("Message", "message")):
            if ended.get(key):
                text.field(label, ended[key], 3)
        text.field("Exit Code", as_int(ended.get("exitCode")), 3)
        if ended.get("signal"):
            text.field("Signal", ended["signal"], 3)
        text.field("Started", rfc1123(ended.get("startedAt")), 3)
        text.field("Finished", rfc1123(ended.get("finishedAt")), 3)
    else:
        text.field(name, "Waiting", 2)
        if reason := at(state, "waiting", "reason"):
            text.field("Reason", reason, 3)


def _resources(text: Description, resources: Mapping[str, Any], level: int = 2) -> None:
    for name, key in (("Limits", "limits"), ("Requests", "requests")):
        amounts = resources.get(key) or {}
        if amounts:
            text.line(level, f"{name}:")
        for each in sorted(amounts):
            text.field(each, amounts[each], level + 1)


def _probe(probe: Mapping[str, Any]) -> str:
    values = (
        ("delay", "initialDelaySeconds", "s"),
        ("timeout", "timeoutSeconds", "s"),
        ("period", "periodSeconds", "s"),
        ("#success", "successThreshold", ""),
        ("#failure", "failureThreshold", ""),
    )
    rest = " ".join(f"{name}={as_int(probe.get(key))}{unit}" for name, key, unit in values)
    if (command := probe.get("exec")) is not None:
        return f"exec {sprint(command.get('command') or [])} {rest}"
    if (http := probe.get("httpGet")) is not None:
        scheme = f"{str(http['scheme']).lower()}:" if http.get("scheme") else ""
        return f"http-get {scheme}//{http.get('host') or ''}:{http.get('port')}{http.get('path') or ''} {rest}"
    if (tcp := probe.get("tcpSocket")) is not None:
        return f"tcp-socket {tcp.get('host') or ''}:{tcp.get('port')} {rest}"
    if (grpc := probe.get("grpc")) is not None:
        return f"grpc <pod>:{grpc.get('port')} {grpc.get('service') or ''} {rest}"
    return f"unknown {rest}"


def _environment(text: Description, container: Mapping[str, Any], pod: Mapping[str, Any] | None) -> None:
    if sources := container.get("envFrom"):
        text.line(2, "Environment Variables from:")
        for each in sources:
            kind, ref = (
                ("ConfigMap", each["configMapRef"]) if each.get("configMapRef") else ("Secret", each.get("secretRef"))
            )
            found = ref or {}
            prefix = f" with prefix '{each['prefix']}'" if each.get("prefix") else ""
            optional = str(bool(found.get("optional"))).lower()
            text.line(3, f"{found.get('name', '')}\t{kind}{prefix}\tOptional: {optional}")
    variables = container.get("env") or []
    text.line(2, "Environment:" if variables else "Environment:\t<none>")
    for each in variables:
        source = each.get("valueFrom")
        if source is None:
            first, *more = str(each.get("value") or "").split("\n")
            text.field(each.get("name"), first, 3)
            for line in more:
                text.line(3, f"\t{line}")
        else:
            text.field(each.get("name"), _value_from(source, container, pod), 3)


def _value_from(source: Mapping[str, Any], container: Mapping[str, Any], pod: Mapping[str, Any] | None) -> str:
    if (field := source.get("fieldRef")) is not None:
        path = str(field.get("fieldPath", ""))
        value = "" if pod is None else _value_at(pod, path)
        return f"{value} ({field.get('apiVersion', '')}:{path})"
    if (amount := source.get("resourceFieldRef")) is not None:
        name = str(amount.get("resource", ""))
        number = _amount(at(container, "resources", *name.split(".", 1)), amount.get("divisor"))
        missing = not number and name in ("limits.cpu", "limits.memory")
        return f"{'node allocatable' if missing else number} ({name})"
    for key, where in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        if (ref := source.get(key)) is not None:
            optional = str(bool(ref.get("optional"))).lower()
            return f"<set to the key '{ref.get('key')}' {where} '{ref.get('name')}'>\tOptional: {optional}"
    return ""


def _value_at(pod: Mapping[str, Any], path: str) -> str:
    """Return the value of a field that kubectl looks up: neither single labels nor the status."""
    name = path.removeprefix("metadata.")
    if name in ("labels", "annotations"):
        values = at(pod, "metadata", name) or {}
        return "\n".join(f"{key}={json.dumps(values[key], ensure_ascii=False)}" for key in sorted(values))
    return str(at(pod, "metadata", name) or "") if name in ("name", "namespace", "uid") and name != path else ""


def _amount(amount: object, divisor: object) -> int:
    """Return how often a divisor is in an amount, rounded up; 0 without an amount."""
    if amount is None:
        return 0
    return math.ceil(Quantity(str(amount)).value / (Quantity(str(divisor or "1")).value or 1))


def _mounts(text: Description, container: Mapping[str, Any]) -> None:
    mounts = sorted(container.get("volumeMounts") or [], key=lambda mount: str(mount.get("mountPath")))
    text.line(2, "Mounts:" if mounts else "Mounts:\t<none>")
    for mount in mounts:
        modes = ["ro" if mount.get("readOnly") else "rw"]
        if mount.get("subPath"):
            modes.append(f"path={json.dumps(mount['subPath'])}")
        text.line(3, f"{mount.get('mountPath')} from {mount.get('name')} ({','.join(modes)})")
    devices = sorted(container.get("volumeDevices") or [], key=lambda device: str(device.get("devicePath")))
    if devices:
        text.line(2, "Devices:" if mounts else "Devices:\t<none>")
    for device in devices:
        text.line(3, f"{device.get('devicePath')} from {device.get('name')}")


def _volumes(text: Description, volumes: Any, space: str) -> None:
    if not volumes:
        text.line(0, f"{space}Volumes:\t<none>")
        return
    text.line(0, f"{space}Volumes:")
    for volume in volumes:
        text.line(1, f"{' ' if space else ''}{volume.get('name')}:")
        for line in volume_lines(volume):
            text.line(2, line)


def _spread(text: Description, spec: Mapping[str, Any], level: int) -> None:
    constraints = spec.get("topologySpreadConstraints") or []
    texts = []
    for each in sorted(constraints, key=lambda one: str(one.get("topologyKey"))):
        selector = each.get("labelSelector")
        ending = "" if selector is None else f" for selector {selector_text(selector)}"
        skew = f"when max skew {as_int(each.get('maxSkew'))} is exceeded"
        texts.append(f"{each.get('topologyKey')}:{each.get('whenUnsatisfiable')} {skew}{ending}")
    if texts:
        text.many("Topology Spread Constraints", texts, level)


def _group(text: Description, spec: Mapping[str, Any], level: int) -> None:
    if group := spec.get("schedulingGroup"):
        text.line(level, "SchedulingGroup:")
        text.field("PodGroupName", group.get("podGroupName") or "", 1)


def _tolerations(spec: Mapping[str, Any]) -> list[str]:
    texts = []
    for each in sorted(spec.get("tolerations") or [], key=lambda one: str(one.get("key") or "")):
        key, value, effect = (str(each.get(name) or "") for name in ("key", "value", "effect"))
        text = key + (f"={value}" if value else "") + (f":{effect}" if effect else "")
        if each.get("operator") == "Exists" and not value:
            text += " op=Exists" if text else "op=Exists"
        if each.get("tolerationSeconds") is not None:
            text += f" for {each['tolerationSeconds']}s"
        texts.append(text)
    return texts


def _qos(spec: Mapping[str, Any]) -> str:
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    resources = [each.get("resources") or {} for each in containers]
    if not any(at(each, key, name) for each in resources for key in ("limits", "requests") for name in _STANDARD):
        return "BestEffort"
    for each in resources:
        for name in _STANDARD:
            limit = at(each, "limits", name)
            if not limit or at(each, "requests", name) not in (None, limit):
                return "Burstable"
    return "Guaranteed"
