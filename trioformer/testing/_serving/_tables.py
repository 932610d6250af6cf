"""What ``kubectl get`` shows: the columns of a few kinds, and NAME and AGE of all others.

Source: the answers of kube-apiserver v1.36 to ``as=Table``, and kubernetes ``pkg/printers/internalversion``, of which
this is the everyday part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, final

import attrs

from .._storage._kinds import Served
from .._storage._storage import JSONObject

Cell: TypeAlias = str | int
NONE = "<none>"
UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400


@final
@attrs.frozen
class Column:
    """One column of a table."""

    name: str
    """Its heading, as the server spells it."""
    cell: Callable[[JSONObject, datetime], Cell]
    """Makes an object's cell; is given the time too."""
    type: str = "string"
    """``string`` or ``integer``."""
    format: str = ""
    """``name`` for the column that names the object."""
    priority: int = 0
    """1 for what only ``-o wide`` shows."""

    def definition(self) -> JSONObject:
        """Return the column as a ``TableColumnDefinition``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }


def dig(obj: object, *path: str) -> Any:
    """Return the member at a path, or None where the path ends early."""
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def items(obj: object, *path: str) -> list[JSONObject]:
    """Return the objects in the list at a path."""
    found = dig(obj, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def human_duration(seconds: float) -> str:
    """Render an age in the two largest units that matter: ``3s``, ``2m21s``, ``5d``; apimachinery ``HumanDuration``."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    for limit, unit, size, small, small_size in (
        (2 * _MINUTE, "s", 1, "", 1),
        (10 * _MINUTE, "m", _MINUTE, "s", 1),
        (3 * _HOUR, "m", _MINUTE, "", 1),
        (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
        (2 * _DAY, "h", _HOUR, "", 1),
        (8 * _DAY, "d", _DAY, "h", _HOUR),
        (2 * _YEAR, "d", _DAY, "", 1),
        (8 * _YEAR, "y", _YEAR, "d", _DAY),
    ):
        if total < limit:
            rest = total % size // small_size if small else 0
            return f"{max(total, 0) // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{total // _YEAR}y"


def _since(text: object, now: datetime) -> str:
    try:
        then = datetime.fromisoformat(str(text))
    except ValueError:
        return UNKNOWN
    return human_duration((now - then.replace(tzinfo=then.tzinfo or UTC)).total_seconds())


def _name(obj: JSONObject, _: datetime) -> Cell:
    return str(dig(obj, "metadata", "name"))


def _age(obj: JSONObject, now: datetime) -> Cell:
    return _since(dig(obj, "metadata", "creationTimestamp"), now)


def _text(*path: str, default: str = NONE) -> Callable[[JSONObject, datetime], Cell]:
    return lambda obj, _: str(dig(obj, *path) or default)


def _number(*path: str) -> Callable[[JSONObject, datetime], Cell]:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        value = dig(obj, *path)
        return value if isinstance(value, int) else 0

    return cell


def _count(*path: str) -> Callable[[JSONObject, datetime], Cell]:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        value = dig(obj, *path)
        return len(value) if isinstance(value, dict | list) else 0

    return cell


# --- pods -------------------------------------------------------------------------------------------------------------


def _pod_ready(obj: JSONObject, _: datetime) -> Cell:
    ready = sum(1 for one in items(obj, "status", "containerStatuses") if one.get("ready"))
    return f"{ready}/{len(items(obj, 'spec', 'containers'))}"


def pod_status(obj: JSONObject, _: datetime) -> str:
    """Return the word in the STATUS column: the phase, or what a container waits for or ended with."""
    phase = str(dig(obj, "status", "phase") or "")
    word = str(dig(obj, "status", "reason") or phase or UNKNOWN)
    for container in items(obj, "status", "containerStatuses"):
        waiting, ended = dig(container, "state", "waiting"), dig(container, "state", "terminated")
        if dig(waiting, "reason"):
            word = str(waiting["reason"])
        elif isinstance(ended, dict):
            word = str(ended.get("reason") or f"ExitCode:{ended.get('exitCode')}")
    if dig(obj, "metadata", "deletionTimestamp") and phase not in ("Succeeded", "Failed"):
        return "Terminating"
    return word


