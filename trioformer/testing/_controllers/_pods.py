"""The scheduling of pods, and the function that runs them, instead of kube-scheduler and kubelets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import phase_of

RunPod: TypeAlias = Callable[[JSONObject], None]
"""Runs a pod that has been scheduled."""


@final
@attrs.define(eq=False)
class Nodes:
    """The nodes of a cluster, which run each pod once."""

    _run_pod: RunPod
    _turns: itertools.count[int] = attrs.field(init=False, factory=itertools.count)

    def reconcile_pod(self, cluster: Cluster, pod: JSONObject) -> None:
        """Schedule a pod, or run it."""
        node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        if phase_of(pod) == "Pending" and not node:
            self._schedule(cluster, pod)
        elif phase_of(pod) == "Pending" and uid not in cluster.started and cluster.get("Node", "", node) is not None:
            cluster.started.add(uid)
            self._run_pod(pod)

    def _schedule(self, cluster: Cluster, pod: JSONObject) -> None:
        """Assign a pod to the next node that is not cordoned."""
        spec = pod["spec"]
        if spec.get("schedulerName", "default-scheduler") != "default-scheduler" or spec.get("schedulingGates"):
            return
        every = cluster.list("Node")
        nodes = [node["metadata"]["name"] for node in every if not (node.get("spec") or {}).get("unschedulable")]
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": cluster.timestamp}
        if nodes:
            spec["nodeName"] = nodes[next(self._turns) % len(nodes)]
        else:
            message = f"0/{len(every)} nodes are available: {len(every)} node(s) were unschedulable."
            condition |= {"status": "False", "reason": "Unschedulable", "message": message}
        if nodes or not pod["status"].get("conditions"):
            cluster.write(pod, part="binding", status={**pod["status"], "conditions": [condition]})
