"""The ServiceAccount and the ConfigMap that each namespace has.

Source: kubernetes ``pkg/controller/serviceaccount`` and ``pkg/controller/certificates/rootcacertpublisher``.
"""

from __future__ import annotations

from typing import Final

from .._storage._storage import JSONObject
from ._cluster import Cluster

_OBJECTS: Final[dict[str, JSONObject]] = {
    "ServiceAccount": {"metadata": {"name": "default"}},
    "ConfigMap": {
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when "
                "using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
                "guaranteed across distributions of Kubernetes clusters."
            },
        },
        "data": {"ca.crt": ""},
    },
}


def reconcile_namespace(cluster: Cluster, namespace: JSONObject) -> None:
    """Create what a namespace lacks."""
    name = namespace["metadata"]["name"]
    for kind, obj in _OBJECTS.items():
        if cluster.get(kind, name, obj["metadata"]["name"]) is None:
            cluster.create(kind, name, obj)
