"""The rules for built-in objects that depend on several fields or on the state before an update.

The table ``fixed_fields.txt`` has a line for each resource with fields that do not change: ``fixed`` are their paths,
or ``free`` are the other fields of the spec, and ``problem`` is the one with a change.  The table
``secret_types.txt`` has the keys that the data of a Secret of a type must have.

Source: kubernetes ``pkg/apis/*/validation/validation.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from ...errors import SelectorError
from ...models import Quantity
from ...models._internal import decode, dumps
from ._default_rules import WRONG_TYPE
from ._field_errors import Verbatim, duplicate, forbidden, invalid_value, not_supported, required, shown
from ._kinds import ServedKind
from ._metadata import json_equal
from ._release import INSTALLED
from ._selection import selector_in
from ._status import cause
from ._storage import JSONObject
from ._values import value_at

NODE_PORTS: Final = range(30_000, 32_768)
"""The ports that kube-apiserver allocates by default."""
_HIGHEST_PRIORITY: Final = 1_000_000_000
_SYSTEM_PRIORITIES: Final = ("system-cluster-critical", "system-node-critical")

Check = Callable[[JSONObject, str], Iterator[JSONObject]]
"""A function that yields the causes of an object's errors.  It takes the object and its path."""

# --- pods -------------------------------------------------------------------------------------------------------------


def _pod_spec(spec: JSONObject, path: str, more_volumes: tuple[str, ...] = ()) -> Iterator[JSONObject]:
    volumes = {*more_volumes, *(one.get("name") for one in spec.get("volumes") or ())}
    for member in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(member) or ()):
            where, seen = f"{path}.{member}[{i}]", set()
            for j, mount in enumerate(container.get("volumeMounts") or ()):
                at = f"{where}.volumeMounts[{j}]"
                if mount.get("name", "") not in volumes:
                    yield cause("FieldValueNotFound", f"Not found: {shown(mount.get('name', ''))}", f"{at}.name")
                if mount.get("mountPath") in seen:
                    yield invalid_value(f"{at}.mountPath", mount["mountPath"], "must be unique")
                seen.add(mount.get("mountPath"))
            resources = container.get("resources") or {}
            limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
            for name in sorted(requests.keys() & limits.keys()):
                if Quantity(requests[name]) > Quantity(limits[name]):
                    problem = f"must be less than or equal to {name} limit of {limits[name]}"
                    yield invalid_value(f"{where}.resources.requests", requests[name], problem)


