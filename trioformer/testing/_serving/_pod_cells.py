"""The cells of pods and nodes.

Source: responses of kube-apiserver v1.36 to ``as=Table``, and parts of kubernetes ``pkg/printers/internalversion``.
"""

from __future__ import annotations

from datetime import datetime

from .._storage._storage import JSONObject
from ._cells import NONE, UNKNOWN, Cell, CellOf, objects_at, since, value_at


def pod_ready(obj: JSONObject, _: datetime) -> Cell:
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


def pod_restarts(obj: JSONObject, now: datetime) -> Cell:
    statuses = objects_at(obj, "status", "containerStatuses")
    counts = [one.get("restartCount") for one in statuses]
    restarts = sum(count for count in counts if isinstance(count, int))
    ends = [str(end) for one in statuses if (end := value_at(one, "lastState", "terminated", "finishedAt"))]
    return f"{restarts} ({since(max(ends), now)} ago)" if restarts and ends else str(restarts)


def readiness_gates(obj: JSONObject, _: datetime) -> Cell:
    gates = objects_at(obj, "spec", "readinessGates")
    true = [one.get("type") for one in objects_at(obj, "status", "conditions") if one.get("status") == "True"]
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}" if gates else NONE


def node_status(obj: JSONObject, _: datetime) -> Cell:
    states = [one.get("status") for one in objects_at(obj, "status", "conditions") if one.get("type") == "Ready"]
    word = "Unknown" if not states else "Ready" if states[0] == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if value_at(obj, "spec", "unschedulable") else word


def node_roles(obj: JSONObject, _: datetime) -> Cell:
    prefix = "node-role.kubernetes.io/"
    labels = value_at(obj, "metadata", "labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} | {labels.get("kubernetes.io/role")}
    return ",".join(sorted(role for role in roles if role)) or NONE


def node_address(kind: str) -> CellOf:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        addresses = (one for one in objects_at(obj, "status", "addresses") if one.get("type") == kind)
        return str(next(addresses, {}).get("address") or NONE)

    return cell
