"""kube-controller-manager as a client of the embedded API server, which runs no controllers of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from tests.e2e.embedded_cluster import problems_of, programs_on, until_nothing
from trioformer.errors import NotFoundError
from trioformer.testing import APIServer

MANIFESTS: Final = """
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: shop, annotations: {kubernetes.io/service-account.name: default}}
type: kubernetes.io/service-account-token
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeName: node-1, terminationGracePeriodSeconds: 0, containers: [{name: main, image: nginx}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {nodeName: node-1, terminationGracePeriodSeconds: 0, containers: [{name: main, image: nginx}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop}
spec:
  completions: 2
  template:
    spec: {nodeName: node-1, restartPolicy: Never, containers: [{name: main, image: nginx}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: shop}
spec: {hard: {pods: "20"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part, labels: {example.com/aggregate: "true"}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: whole}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {example.com/aggregate: "true"}}]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: "", hostPath: {path: /x}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}
"""

STATES: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("deployments.apps", "web"): {"status": {"availableReplicas": 3, "updatedReplicas": 3, "observedGeneration": 1}},
    ("statefulsets.apps", "db"): {"status": {"availableReplicas": 2, "updatedReplicas": 2}},
    ("jobs.batch", "migrate"): {"status": {"succeeded": 2}},
    ("poddisruptionbudgets.policy", "web"): {"status": {"disruptionsAllowed": 2, "expectedPods": 3}},
    ("resourcequotas", "quota"): {"status": {"used": {"pods": "5"}}},
    ("configmaps", "kube-root-ca.crt"): {},
    ("secrets", "token"): {"data": {"namespace": "c2hvcA=="}},
    ("persistentvolumeclaims", "data"): {"status": {"phase": "Bound"}},
}
"""What the controllers make of the objects in the namespace ``shop``."""


ROLLED_OUT: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("deployments.apps", "web"): {
        "status": {"replicas": 2, "availableReplicas": 2, "updatedReplicas": 2, "observedGeneration": 3}
    }
}


def contains(obj: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(obj, dict) and all(contains(obj.get(key), value) for key, value in part.items())
    return bool(obj == part)


def addresses(server: APIServer) -> list[str]:
    slices = server.list("endpointslices.discovery.k8s.io", namespace="shop", label_selector="app!=db")
    return [ip for each in slices for point in each.get("endpoints") or [] for ip in point["addresses"]]


def differences(server: APIServer, states: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    """Return the objects that are not in their state, or None for those that do not exist."""
    found: dict[str, Any] = {}
    for (kind, name), state in states.items():
        try:
            obj: Any = server.get(kind, name, namespace="shop")
        except NotFoundError:
            obj = None
        if obj is None or not contains(obj, state):
            found[f"{kind} {name}"] = obj
    return found


def sizes(server: APIServer) -> list[int]:
    return sorted(each["spec"]["replicas"] for each in server.list("replicasets.apps", namespace="shop"))


def left(server: APIServer, *kinds: str) -> list[str]:
    return [f"{kind} {each['metadata']['name']}" for kind in kinds for each in server.list(kind, namespace="shop")]


async def test_kube_controller_manager_controls_the_objects(assets: Path, tmp_path: Path) -> None:
    server = APIServer()
    async with programs_on(server, assets, tmp_path, ["kube-controller-manager", "kwok"]) as programs:
        for kind, name in (("Node", "node-1"), ("Namespace", "shop")):
            server.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
        # The controller deletes the token of an account that does not exist.
        await until_nothing(lambda: differences(server, {("serviceaccounts", "default"): {}}), 20)
        for manifest in yaml.safe_load_all(MANIFESTS):
            server.create(manifest)
        await until_nothing(lambda: differences(server, STATES), 40)
        assert len(addresses(server)) == 3
        assert server.get("clusterroles.rbac.authorization.k8s.io", "whole")["rules"]
        # A scale, a rollout, and the deletion of owners.
        change = {"template": {"metadata": {"annotations": {"example.com/round": "2"}}}}
        for spec in ({"replicas": 2}, change):
            server.patch("deployments.apps", "web", {"spec": spec}, namespace="shop")
        await until_nothing(lambda: differences(server, ROLLED_OUT) or sizes(server) != [0, 2], 20)
        await until_nothing(lambda: len(addresses(server)) != 2, 20)
        server.delete("deployments.apps", "web", namespace="shop")
        await until_nothing(lambda: sizes(server) or server.list("pods", label_selector="app=web"), 20)
        server.delete("namespaces", "shop")
        await until_nothing(lambda: left(server, "pods", "secrets", "events", "persistentvolumeclaims"), 20)
        await until_nothing(lambda: "shop" in {each["metadata"]["name"] for each in server.list("namespaces")}, 20)
        assert [problem for program in programs for problem in problems_of(program)] == []