def _variable(variable: JSONObject, path: str) -> Iterator[JSONObject]:
    if (source := variable.get("valueFrom")) is None:
        return
    if not source:
        kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid_value(f"{path}.valueFrom", "", f"must specify one of: {kinds}")
    elif variable.get("value"):
        yield invalid_value(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield invalid_value(f"{path}.valueFrom", "", "may not have more than one field specified at a time")


# --- workloads --------------------------------------------------------------------------------------------------------


def _expression(expression: JSONObject, path: str) -> Iterator[JSONObject]:
    operator, values = expression.get("operator"), expression.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator not in ("Exists", "DoesNotExist"):
        yield invalid_value(f"{path}.operator", operator or "", "not a valid selector operator")
    elif values:
        yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")


def _selector(kind: str) -> Check:
    def check(spec: JSONObject, path: str) -> Iterator[JSONObject]:
        selector, labels = spec.get("selector"), (spec["template"].get("metadata") or {}).get("labels")
        if selector is not None and not any(selector.values()) and kind:
            yield invalid_value(f"{path}.selector", selector, f"empty selector is invalid for {kind}")
        try:
            is_matched = selector is not None and selector_in(selector).matches(labels or {})
        except SelectorError:
            if kind != "daemonset":
                detail = "invalid label selector" if kind == "deployment" else ""
                yield invalid_value(f"{path}.selector", selector, detail)
            return
        if not is_matched:
            problem = "`selector` does not match template `labels`"
            yield invalid_value(f"{path}.template.metadata.labels", labels, problem)

    return check


def _template(kind: str) -> Check:
    """Return the check of the pods of a controller, which always restarts them."""

    def check(spec: JSONObject, path: str) -> Iterator[JSONObject]:
        pod, where = spec["template"].get("spec") or {}, f"{path}.template.spec"
        claims = spec.get("volumeClaimTemplates") or ()
        yield from _pod_spec(pod, where, tuple(one["metadata"]["name"] for one in claims))
        if pod.get("restartPolicy", "Always") != "Always":
            yield not_supported(f"{where}.restartPolicy", pod["restartPolicy"], ["Always"])
        if pod.get("activeDeadlineSeconds") is not None:
            yield forbidden(f"{where}.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")

    return check


def _deadline(spec: JSONObject, path: str) -> Iterator[JSONObject]:
    if spec.get("progressDeadlineSeconds", 1) <= spec.get("minReadySeconds", 0):
        deadline = spec["progressDeadlineSeconds"]
        yield invalid_value(f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _job_template(spec: JSONObject, path: str) -> Iterator[JSONObject]:
    where, policy = f"{path}.template.spec", (spec["template"].get("spec") or {}).get("restartPolicy")
    yield from _pod_spec(spec["template"].get("spec") or {}, where)
    allowed = ["OnFailure", "Never"]
    if not policy or policy == "Always":
        yield required(f"{where}.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in allowed:
        yield not_supported(f"{where}.restartPolicy", policy, allowed)
    if spec.get("selector") is not None:
        yield from _selector("")(spec, path)


_CRON: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""The limits of the fields of a schedule: minute, hour, day of the month, month and day of the week."""
_SCHEDULES: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def _schedule_problem(schedule: str) -> str:
    fields = schedule.split()
    if schedule.startswith("@"):
        is_known = schedule in _SCHEDULES or schedule.startswith("@every ")
        return "" if is_known else f"unrecognized descriptor: {schedule}"
    if len(fields) != len(_CRON):
        return f"expected exactly {len(_CRON)} fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (low, high) in zip(fields, _CRON, strict=True):
        for part in field.split(","):
            numbers = [int(one) for one in re.findall(r"\d+", part.partition("/")[0])]
            if (first := min(numbers, default=low)) < low:
                return f"beginning of range ({first}) below minimum ({low}): {part}"
            if (last := max(numbers, default=high)) > high:
                return f"end of range ({last}) above maximum ({high}): {part}"
    return ""


def _schedule(spec: JSONObject, path: str) -> Iterator[JSONObject]:
    schedule = spec.get("schedule")
    if schedule and (problem := _schedule_problem(schedule)):
        yield invalid_value(f"{path}.schedule", schedule, problem)


def _priority(priority: JSONObject, path: str) -> Iterator[JSONObject]:
    name = priority["metadata"]["name"]
    if name.startswith("system-"):
        if name not in _SYSTEM_PRIORITIES:
            reserved = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden("metadata.name", f"{reserved}. error: {name} is not a known system priority class")
    elif priority.get("value", 0) > _HIGHEST_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}")


# --- services and configuration ---------------------------------------------------------------------------------------


def _service_ports(spec: JSONObject, path: str) -> Iterator[JSONObject]:
    ports, kind, is_headless = spec.get("ports") or (), spec.get("type"), spec.get("clusterIP") == "None"
    if not ports and not is_headless and kind != "ExternalName":
        yield required(f"{path}.ports")
    if is_headless and kind in ("LoadBalancer", "NodePort"):
        yield invalid_value(f"{path}.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        if spec.get("clusterIPs") or spec.get("clusterIP"):
            yield forbidden(f"{path}.clusterIPs", "may not be set for ExternalName services")
        if not spec.get("externalName"):
            yield required(f"{path}.externalName")
    names = set()
    for i, port in enumerate(ports):
        name = port.get("name")
        if not name and len(ports) > 1:
            yield required(f"{path}.ports[{i}].name")
        elif name in names:
            yield duplicate(f"{path}.ports[{i}].name", name)
        names |= {name} if name else set()


def _service_type(spec: JSONObject, path: str) -> Iterator[JSONObject]:
    seen = set()
    for i, port in enumerate(spec.get("ports") or ()):
        number, where = port.get("nodePort"), f"{path}.ports[{i}].nodePort"
        if number and spec.get("type") == "ClusterIP":
            yield forbidden(where, "may not be used when `type` is 'ClusterIP'")
        elif number and number not in NODE_PORTS:
            valid = f"The range of valid ports is {NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            yield invalid_value(where, number, f"provided port is not in the valid range. {valid}")
    for i, port in enumerate(spec.get("ports") or ()):
        key = port.get("protocol"), port.get("port")
        if key in seen:
            go = f'"Name":"","Protocol":"{key[0]}","AppProtocol":null,"Port":{key[1]},"TargetPort":0,"NodePort":0'
            yield duplicate(f"{path}.ports[{i}]", Verbatim(f"{{{go}}}"))
        seen.add(key)


_ACCOUNT: Final = "kubernetes.io/service-account.name"


def _secret(secret: JSONObject, path: str) -> Iterator[JSONObject]:
    data, kind = secret.get("data") or {}, secret.get("type")
    keys = INSTALLED.table("secret_types.txt").get(kind or "", b"").decode().split()
    missing = [key for key in keys if key not in data]
    if kind == "kubernetes.io/basic-auth" and len(missing) < len(keys):
        missing = []
    yield from (required(f"data[{key}]") for key in missing)
    if kind == "kubernetes.io/service-account-token" and _ACCOUNT not in (secret["metadata"].get("annotations") or {}):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def _config_map(config: JSONObject, path: str) -> Iterator[JSONObject]:
    for key in (config.get("data") or {}).keys() & (config.get("binaryData") or {}).keys():
        yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")


CHECKS: Final[Mapping[str, Check]] = {
    "apps_v1.DaemonSetSpec.selector": _selector("daemonset"),
    "apps_v1.DaemonSetSpec.template": _template("DaemonSet"),
    "apps_v1.DeploymentSpec.selector": _selector("deployment"),
    "apps_v1.DeploymentSpec.template": _template("ReplicaSet"),
    "apps_v1.DeploymentSpec.progressDeadlineSeconds": _deadline,
    "apps_v1.ReplicaSetSpec.selector": _selector("deployment"),
    "apps_v1.ReplicaSetSpec.template": _template("ReplicaSet"),
    "apps_v1.StatefulSetSpec.selector": _selector("statefulset"),
    "apps_v1.StatefulSetSpec.template": _template("StatefulSet"),
    "batch_v1.CronJobSpec.schedule": _schedule,
    "batch_v1.JobSpec.template": _job_template,
    "core_v1.ConfigMap.data": _config_map,
    "core_v1.EnvVar.valueFrom": _variable,
    "core_v1.Pod.spec": lambda pod, path: _pod_spec(pod["spec"], "spec"),
    "core_v1.Secret.data": _secret,
    "core_v1.ServiceSpec.ports": _service_ports,
    "core_v1.ServiceSpec.type": _service_type,
    "core_v1.ReplicationControllerSpec.template": _template("ReplicationController"),
    "meta_v1.LabelSelectorRequirement.operator": _expression,
    "scheduling_v1.PriorityClass.value": _priority,
}
"""The checks by type and field.  A check follows the rules of its field."""


# --- updates ----------------------------------------------------------------------------------------------------------

_ROLE: Final = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}


def change_causes(served: ServedKind, obj: JSONObject, old: JSONObject) -> list[JSONObject]:
    """Return the causes of the errors of an update of a built-in object whose fields are validated."""
    causes: list[JSONObject] = []
    with suppress(*WRONG_TYPE):
        causes += _changes(served, obj, old)
    return causes


def _changes(served: ServedKind, obj: JSONObject, old: JSONObject) -> Iterator[JSONObject]:
    resource, fields = served.resource, decode(served.release.table("fixed_fields.txt").get(served.resource, b"{}"))
    for path in fields.get("fixed", ()):
        new, was = (value_at(one, *path.split(".")) or None for one in (obj, old))
        if not json_equal(new, was):
            yield invalid_value(path, new, "field is immutable")
    if resource.endswith("rolebindings.rbac.authorization.k8s.io") and not json_equal(obj["roleRef"], old["roleRef"]):
        role = {go: obj["roleRef"].get(name, "") for go, name in _ROLE.items()}
        yield invalid_value("roleRef", Verbatim(dumps(role).decode()), "cannot change roleRef")
    if resource == "services" and "ExternalName" not in (obj["spec"]["type"], old["spec"]["type"]):
        addresses = obj["spec"]["clusterIPs"]
        if addresses[0] != old["spec"]["clusterIPs"][0]:
            yield invalid_value("spec.clusterIPs[0]", addresses, "may not change once set")
    if resource == "priorityclasses.scheduling.k8s.io" and obj.get("value") != old.get("value"):
        yield forbidden("value", "may not be changed in an update.")
    if "free" not in fields:
        return
    new, was = dict(obj["spec"]), dict(old["spec"])
    if resource == "pods":
        for member in ("containers", "initContainers"):
            if len(new.get(member) or ()) != len(was.get(member) or ()):
                yield forbidden(f"spec.{member}", "pod updates may not add or remove containers")
                return
            for spec in (new, was):
                spec[member] = [{**one, "image": ""} for one in spec.get(member) or ()]
        kept = [{**one, "tolerationSeconds": 0} for one in new.get("tolerations") or ()]
        if any({**one, "tolerationSeconds": 0} not in kept for one in was.get("tolerations") or ()):
            yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    for name in fields["free"]:
        new.pop(name, None)
        was.pop(name, None)
    if not json_equal(new, was):
        yield forbidden("spec", fields["problem"])
