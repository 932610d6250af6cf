"""Controllers in virtual time: a small part of kube-controller-manager, kube-scheduler and kubelet.

Each controller is a function that takes the :class:`Cluster` and an object that is not being deleted, and takes the
next steps towards the desired state of this object.  The functions are called at the end of each write that concerns
the object, until nothing changes any more.

Source: kubernetes ``pkg/controller``, v1.36.
"""

from __future__ import annotations

from .._storage._namespaces import SYSTEM_NAMESPACES
from .._storage._registry import Registry
from ._cluster import Cluster as Cluster
from ._deployments import reconcile_deployment
from ._disruptions import reconcile_budget
from ._endpoint_slices import reconcile_service
from ._jobs import reconcile_job
from ._namespaces import reconcile_namespace
from ._pods import Nodes, RunPod
from ._replica_sets import reconcile_replica_set
from ._stateful_sets import reconcile_stateful_set


def start_controllers(registry: Registry, run_pod: RunPod) -> Cluster:
    """Start the controllers of a server, and create a node."""
    cluster = Cluster(
        registry,
        {
            "Deployment": reconcile_deployment,
            "ReplicaSet": reconcile_replica_set,
            "StatefulSet": reconcile_stateful_set,
            "Job": reconcile_job,
            "Service": reconcile_service,
            "Namespace": reconcile_namespace,
            "PodDisruptionBudget": reconcile_budget,
            "Pod": Nodes(run_pod).reconcile_pod,
        },
        _begin,
    )
    cluster.settle()
    return cluster


def _begin(cluster: Cluster) -> None:
    """Create a node if there is none, and check the namespaces of every cluster."""
    for namespace in SYSTEM_NAMESPACES:
        cluster.check("Namespace", "", namespace)
    if not cluster.list("Node"):
        conditions = [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": cluster.timestamp}
        ]
        status = {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.36.3"}}
        metadata = {"name": "node-1", "labels": {"kubernetes.io/hostname": "node-1"}}
        node = cluster.create("Node", "", {"metadata": metadata, "status": status})
        cluster.write(node, spec={})  # without the taint of new nodes, which are not ready
