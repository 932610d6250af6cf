"""The embedded server whose objects the invocations of the command line tool show."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trioformer.manifests import load_manifests
from trioformer.models import ResourceInfo, to_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.testing import APIServer

__all__ = ["OBJECTS", "make_server"]

OBJECTS: Final = Path(__file__).parent / "kubectl_objects.yaml"


def make_server() -> APIServer:
    """Make a server with the objects, and with what controllers, a node and a metrics server make."""
    server = APIServer()
    amounts = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "hugepages-2Mi": "0", "example.com/gpu": "2"}
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "node-1", "labels": {"node-role.kubernetes.io/worker": "", "disk": "ssd"}},
            "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
            "status": {"capacity": amounts, "nodeInfo": {"kubeletVersion": "v1.36.3"}},
        }
    )
    for manifest in load_manifests(OBJECTS):
        server.create(manifest.object)
    _create_replicas(server)
    _create_metrics(server)
    return server


def _create_replicas(server: APIServer) -> None:
    """Do what controllers and a node do: one ReplicaSet with two pods, of which one is ready."""
    web = server.get(Deployment, "web")
    server.patch(
        Deployment, "web", {"status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}
    )
    template = to_dict(web)["spec"]["template"]
    labels = {"app": "web", "pod-template-hash": "abc"}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": web.uid, "controller": True}
    made = server.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web-abc", "namespace": "default", "labels": labels, "ownerReferences": [owner]},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
            "status": {"replicas": 2, "readyReplicas": 1},
        }
    )
    owner = {**owner, "kind": "ReplicaSet", "name": "web-abc", "uid": made["metadata"]["uid"]}
    for name, phase in (("web-abc-1", "Running"), ("web-abc-2", "Pending")):
        state = {"ready": phase == "Running", "restartCount": 0, "image": "x", "imageID": ""}
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [owner]},
                "spec": template["spec"],
                "status": {
                    "phase": phase,
                    "startTime": "2026-01-02T03:04:05Z",
                    "containerStatuses": [{"name": "main", **state}, {"name": "side", **state}],
                },
            }
        )


def _create_metrics(server: APIServer) -> None:
    """Do what a metrics server does."""
    group = {"group": "metrics.k8s.io", "version": "v1beta1"}
    server.register(ResourceInfo(**group, kind="NodeMetrics", plural="nodes", namespaced=False))
    server.register(ResourceInfo(**group, kind="PodMetrics", plural="pods", namespaced=True))
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "timestamp": "2026-01-02T03:04:05Z", "window": "30s"}
    usage = {"cpu": "1234567890n", "memory": "2000000Ki"}
    server.create({**head, "kind": "NodeMetrics", "metadata": {"name": "node-1"}, "usage": usage})
    for name, cpu in (("web-abc-1", "1500u"), ("web-abc-2", "250m")):
        containers = [
            {"name": "main", "usage": {"cpu": cpu, "memory": "64Mi"}},
            {"name": "side", "usage": {"cpu": "1m", "memory": "1500Ki"}},
        ]
        metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
        server.create({**head, "kind": "PodMetrics", "metadata": metadata, "containers": containers})
