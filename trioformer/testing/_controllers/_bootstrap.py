"""The node that a cluster begins with, and the ServiceAccount and the ConfigMap that each namespace has.

Source: kubernetes ``pkg/controller/serviceaccount`` and ``pkg/controller/certificates/rootcacertpublisher``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...models._internal import decode
from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import set_condition

_OBJECTS: Final[dict[str, JSONObject]] = decode(Path(__file__).with_name("namespace.json").read_bytes())
"""The objects that each namespace has, by their kinds."""


def create_node(cluster: Cluster) -> None:
    """Create a node if there is none."""
    if not cluster.list("Node"):
        metadata = {"name": "node-1", "labels": {"kubernetes.io/hostname": "node-1"}}
        node = cluster.create("Node", "", {"metadata": metadata})
        node["status"]["nodeInfo"] = {"kubeletVersion": "v1.36.3"}
        set_condition(cluster, node, "Ready", "True", "KubeletReady", "kubelet is posting ready status")
        cluster.write(node, spec={})  # without the taint of new nodes, which are not ready


def reconcile_namespace(cluster: Cluster, namespace: JSONObject) -> None:
    """Create what a namespace lacks."""
    name = namespace["metadata"]["name"]
    for kind, obj in _OBJECTS.items():
        if cluster.get(kind, name, obj["metadata"]["name"]) is None:
            cluster.create(kind, name, obj)
