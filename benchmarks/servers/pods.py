"""The objects that all benchmarks use: pods as a cluster has them, about 10 KB of JSON each, and small ones of 0.5 KB.

What is sent to a real API server is made by :func:`new_pod` and :func:`new_status`.
``pod.json`` beside this file is what kube-apiserver made of one such pod (``cluster.py --record`` writes it), and
:func:`encoded_pods` makes any number of others of it, for the replay server.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("pod.json")
NAMESPACES = 50
NODES = 100
PHASES = ("Running", "Running", "Running", "Pending", "Succeeded")


def namespace_of(number: int) -> str:
    return f"bench-{number % NAMESPACES:02d}"


def name_of(number: int) -> str:
    return f"web-frontend-7d4b9c6f5d-{number:06d}"


def node_of(number: int) -> str:
    return f"node-{number * 7 % NODES:03d}.eu-west-1.compute.internal"


def uid_of(number: int) -> str:
    return f"6f1c2a84-0b5e-4d3c-9a77-{number:012x}"


def phase_of(number: int) -> str:
    return PHASES[number % len(PHASES)]


def new_pod(number: int) -> dict[str, object]:
    """What a Deployment's ReplicaSet would create."""
    labels = {
        "app.kubernetes.io/name": "web-frontend",
        "app.kubernetes.io/instance": f"web-frontend-{number % 40:02d}",
        "app.kubernetes.io/version": "2.14.1",
        "app.kubernetes.io/component": "server",
        "app.kubernetes.io/part-of": "shop",
        "pod-template-hash": "7d4b9c6f5d",
        "tier": "frontend",
    }
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9102",
        "kubectl.kubernetes.io/restartedAt": "2026-01-12T08:15:42Z",
        "checksum/config": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-frontend-7d4b9c6f5d",
        "uid": "0b8f3d6e-57a2-4f6b-8b0e-2f4cf2f6a1d9",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(number),
            "generateName": "web-frontend-7d4b9c6f5d-",
            "namespace": namespace_of(number),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": node_of(number),
            "serviceAccountName": "web-frontend",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 45,
            "securityContext": {"runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
            "priority": 0,
            "tolerations": [
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": "web-frontend-config", "defaultMode": 420}},
                {"name": "tls", "secret": {"secretName": "web-frontend-tls", "defaultMode": 420}},
                {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
            ],
            "containers": [_server_container(number), _exporter_container()],
        },
    }


def _server_container(number: int) -> dict[str, object]:
    def probe(path: str, period: int) -> dict[str, object]:
        return {
            "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
            "initialDelaySeconds": 5,
            "timeoutSeconds": 2,
            "periodSeconds": period,
            "successThreshold": 1,
            "failureThreshold": 3,
        }

    return {
        "name": "server",
        "image": "registry.example.com/shop/web-frontend:2.14.1",
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen=:8080", "--config=/etc/web/config.yaml", "--log-format=json", "--shutdown-grace=30s"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "SHARD", "value": str(number % 16)},
            {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "web-frontend-database", "key": "url"}}},
            {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel-collector.observability.svc:4317"},
        ],
        "resources": {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/web", "readOnly": True},
            {"name": "tls", "mountPath": "/etc/tls", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
        "livenessProbe": probe("/healthz", 10),
        "readinessProbe": probe("/readyz", 5),
        "startupProbe": probe("/startupz", 2),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _exporter_container() -> dict[str, object]:
    return {
        "name": "metrics",
        "image": "registry.example.com/base/exporter:0.26.0",
        "imagePullPolicy": "IfNotPresent",
        "args": ["--web.listen-address=:9102"],
        "ports": [{"name": "metrics", "containerPort": 9102, "protocol": "TCP"}],
        "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m", "memory": "32Mi"}},
        "livenessProbe": {"tcpSocket": {"port": "metrics"}, "periodSeconds": 15, "timeoutSeconds": 1},
    }


def new_status(number: int) -> dict[str, object]:
    """What a kubelet would write."""
    at = "2026-01-12T08:16:03Z"
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

    def container(name: str, image: str) -> dict[str, object]:
        digest = "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"
        return {
            "name": name,
            "image": image,
            "imageID": f"{image.partition(':')[0]}@sha256:{digest}",
            "containerID": f"containerd://{number:016x}{digest[16:]}",
            "ready": True,
            "started": True,
            "restartCount": number % 3,
            "state": {"running": {"startedAt": at}},
            "lastState": {},
        }

    return {
        "phase": phase_of(number),
        "hostIP": f"192.168.{number % NODES}.10",
        "hostIPs": [{"ip": f"192.168.{number % NODES}.10"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": "Burstable",
        "startTime": at,
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": at} for kind in kinds
        ],
        "containerStatuses": [
            container("metrics", "registry.example.com/base/exporter:0.26.0"),
            container("server", "registry.example.com/shop/web-frontend:2.14.1"),
        ],
    }


SMALL = {
    "metadata": {
        "name": name_of(0),
        "namespace": namespace_of(0),
        "creationTimestamp": "2026-01-12T08:15:42Z",
        "labels": {"app": "small", "pod-template-hash": "7d4b9c6f5d"},
    },
    "spec": {"nodeName": node_of(0), "containers": [{"name": "server", "image": "registry.example.com/small:1"}]},
    "status": {"podIP": "10.0.0.1", "hostIP": "192.168.0.10", "qosClass": "BestEffort"},
}
VERSION = b"9876543210"
"""Stands for the resourceVersion in an encoded pod."""


def version(number: int) -> bytes:
    """A resourceVersion of ten digits; none begins with a zero, which client-go would refuse."""
    return b"%d" % (1_000_000_000 + number)


def as_json(pod: dict[str, Any]) -> bytes:
    return json.dumps(pod, separators=(",", ":")).encode()


def encoded_pods(size: str, count: int, encode: Callable[[dict[str, Any]], bytes] = as_json) -> list[bytes]:
    """Make pods of the recorded one: other names, namespaces, uids, nodes and phases, the same shape.

    A pod is encoded once for each phase; the other values have the same length for each number, so they are replaced
    in its bytes, in JSON and in protobuf.

    Args:
        size: ``large`` (10 KB) or ``small`` (0.5 KB).
        count: How many.
        encode: Encodes a pod that has neither kind nor apiVersion, as in a list.
    """
    pod = json.loads(RECORDED.read_text()) if size == "large" else copy.deepcopy(SMALL)
    pod["metadata"] |= {"uid": uid_of(0), "resourceVersion": VERSION.decode()}
    marks = b"|".join(re.escape(mark(0).encode()) for mark in (name_of, namespace_of, uid_of, node_of))
    pieces = {}
    for phase in PHASES:
        pod["status"]["phase"] = phase
        pieces[phase] = re.split(b"(%s)" % marks, encode(pod))
    made = []
    for number in range(count):
        values = {mark(0).encode(): mark(number).encode() for mark in (name_of, namespace_of, uid_of, node_of)}
        made.append(b"".join([values.get(piece, piece) for piece in pieces[phase_of(number)]]))
    return made
