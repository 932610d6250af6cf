"""PodDisruptionBudgets: how many pods may be evicted.  Source: kubernetes ``pkg/controller/disruption``."""

from __future__ import annotations

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import find_condition, pods_in, ready_since, scaled, set_condition


def reconcile_budget(cluster: Cluster, budget: JSONObject) -> None:
    """Count the pods of a budget."""
    spec, metadata = budget["spec"], budget["metadata"]
    selected = pods_in(cluster, metadata["namespace"], spec["selector"]) if spec.get("selector") is not None else []
    pods = [pod for pod in selected if "deletionTimestamp" not in pod["metadata"]]
    healthy, limit = sum(ready_since(pod) is not None for pod in pods), spec.get("maxUnavailable")
    desired = scaled(spec.get("minAvailable") or 0 if limit is None else limit, len(pods), rounds_up=True)
    if limit is not None:
        desired = max(len(pods) - desired, 0)
    allowed = max(healthy - desired, 0) if pods else 0
    status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    observed = {"observedGeneration": metadata["generation"]}
    set_condition(cluster, budget, "DisruptionAllowed", status, reason, "")
    find_condition(budget, "DisruptionAllowed").update(observed)
    counts = {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired}
    counts |= {"expectedPods": len(pods), **observed}
    cluster.write(budget, status={**counts, "conditions": budget["status"]["conditions"]})
