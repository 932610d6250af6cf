"""The forms of the cells of built-in kinds, which ``cells.csv`` names.

A form makes a cell from the values at the paths in the file, or from the whole object if there is no path, from the
default in the file, and from the current time.  Instead of a form, the file may have the format of each value, which
has braces and ends with the separator of the values.

Source: kubernetes ``pkg/printers/internalversion``.
"""

from __future__ import annotations

import csv
import functools
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from .._storage._release import Release
from .._storage._storage import JSONObject
from .._storage._values import conditions_of, objects_at, value_at
from ._cells import NONE, UNKNOWN, Cell, human_duration, since
from ._json_paths import find_all, parse_path

Form: TypeAlias = Callable[[list[Any], str, datetime], Cell]
CellOf: TypeAlias = Callable[[JSONObject, datetime], Cell]
"""A function that returns the cell of an object at the current time."""


def read_cells(release: Release) -> Mapping[str, Mapping[str, CellOf]]:
    """Return the cells of each resource by the name of the column.  Those of ``*`` are for all resources."""
    cells: defaultdict[str, dict[str, CellOf]] = defaultdict(dict)
    for row in csv.DictReader(release.read("cells.csv").decode().splitlines()):
        cell = _cell_of(row["Form"], row["Paths"], row["Default"])
        for resource in row["Resources"].split():
            cells[resource][row["Column"]] = cell
    return cells


def _cell_of(name: str, paths: str, default: str) -> CellOf:
    form: Form = functools.partial(_formatted, name) if "{" in name else globals()[name]
    steps = [parse_path(path) or () for path in paths.split(" ")]
    return lambda obj, now: form([one for path in steps for one in find_all(obj, path)], default, now)


# --- general forms ----------------------------------------------------------------------------------------------------


def _formatted(template: str, found: list[Any], default: str, now: datetime) -> Cell:
    separator = template.rpartition("}")[2]
    return "".join(template.format_map(defaultdict(str, one)) for one in found).removesuffix(separator) or default


def text(found: list[Any], default: str, now: datetime) -> Cell:
    return next((str(one) for one in found if one not in ("", None)), default)


def number(found: list[Any], default: str, now: datetime) -> Cell:
    value = next((one for one in found if isinstance(one, int)), default)
    return int(value) if value != NONE else NONE


def truth(found: list[Any], default: str, now: datetime) -> Cell:
    return bool(next((one for one in found if one is not None), default))


def count(found: list[Any], default: str, now: datetime) -> Cell:
    return sum(len(one) for one in found if isinstance(one, dict | list))


def age(found: list[Any], default: str, now: datetime) -> Cell:
    return next((since(one, now) for one in found if one), default)


def duration(found: list[Any], default: str, now: datetime) -> Cell:
    return next((human_duration(one) for one in found if one is not None), default)


def joined(found: list[Any], default: str, now: datetime) -> Cell:
    return ",".join(map(str, found)) or default


def limited(found: list[Any], default: str, now: datetime, limit: int = 3, separator: str = ",") -> Cell:
    more = f" + {len(found) - limit} more..." if len(found) > limit else ""
    return separator.join(map(str, found[:limit])) + more or default


def labels(found: list[Any], default: str, now: datetime) -> Cell:
    return ",".join(f"{key}={one}" for pairs in found for key, one in sorted((pairs or {}).items())) or default


def selector(found: list[Any], default: str, now: datetime) -> Cell:
    parts = []
    for one in found:
        parts += [f"{key}={value}" for key, value in sorted((value_at(one, "matchLabels") or {}).items())]
        for expression in objects_at(one, "matchExpressions"):
            key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
            words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
            parts.append(words.get(expression["operator"], f"!{key}"))
    return ",".join(parts) or default


# --- workloads and services -------------------------------------------------------------------------------------------


def ready_replicas(found: list[Any], default: str, now: datetime) -> Cell:
    count = value_at(found[0], "spec", "replicas")
    return f"{value_at(found[0], 'status', 'readyReplicas') or 0}/{1 if count is None else count}"


def job_status(found: list[Any], default: str, now: datetime) -> Cell:
    true = {kind for kind, status in conditions_of(found[0]).items() if status == "True"}
    if value_at(found[0], "metadata", "deletionTimestamp"):
        true.add("Terminating")
    words = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((word for word in words if word in true), "Running")


