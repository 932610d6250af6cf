"""PodDisruptionBudgets: how many pods may be evicted.  Source: kubernetes ``pkg/controller/disruption``."""

from __future__ import annotations

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import controller_of, pods_in, ready_since, replicas_of, scaled, with_condition


def reconcile_budget(cluster: Cluster, namespace: str, name: str) -> None:
    """Count the pods of a budget."""
    budget = cluster.get("PodDisruptionBudget", namespace, name)
    if budget is None:
        return
    spec, generation = budget["spec"], budget["metadata"]["generation"]
    pods = pods_in(cluster, namespace, spec["selector"]) if spec.get("selector") is not None else []
    expected, desired = _expected(cluster, namespace, spec, pods)
    disrupted = budget["status"].get("disruptedPods") or {}
    live = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    evicted = {pod["metadata"]["name"] for pod in live} & disrupted.keys()
    healthy = [pod for pod in live if ready_since(pod) and pod["metadata"]["name"] not in evicted]
    allowed = max(len(healthy) - desired, 0) if expected else 0
    status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    condition = {"type": "DisruptionAllowed", "status": status, "reason": reason, "message": ""}
    conditions = budget["status"].get("conditions") or []
    if not any(condition.items() <= old.items() and old.get("observedGeneration") == generation for old in conditions):
        since = {"observedGeneration": generation, "lastTransitionTime": cluster.timestamp}
        conditions = with_condition(conditions, {**condition, **since})
    counted = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": len(healthy),
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": conditions,
    }
    kept = {"disruptedPods": {pod: disrupted[pod] for pod in sorted(evicted)}} if evicted else {}
    cluster.write("PodDisruptionBudget", budget, status={**counted, **kept})


def _expected(cluster: Cluster, namespace: str, spec: JSONObject, pods: list[JSONObject]) -> tuple[int, int]:
    """Return how many pods there should be, and how many must be healthy."""
    minimum, limit = spec.get("minAvailable"), spec.get("maxUnavailable")
    if limit is None and not isinstance(minimum, str):
        return len(pods), minimum or 0
    owners: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        found = cluster.get(owner["kind"], namespace, owner["name"]) if cluster.controls(owner.get("kind")) else None
        if found is not None and (above := controller_of(found)).get("kind") == "Deployment":
            found = cluster.get("Deployment", namespace, above["name"]) or found
        if found is not None:
            owners[found["metadata"]["uid"]] = replicas_of(found)
    expected = sum(owners.values())
    if limit is not None:
        return expected, max(expected - scaled(limit, expected, rounds_up=True), 0)
    return expected, scaled(str(minimum), expected, rounds_up=True)
