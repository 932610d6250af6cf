"""The scheduling of pods, and the function that runs them, instead of kube-scheduler and kubelets."""

from __future__ import annotations

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import phase_of


def reconcile_pod(cluster: Cluster, pod: JSONObject) -> None:
    """Schedule a pod, or run it once."""
    node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
    if phase_of(pod) == "Pending" and not node:
        _schedule(cluster, pod)
    elif phase_of(pod) == "Pending" and uid not in cluster.started and cluster.get("Node", "", node) is not None:
        cluster.started.add(uid)
        cluster.run_pod(pod)


def _schedule(cluster: Cluster, pod: JSONObject) -> None:
    """Assign a pod to the next node that is not cordoned."""
    spec, status, every = pod["spec"], pod["status"], cluster.list("Node")
    if spec.get("schedulerName", "default-scheduler") != "default-scheduler" or spec.get("schedulingGates"):
        return
    nodes = [node["metadata"]["name"] for node in every if not node["spec"].get("unschedulable")]
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": cluster.timestamp}
    if nodes:
        spec["nodeName"] = nodes[cluster.scheduled % len(nodes)]
        cluster.scheduled += 1
    else:
        message = f"0/{len(every)} nodes are available: {len(every)} node(s) were unschedulable."
        condition |= {"status": "False", "reason": "Unschedulable", "message": message}
    if nodes or not status.get("conditions"):
        cluster.write(pod, part="binding", status={**status, "conditions": [condition]})