def _pod_restarts(obj: JSONObject, now: datetime) -> Cell:
    statuses = items(obj, "status", "containerStatuses")
    counts = [one.get("restartCount") for one in statuses]
    restarts = sum(count for count in counts if isinstance(count, int))
    ends = [str(end) for one in statuses if (end := dig(one, "lastState", "terminated", "finishedAt"))]
    return f"{restarts} ({_since(max(ends), now)} ago)" if restarts and ends else str(restarts)


def _readiness_gates(obj: JSONObject, _: datetime) -> Cell:
    gates = items(obj, "spec", "readinessGates")
    true = [one.get("type") for one in items(obj, "status", "conditions") if one.get("status") == "True"]
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}" if gates else NONE


# --- others -----------------------------------------------------------------------------------------------------------


def _deployment_ready(obj: JSONObject, _: datetime) -> Cell:
    wanted = dig(obj, "spec", "replicas")
    return f"{dig(obj, 'status', 'readyReplicas') or 0}/{1 if wanted is None else wanted}"


def _node_status(obj: JSONObject, _: datetime) -> Cell:
    states = [one.get("status") for one in items(obj, "status", "conditions") if one.get("type") == "Ready"]
    word = "Unknown" if not states else "Ready" if states[0] == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if dig(obj, "spec", "unschedulable") else word


def _node_roles(obj: JSONObject, _: datetime) -> Cell:
    prefix = "node-role.kubernetes.io/"
    labels = dig(obj, "metadata", "labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or NONE


def _ports(obj: JSONObject, _: datetime) -> Cell:
    ports = [f"{one.get('port')}/{one.get('protocol', 'TCP')}" for one in items(obj, "spec", "ports")]
    return ",".join(ports) or NONE


NAME = Column("Name", _name, format="name")
AGE = Column("Age", _age)

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "pods": (
        NAME,
        Column("Ready", _pod_ready),
        Column("Status", pod_status),
        Column("Restarts", _pod_restarts),
        AGE,
        Column("IP", _text("status", "podIP"), priority=1),
        Column("Node", _text("spec", "nodeName"), priority=1),
        Column("Nominated Node", _text("status", "nominatedNodeName"), priority=1),
        Column("Readiness Gates", _readiness_gates, priority=1),
    ),
    "deployments.apps": (
        NAME,
        Column("Ready", _deployment_ready),
        Column("Up-to-date", _number("status", "updatedReplicas"), type="integer"),
        Column("Available", _number("status", "availableReplicas"), type="integer"),
        AGE,
    ),
    "replicasets.apps": (
        NAME,
        Column("Desired", _number("spec", "replicas"), type="integer"),
        Column("Current", _number("status", "replicas"), type="integer"),
        Column("Ready", _number("status", "readyReplicas"), type="integer"),
        AGE,
    ),
    "configmaps": (NAME, Column("Data", _count("data"), type="integer"), AGE),
    "secrets": (NAME, Column("Type", _text("type")), Column("Data", _count("data"), type="integer"), AGE),
    "namespaces": (NAME, Column("Status", _text("status", "phase")), AGE),
    "nodes": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        Column("Version", _text("status", "nodeInfo", "kubeletVersion", default="")),
    ),
    "services": (
        NAME,
        Column("Type", _text("spec", "type", default="ClusterIP")),
        Column("Cluster-IP", _text("spec", "clusterIP")),
        Column("External-IP", _text("spec", "externalName")),
        Column("Port(s)", _ports),
        AGE,
    ),
    "leases.coordination.k8s.io": (NAME, Column("Holder", _text("spec", "holderIdentity", default="")), AGE),
}


def columns_of(served: Served) -> tuple[Column, ...]:
    """Return the columns of a kind."""
    return COLUMNS.get(served.resource, (NAME, AGE))
