"""The columns of Tables in ``kubectl get``: special columns for common kinds, and NAME and AGE for all others.

Source: responses of kube-apiserver v1.36 to ``as=Table``, and parts of kubernetes ``pkg/printers/internalversion``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, final

import attrs

from .._storage._field_errors import json_text, number_text
from .._storage._kinds import ServedKind
from .._storage._storage import JSONObject
from ._json_paths import find_all, parse_path

Cell: TypeAlias = str | int | float
NONE = "<none>"
UNKNOWN = "<unknown>"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400


@final
@attrs.frozen
class Column:
    """A column of a Table."""

    name: str
    """The heading, as kube-apiserver spells it."""
    cell: Callable[[JSONObject, datetime], Cell | None]
    """Returns the cell of an object at the current time."""
    type: str = "string"
    """``string`` or ``integer``."""
    format: str = ""
    """``name`` for the column that names the object."""
    priority: int = 0
    """1 for a column that only ``-o wide`` shows."""
    description: str = ""
    """The description."""

    def definition(self) -> JSONObject:
        """Return the column as a ``TableColumnDefinition``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def value_at(obj: object, *path: str) -> Any:
    """Return the value at a path in nested dicts, or None if the path does not exist."""
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def objects_at(obj: object, *path: str) -> list[JSONObject]:
    """Return the dicts in the list at a path in nested dicts."""
    found = value_at(obj, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def human_duration(seconds: float) -> str:
    """Format an age in the same way as apimachinery's ``HumanDuration``, for example as ``3s``, ``2m21s`` or ``5d``."""
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
    return str(value_at(obj, "metadata", "name"))


def _age(obj: JSONObject, now: datetime) -> Cell:
    return _since(value_at(obj, "metadata", "creationTimestamp"), now)


def _text(*path: str, default: str = NONE) -> Callable[[JSONObject, datetime], Cell]:
    return lambda obj, _: str(value_at(obj, *path) or default)


def _number(*path: str) -> Callable[[JSONObject, datetime], Cell]:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        value = value_at(obj, *path)
        return value if isinstance(value, int) else 0

    return cell


def _count(*path: str) -> Callable[[JSONObject, datetime], Cell]:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        value = value_at(obj, *path)
        return len(value) if isinstance(value, dict | list) else 0

    return cell


# --- pods -------------------------------------------------------------------------------------------------------------


def _pod_ready(obj: JSONObject, _: datetime) -> Cell:
    ready = sum(1 for one in objects_at(obj, "status", "containerStatuses") if one.get("ready"))
    return f"{ready}/{len(objects_at(obj, 'spec', 'containers'))}"


def pod_status(obj: JSONObject, _: datetime) -> str:
    """Return the text for a pod in the STATUS column: the phase, or the reason of a waiting or terminated container."""
    phase = str(value_at(obj, "status", "phase") or "")
    word = str(value_at(obj, "status", "reason") or phase or UNKNOWN)
    for container in objects_at(obj, "status", "containerStatuses"):
        waiting, ended = value_at(container, "state", "waiting"), value_at(container, "state", "terminated")
        if value_at(waiting, "reason"):
            word = str(waiting["reason"])
        elif isinstance(ended, dict):
            word = str(ended.get("reason") or f"ExitCode:{ended.get('exitCode')}")
    if value_at(obj, "metadata", "deletionTimestamp") and phase not in ("Succeeded", "Failed"):
        return "Terminating"
    return word


def _pod_restarts(obj: JSONObject, now: datetime) -> Cell:
    statuses = objects_at(obj, "status", "containerStatuses")
    counts = [one.get("restartCount") for one in statuses]
    restarts = sum(count for count in counts if isinstance(count, int))
    ends = [str(end) for one in statuses if (end := value_at(one, "lastState", "terminated", "finishedAt"))]
    return f"{restarts} ({_since(max(ends), now)} ago)" if restarts and ends else str(restarts)


def _readiness_gates(obj: JSONObject, _: datetime) -> Cell:
    gates = objects_at(obj, "spec", "readinessGates")
    true = [one.get("type") for one in objects_at(obj, "status", "conditions") if one.get("status") == "True"]
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}" if gates else NONE


