"""PodDisruptionBudgets: how many pods may be evicted.  Source: kubernetes ``pkg/controller/disruption``."""

from __future__ import annotations

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import pods_in, ready_since, scaled, with_condition


def reconcile_budget(cluster: Cluster, budget: JSONObject) -> None:
    """Count the pods of a budget."""
    spec, metadata = budget["spec"], budget["metadata"]
    selected = pods_in(cluster, metadata["namespace"], spec["selector"]) if spec.get("selector") is not None else []
    pods = [pod for pod in selected if "deletionTimestamp" not in pod["metadata"]]
    healthy, limit = sum(ready_since(pod) is not None for pod in pods), spec.get("maxUnavailable")
    if limit is None:
        desired = scaled(spec.get("minAvailable") or 0, len(pods), rounds_up=True)
    else:
        desired = max(len(pods) - scaled(limit, len(pods), rounds_up=True), 0)
    allowed = max(healthy - desired, 0) if pods else 0
    status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    condition = {"type": "DisruptionAllowed", "status": status, "reason": reason, "message": ""}
    condition["observedGeneration"] = metadata["generation"]
    counted = {
        "observedGeneration": metadata["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": len(pods),
        "conditions": with_condition(cluster, budget["status"].get("conditions"), condition),
    }
    cluster.write(budget, status=counted)
