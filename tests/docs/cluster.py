"""The cluster that the blocks of a page find: a few objects, as a reader's test cluster has them."""

from __future__ import annotations

from typing import Any

from trioformer.models import from_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Namespace, Node, Pod, Secret, Service
from trioformer.testing import APIServer

NAMESPACES = ("shop", "staging")
NODES = ("worker-1", "worker-2")
PODS = (("web-0", "web", "worker-1"), ("web-1", "web", "worker-2"), ("db-0", "db", "worker-1"))
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: here, user: me, namespace: default}}
- {name: prod, context: {cluster: here, user: me}}
- {name: staging, context: {cluster: here, user: me, namespace: staging}}
clusters:
- {name: here, cluster: {server: "http://127.0.0.1:1"}}
users:
- {name: me, user: {}}
"""
"""What is in ``~/.kube/config``; nothing listens there: clients are given the embedded server."""


def fill(server: APIServer) -> None:
    """Create the objects."""
    for name in NAMESPACES:
        server.create(from_dict(Namespace, {"metadata": {"name": name, "labels": {"team": "shop"}}}))
    for name in NODES:
        server.create(from_dict(Node, {"metadata": {"name": name}, "spec": {}, "status": {"conditions": [READY]}}))
    for name, app, node in PODS:
        server.create(from_dict(Pod, pod(name, app, node)))
    for name in ("web", "db"):
        server.create(from_dict(Deployment, deployment(name)))
        spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
        server.create(from_dict(Service, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}))
    metadata = {"name": "web-config", "namespace": "default"}
    server.create(from_dict(ConfigMap, {"metadata": metadata, "data": {"level": "INFO"}}))
    metadata = {"name": "web-tls", "namespace": "default"}
    server.create(from_dict(Secret, {"metadata": metadata, "data": {"token": "c2VjcmV0"}}))


def pod(name: str, app: str, node: str) -> dict[str, Any]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{app}-7d9c",
        "uid": f"{app}-uid",
        "controller": True,
    }
    running = {"running": {"startedAt": READY["lastTransitionTime"]}}
    state = {"name": app, "image": f"{app}:1", "imageID": "", "ready": True, "restartCount": 0, "state": running}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}, "ownerReferences": [owner]},
        "spec": {"nodeName": node, "containers": [{"name": app, "image": f"{app}:1"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [READY], "containerStatuses": [state]},
    }


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": f"{name}:1"}]}}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels, "generation": 1},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
    }
