"""Controllers in virtual time: a small part of kube-controller-manager, kube-scheduler and kubelet.

Each controller is a function that takes the :class:`Cluster` and an object that is not being deleted, and takes the
next steps towards the desired state of this object.  The functions are called at the end of each write that concerns
the object, until nothing changes any more.

Source: kubernetes ``pkg/controller``, v1.36.
"""

from __future__ import annotations

from .._storage._registry import Registry
from ._bootstrap import create_node, reconcile_namespace
from ._cluster import Cluster as Cluster
from ._cluster import RunPod
from ._deployments import reconcile_deployment
from ._disruptions import reconcile_budget
from ._endpoint_slices import reconcile_service
from ._jobs import reconcile_job
from ._pods import reconcile_pod
from ._replica_sets import reconcile_replica_set
from ._stateful_sets import reconcile_stateful_set


def start_controllers(registry: Registry, run_pod: RunPod) -> Cluster:
    """Start the controllers of a server, and create a node."""
    reconcilers = {
        "Deployment": reconcile_deployment,
        "ReplicaSet": reconcile_replica_set,
        "StatefulSet": reconcile_stateful_set,
        "Job": reconcile_job,
        "Service": reconcile_service,
        "Namespace": reconcile_namespace,
        "PodDisruptionBudget": reconcile_budget,
        "Pod": reconcile_pod,
    }
    cluster = Cluster(registry, run_pod, create_node, reconcilers)
    cluster.settle()
    return cluster