def job_completions(found: list[Any], default: str, now: datetime) -> Cell:
    succeeded, wanted = value_at(found[0], "status", "succeeded") or 0, value_at(found[0], "spec", "completions")
    parallelism = value_at(found[0], "spec", "parallelism") or 0
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def job_duration(found: list[Any], default: str, now: datetime) -> Cell:
    start, end = (value_at(found[0], "status", name) for name in ("startTime", "completionTime"))
    return since(start, datetime.fromisoformat(end) if end else now) if start else ""


def load_balancer(found: list[Any], default: str, now: datetime) -> Cell:
    return ",".join(sorted({str(one.get("ip") or one.get("hostname")) for one in found}))


def external_ip(found: list[Any], default: str, now: datetime) -> Cell:
    spec = value_at(found[0], "spec")
    kind, external = value_at(spec, "type"), list(value_at(spec, "externalIPs") or ())
    if kind == "ExternalName":
        return str(value_at(spec, "externalName") or "")
    if kind == "LoadBalancer":
        balanced = load_balancer(objects_at(found[0], "status", "loadBalancer", "ingress"), "", now)
        return ",".join([str(balanced)] * bool(balanced) + external) or "<pending>"
    return ",".join(external) or default


def service_ports(found: list[Any], default: str, now: datetime) -> Cell:
    nodes = [f":{one['nodePort']}" if one.get("nodePort") else "" for one in found]
    pairs = zip(found, nodes, strict=True)
    return ",".join(f"{one.get('port')}{node}/{one.get('protocol', 'TCP')}" for one, node in pairs) or default


def endpoints(found: list[Any], default: str, now: datetime) -> Cell:
    shown = []
    for subset in found:
        addresses = [str(one.get("ip")) for one in objects_at(subset, "addresses")]
        ports = objects_at(subset, "ports")
        shown += [f"{one}:{port.get('port')}" for port in ports for one in addresses] if ports else addresses
    return limited(shown, "" if found else default, now)


def slice_ports(found: list[Any], default: str, now: datetime) -> Cell:
    return limited([one.get("port") or one.get("name") or "*" for one in found], default, now)


def web_ports(found: list[Any], default: str, now: datetime) -> Cell:
    return "80, 443" if found else "80"


def metrics(found: list[Any], default: str, now: datetime) -> Cell:
    """Return the targets of a HorizontalPodAutoscaler, in version 1 or 2."""
    if (percent := value_at(found[0], "spec", "targetCPUUtilizationPercentage")) is not None:
        current = value_at(found[0], "status", "currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{percent}%"
    current_metrics = objects_at(found[0], "status", "currentMetrics")
    shown = []
    for index, metric in enumerate(objects_at(found[0], "spec", "metrics")):
        source = str(metric.get("type"))[:1].lower() + str(metric.get("type"))[1:]
        status = current_metrics[index] if index < len(current_metrics) else {}
        target, current = value_at(metric, source, "target") or {}, value_at(status, source, "current") or {}
        name = f"{value_at(metric, source, 'name')}: " if source in ("resource", "containerResource") else ""
        if "averageValue" in target:
            average = " (avg)" if source in ("external", "object") else ""
            shown.append(f"{name}{current.get('averageValue', UNKNOWN)}/{target['averageValue']}{average}")
        elif name:
            reached, wanted = (one.get("averageUtilization") for one in (current, target))
            share = UNKNOWN if reached is None else f"{reached}%"
            shown.append(f"{name}{share}/{'<auto>' if wanted is None else f'{wanted}%'}")
        else:
            shown.append(f"{current.get('value', UNKNOWN)}/{target.get('value')}")
    return limited(shown, default, now, 2, ", ")


# --- pods and nodes ---------------------------------------------------------------------------------------------------


def pod_ready(found: list[Any], default: str, now: datetime) -> Cell:
    ready = sum(1 for one in objects_at(found[0], "status", "containerStatuses") if one.get("ready"))
    return f"{ready}/{len(objects_at(found[0], 'spec', 'containers'))}"


def pod_status(found: list[Any], default: str, now: datetime) -> Cell:
    """Return the phase of a pod, or the reason of a waiting or terminated container."""
    status = value_at(found[0], "status")
    phase = str(value_at(status, "phase") or "")
    word = str(value_at(status, "reason") or phase or UNKNOWN)
    for container in objects_at(status, "containerStatuses"):
        waiting, ended = value_at(container, "state", "waiting"), value_at(container, "state", "terminated")
        if value_at(waiting, "reason"):
            word = str(waiting["reason"])
        elif isinstance(ended, dict):
            word = str(ended.get("reason") or f"ExitCode:{ended.get('exitCode')}")
    if value_at(found[0], "metadata", "deletionTimestamp") and phase not in ("Succeeded", "Failed"):
        return "Terminating"
    return word


def pod_restarts(found: list[Any], default: str, now: datetime) -> Cell:
    counts = [value_at(one, "restartCount") for one in found]
    restarts = sum(count for count in counts if isinstance(count, int))
    ends = [str(end) for one in found if (end := value_at(one, "lastState", "terminated", "finishedAt"))]
    return f"{restarts} ({since(max(ends), now)} ago)" if restarts and ends else str(restarts)


def readiness_gates(found: list[Any], default: str, now: datetime) -> Cell:
    gates, states = objects_at(found[0], "spec", "readinessGates"), conditions_of(found[0])
    true = [gate for gate in gates if states.get(gate.get("conditionType", "")) == "True"]
    return f"{len(true)}/{len(gates)}" if gates else default


def node_status(found: list[Any], default: str, now: datetime) -> Cell:
    state = conditions_of(found[0]).get("Ready")
    word = "Unknown" if state is None else "Ready" if state == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if value_at(found[0], "spec", "unschedulable") else word


def node_roles(found: list[Any], default: str, now: datetime) -> Cell:
    prefix = "node-role.kubernetes.io/"
    labels = {key: value for one in found for key, value in (one or {}).items()}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} | {labels.get("kubernetes.io/role")}
    return ",".join(sorted(role for role in roles if role)) or default


