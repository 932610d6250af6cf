"""ReplicaSets: as many pods as desired.  Source: kubernetes ``pkg/controller/replicaset``."""

from __future__ import annotations

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import available, claim, is_active, ready_since, replicas_of, scale_pods


def reconcile_replica_set(cluster: Cluster, found: JSONObject) -> None:
    """Create or delete pods, and count them."""
    if found["spec"].get("selector"):
        active = [pod for pod in claim(cluster, found, "Pod") if is_active(pod)]
        pods = scale_pods(cluster, found, active, replicas_of(found))
        labels = ((found["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
        status = {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(labels.items() <= pod["metadata"]["labels"].items() for pod in pods) or None,
            "readyReplicas": sum(ready_since(pod) is not None for pod in pods) or None,
            "availableReplicas": len(available(cluster, found, pods)) or None,
            "terminatingReplicas": 0,
            "observedGeneration": found["metadata"]["generation"],
        }
        cluster.write(found, status=status)