# --- others -----------------------------------------------------------------------------------------------------------


def _deployment_ready(obj: JSONObject, _: datetime) -> Cell:
    desired = value_at(obj, "spec", "replicas")
    return f"{value_at(obj, 'status', 'readyReplicas') or 0}/{1 if desired is None else desired}"


def _node_status(obj: JSONObject, _: datetime) -> Cell:
    states = [one.get("status") for one in objects_at(obj, "status", "conditions") if one.get("type") == "Ready"]
    word = "Unknown" if not states else "Ready" if states[0] == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if value_at(obj, "spec", "unschedulable") else word


def _node_roles(obj: JSONObject, _: datetime) -> Cell:
    prefix = "node-role.kubernetes.io/"
    labels = value_at(obj, "metadata", "labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} | {labels.get("kubernetes.io/role")}
    return ",".join(sorted(role for role in roles if role)) or NONE


def _node_address(kind: str) -> Callable[[JSONObject, datetime], Cell]:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        addresses = (one for one in objects_at(obj, "status", "addresses") if one.get("type") == kind)
        return str(next(addresses, {}).get("address") or NONE)

    return cell


def _ports(obj: JSONObject, _: datetime) -> Cell:
    ports = [f"{one.get('port')}/{one.get('protocol', 'TCP')}" for one in objects_at(obj, "spec", "ports")]
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
        Column("Internal-IP", _node_address("InternalIP"), priority=1),
        Column("External-IP", _node_address("ExternalIP"), priority=1),
        Column("OS-Image", _text("status", "nodeInfo", "osImage", default=UNKNOWN), priority=1),
        Column("Kernel-Version", _text("status", "nodeInfo", "kernelVersion", default=UNKNOWN), priority=1),
        Column(
            "Container-Runtime", _text("status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN), priority=1
        ),
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


def cell_of(column: Column, obj: JSONObject, now: datetime) -> Cell | None:
    """Return the cell of an object, or ``<unknown>`` if a field has the wrong type.

    Unlike kube-apiserver, this server stores objects with fields of the wrong type.
    """
    try:
        cell = column.cell(obj, now)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return UNKNOWN
    if isinstance(cell, int):
        return cell if -(2**63) <= cell < 2**63 else UNKNOWN
    if not isinstance(cell, str):
        return cell
    return cell if len(cell) <= _LONGEST_CELL else cell[:_LONGEST_CELL] + "..."


_LONGEST_CELL = 4_096


def columns_of(served: ServedKind) -> tuple[Column, ...]:
    """Return the Table columns of a kind."""
    if served.columns:
        return (NAME, *map(_custom_column, served.columns))
    return COLUMNS.get(served.resource, (NAME, AGE))


def _custom_column(definition: Mapping[str, Any]) -> Column:
    """Return the column for an entry of ``additionalPrinterColumns``."""
    path, kind = definition["jsonPath"], definition["type"]
    steps = parse_path(path)

    def cell(obj: JSONObject, now: datetime) -> Cell | None:
        found = [] if steps is None else find_all(obj, steps)
        return _custom_cell(found[0], kind, now) if found else None

    return Column(
        definition["name"],
        cell,
        type=kind,
        format=definition.get("format") or "",
        priority=definition.get("priority") or 0,
        description=definition.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
    )


def _custom_cell(value: object, kind: str, now: datetime) -> Cell | None:
    """Return the cell for a value.  The cell is None if the value has another type than the column."""
    match kind, value:
        case "boolean", bool():
            return value
        case "string", None:
            return "<no value>"
        case _, None:
            return None
        case "string", bool() | str() | dict() | list():
            return value if isinstance(value, str) else json_text(value)
        case "string", int() | float():
            return number_text(value)
        case (("integer" | "number"), bool()):
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return value
        case "date", "":
            return UNKNOWN
        case "date", str():
            return _since(value, now) if _TIME(value) else "<invalid>"
        case _:
            return None