# --- storage ----------------------------------------------------------------------------------------------------------

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def modes(found: list[Any], default: str, now: datetime) -> Cell:
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def claim_modes(found: list[Any], default: str, now: datetime) -> Cell:
    is_bound = value_at(found[0], "spec", "volumeName")
    return modes(value_at(found[0], "status", "accessModes") or [], default, now) if is_bound else ""


def claim_capacity(found: list[Any], default: str, now: datetime) -> Cell:
    is_bound = value_at(found[0], "spec", "volumeName")
    return str(value_at(found[0], "status", "capacity", "storage") or 0) if is_bound else ""


def phase(found: list[Any], default: str, now: datetime) -> Cell:
    is_deleted = value_at(found[0], "metadata", "deletionTimestamp")
    return "Terminating" if is_deleted else str(value_at(found[0], "status", "phase") or "")


def default_name(found: list[Any], annotation: str, now: datetime) -> Cell:
    metadata = found[0]["metadata"]
    is_default = value_at(metadata, "annotations", annotation) == "true"
    return f"{metadata['name']} (default)" if is_default else str(metadata["name"])


# --- others -----------------------------------------------------------------------------------------------------------


def involved(found: list[Any], default: str, now: datetime) -> Cell:
    one: JSONObject = next(filter(None, found), {})
    kind, name = str(one.get("kind") or "").lower(), one.get("name")
    return f"{kind}/{name}" if name else kind


def event_source(found: list[Any], default: str, now: datetime) -> Cell:
    event = found[0]
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    instance = source.get("host") or event.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def message(found: list[Any], default: str, now: datetime) -> Cell:
    return str(next(filter(None, found), "")).strip()


def quota(found: list[Any], default: str, now: datetime, *, is_limit: bool) -> Cell:
    hard, used = value_at(found[0], "status", "hard") or {}, value_at(found[0], "status", "used") or {}
    names = [name for name in sorted(hard) if name.startswith("limits.") == is_limit]
    return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)


quota_requests = functools.partial(quota, is_limit=False)
quota_limits = functools.partial(quota, is_limit=True)


def request_state(found: list[Any], default: str, now: datetime) -> Cell:
    types = conditions_of(found[0])
    word = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    issued = bool(value_at(found[0], "status", "certificate"))
    return word + ",Failed" * ("Failed" in types) + ",Issued" * issued


def controller(found: list[Any], default: str, now: datetime) -> Cell:
    if not found:
        return default
    group = str(found[0].get("apiVersion")).rpartition("/")[0]
    return f"{found[0]['kind']}{group and '.'}{group}/".lower() + str(found[0]["name"])


def parameters(found: list[Any], default: str, now: datetime) -> Cell:
    if not any(found):
        return default
    group = found[0].get("apiGroup") or ""
    return f"{found[0]['kind']}{group and '.'}{group}/{found[0]['name']}"
