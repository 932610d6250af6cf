"""StatefulSets: numbered pods, in order, with the templates of ControllerRevisions.

Source: kubernetes ``pkg/controller/statefulset``.
"""

from __future__ import annotations

from typing import Final

from .._storage._metadata import json_equal
from .._storage._storage import JSONObject
from ._cluster import Cluster, controller_of
from ._objects import available, claim, create_pod, hash_of, is_active, phase_of, ready_since, replicas_of

_REVISION: Final = "controller-revision-hash"


def reconcile_stateful_set(cluster: Cluster, found: JSONObject) -> None:
    """Create, replace or delete pods, one at a time unless they are managed in parallel, and count them."""
    if found["spec"].get("selector"):
        sync = _Sync(cluster, found)
        sync.manage()
        sync.write_status()


def _revisions(cluster: Cluster, found: JSONObject) -> dict[str, JSONObject]:
    """Return the templates of a StatefulSet by revision, the oldest first.  The last one is the current template."""
    metadata, spec = found["metadata"], found["spec"]
    every = cluster.list("ControllerRevision", metadata["namespace"])
    revisions = [one for one in every if controller_of(one).get("uid") == metadata["uid"]]
    revisions.sort(key=lambda one: int(one["revision"]))
    data = {"spec": {"template": {**(spec.get("template") or {}), "$patch": "replace"}}}
    number = revisions[-1]["revision"] + 1 if revisions else 1
    equal = next((one for one in revisions if json_equal(one["data"], data)), None)
    if equal is None:
        label = hash_of(data)
        labels = {**(spec["selector"].get("matchLabels") or {}), "controller.kubernetes.io/hash": label}
        names = {"generateName": None, "name": f"{metadata['name']}-{label}", "labels": labels}
        revisions.append(cluster.create_owned("ControllerRevision", found, names, data=data, revision=number))
    elif equal is not revisions[-1]:
        revisions.remove(equal)
        revisions.append(equal)
        cluster.write(equal, revision=number)
    return {one["metadata"]["name"]: one["data"]["spec"]["template"] for one in revisions}


def _revision_of(pod: JSONObject) -> str | None:
    label: str | None = (pod["metadata"].get("labels") or {}).get(_REVISION)
    return label


def _ordinal_of(pod: JSONObject) -> int:
    number: str = pod["metadata"]["name"].rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


class _Sync:
    """One check of a StatefulSet."""

    def __init__(self, cluster: Cluster, found: JSONObject) -> None:
        self.cluster, self.found, self.spec = cluster, found, found["spec"]
        self.templates = _revisions(cluster, found)
        self.update = list(self.templates)[-1]
        current = found["status"].get("currentRevision")
        self.current = current if current in self.templates else self.update
        self.desired = range(replicas_of(found))
        strategy = self.spec.get("updateStrategy") or {}
        self.is_rolling = strategy.get("type") != "OnDelete"
        self.first_updated = (strategy.get("rollingUpdate") or {}).get("partition") or 0

    def manage(self) -> None:
        """Take the next step, or with parallel management, the next steps."""
        in_order = self.spec.get("podManagementPolicy") != "Parallel"
        pods = {_ordinal_of(pod): pod for pod in sorted(claim(self.cluster, self.found, "Pod"), key=_ordinal_of)}
        ready = available(self.cluster, self.found, pods.values())
        for ordinal in self.desired:
            pod = pods.get(ordinal)
            if pod is None:
                self._create(ordinal)
            elif phase_of(pod) in ("Failed", "Succeeded"):
                self.cluster.delete(pod)
            if in_order and pod not in ready:
                return
        condemned = [pod for ordinal, pod in reversed(pods.items()) if ordinal not in self.desired]
        for pod in condemned[:1] if in_order else condemned:
            self.cluster.delete(pod)
        if self.is_rolling and not condemned and len(ready) == len(self.desired):
            stale = [pod for pod in pods.values() if _revision_of(pod) != self.update]
            for pod in [pod for pod in stale if _ordinal_of(pod) >= self.first_updated][-1:]:
                self.cluster.delete(pod)

    def _create(self, ordinal: int) -> None:
        revision = self.current if self.is_rolling and ordinal < self.first_updated else self.update
        template, name = self.templates[revision], f"{self.found['metadata']['name']}-{ordinal}"
        identity = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}
        labels = {**((template.get("metadata") or {}).get("labels") or {}), _REVISION: revision, **identity}
        names, service = {"name": name, "labels": labels}, self.spec.get("serviceName", "")
        create_pod(self.cluster, self.found, template, names, hostname=name, subdomain=service)

    def write_status(self) -> None:
        """Count the pods."""
        pods = claim(self.cluster, self.found, "Pod")
        used = [_revision_of(pod) for pod in pods if is_active(pod)]
        ready = sum(ready_since(pod) is not None for pod in pods)
        if self.is_rolling and used.count(self.update) == ready == len(pods) == len(self.desired):
            self.current = self.update  # the rollout is complete
        status = {
            "observedGeneration": self.found["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": ready or None,
            "availableReplicas": len(available(self.cluster, self.found, pods)),
            "currentReplicas": used.count(self.current) or None,
            "updatedReplicas": used.count(self.update) or None,
            "currentRevision": self.current,
            "updateRevision": self.update,
            "collisionCount": 0,
        }
        self.cluster.write(self.found, status=status)
