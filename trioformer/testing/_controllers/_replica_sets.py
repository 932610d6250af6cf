"""ReplicaSets: as many pods as desired.  Source: kubernetes ``pkg/controller/replicaset``."""

from __future__ import annotations

from ._cluster import Cluster
from ._objects import available, claim, counts, is_active, pod_of, ready_since, replicas_of, to_delete


def reconcile_replica_set(cluster: Cluster, namespace: str, name: str) -> None:
    """Create or delete pods, and count them."""
    found = cluster.get("ReplicaSet", namespace, name)
    if found is None:
        return
    pods, template = claim(cluster, "ReplicaSet", found, "Pod"), found["spec"].get("template") or {}
    pods = [pod for pod in pods if is_active(pod)]
    if "deletionTimestamp" not in found["metadata"] and found["spec"].get("selector"):
        for pod in to_delete(pods, len(pods) - replicas_of(found)):
            cluster.delete("Pod", pod)
        for _ in range(replicas_of(found) - len(pods)):
            cluster.create("Pod", namespace, pod_of(cluster, "ReplicaSet", found, template))
    labels = ((template.get("metadata") or {}).get("labels") or {}).items()
    status = counts(
        replicas=len(pods),
        fullyLabeledReplicas=sum(labels <= (pod["metadata"].get("labels") or {}).items() for pod in pods),
        readyReplicas=sum(ready_since(pod) is not None for pod in pods),
        availableReplicas=len(available(cluster, "ReplicaSet", found, pods)),
        terminatingReplicas=0,
        observedGeneration=found["metadata"]["generation"],
    )
    cluster.write("ReplicaSet", found, status=status)
