"""Objects as a cluster has them, with secrets in the places where their content is."""

from __future__ import annotations

import base64
import random
from typing import Any

from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, metadata_kind, unstructured_kind
from trioformer.models.core_v1 import Pod, Secret

from .json_text import JSON
from .secrets import CONTENT, KEY_PEM, PASSWORD, TOKEN

SERVER = "https://server.example:6443"
CONFIGS = (
    ClusterConfig(server=SERVER, token=TOKEN, client_key_data=KEY_PEM.encode(), client_certificate_data=b"public"),
    ClusterConfig(server=SERVER, username="admin", password=PASSWORD),
)
"""Two configurations with secrets."""

Widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
KINDS: dict[str, type[KubernetesObject]] = {
    "Pod": Pod,
    "Secret": Secret,
    "Widget": Widget,
    "PartialObjectMetadata": metadata_kind(Pod),
}
NAMESPACE = "default"


def metadata(rng: random.Random, number: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": f"web-{number}",
        "namespace": NAMESPACE,
        "uid": f"6f1c2a84-0b5e-4d3c-9a77-{number:012x}",
        "resourceVersion": str(1_000 + number),
    }
    extra: dict[str, Any] = {
        "generation": 3,
        "creationTimestamp": "2026-01-12T08:15:42Z",
        "labels": {"app": "web", "tier": "frontend"},
        "annotations": {"example.com/note": CONTENT},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
        ],
        "finalizers": ["example.com/keep"],
        "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:x": {}}}}],
    }
    return made | {name: value for name, value in extra.items() if rng.random() < 0.5}


def new_object(rng: random.Random, kind: str, number: int, *, typed: bool | None = None) -> JSON:
    """Make a valid object; items of typed lists omit kind and apiVersion, unless ``typed``."""
    made: dict[str, Any] = {"metadata": metadata(rng, number)}
    version = {"Widget": "example.com/v1", "PartialObjectMetadata": "meta.k8s.io/v1"}.get(kind, "v1")
    if typed or (typed is None and rng.random() < 0.5) or kind == "Widget":
        pair = {"kind": kind, "apiVersion": version}
        made = {**(pair if rng.random() < 0.5 else dict(reversed(pair.items()))), **made}
    if kind == "Pod":
        env = [{"name": "PASSWORD", "value": CONTENT}]
        container = {"name": "web", "image": "nginx:1.27", "env": env, "resources": {"limits": {"cpu": "100m"}}}
        made["spec"] = {"containers": [container], "nodeName": "node-1", "hostNetwork": False, "novel": CONTENT}
        made["status"] = {"phase": "Running", "podIP": "10.0.0.7", "startTime": "2026-01-12T08:15:42Z"}
    elif kind == "Secret":
        made["data"] = {"password": base64.b64encode(CONTENT.encode()).decode()}
        made["stringData"] = {"plain": CONTENT}
        made["type"] = "Opaque"
    elif kind == "Widget":
        made["spec"] = {"size": 3, "key": CONTENT, "parts": [{"name": "a", "weight": 0.5}], "big": 2**53}
        made["novel"] = {"key": CONTENT}
    return made


def new_status(rng: random.Random, code: int, reason: str) -> JSON:
    """Make the Status of a failure."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "web-1" not found',
        "reason": reason,
        "code": code,
    }
    if rng.random() < 0.6:
        causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers[0].name"}]
        status["details"] = {"name": "web-1", "kind": "pods", "uid": "1", "causes": causes, "retryAfterSeconds": 2}
    if rng.random() < 0.5:
        status["novel"] = CONTENT
    return status
