"""StatefulSets: numbered pods, in order, with the templates of ControllerRevisions.

Source: kubernetes ``pkg/controller/statefulset``.
"""

from __future__ import annotations

from typing import Final

from .._storage._metadata import json_equal
from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import (
    available,
    claim,
    controller_of,
    counts,
    hash_of,
    is_active,
    phase_of,
    pod_of,
    ready_since,
    replicas_of,
    scaled,
)

_REVISION: Final = "controller-revision-hash"


def reconcile_stateful_set(cluster: Cluster, namespace: str, name: str) -> None:
    """Create, replace or delete pods, one at a time unless they are managed in parallel, and count them."""
    found = cluster.get("StatefulSet", namespace, name)
    if found is not None and found["spec"].get("selector"):
        sync = _Sync(cluster, found)
        if "deletionTimestamp" not in found["metadata"]:
            sync.manage()
        sync.write_status()


def _revisions(cluster: Cluster, found: JSONObject) -> list[JSONObject]:
    """Return the revisions of a StatefulSet, the oldest first.  The last one has the current template."""
    metadata, spec = found["metadata"], found["spec"]
    every = cluster.list("ControllerRevision", metadata["namespace"])
    revisions = [one for one in every if controller_of(one).get("uid") == metadata["uid"]]
    revisions.sort(key=lambda one: int(one["revision"]))
    data = {"spec": {"template": {**(spec.get("template") or {}), "$patch": "replace"}}}
    equal = next((one for one in revisions if json_equal(one["data"], data)), None)
    number = revisions[-1]["revision"] + 1 if revisions else 1
    if equal is None:
        label = hash_of(data)
        labels = {**(spec["selector"].get("matchLabels") or {}), "controller.kubernetes.io/hash": label}
        owners = [cluster.owner_reference("StatefulSet", found)]
        names = {"name": f"{metadata['name']}-{label}", "labels": labels, "ownerReferences": owners}
        made = {"metadata": names, "data": data, "revision": number}
        return [*revisions, cluster.create("ControllerRevision", metadata["namespace"], made)]
    if equal is not revisions[-1]:
        revisions.remove(equal)
        revisions.append(equal)
        cluster.write("ControllerRevision", equal, revision=number)
    return revisions


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
        revisions = {one["metadata"]["name"]: one for one in _revisions(cluster, found)}
        self.update = list(revisions)[-1]
        current = found["status"].get("currentRevision")
        self.current = current if current in revisions else self.update
        self.revisions = revisions
        self.pods = sorted(claim(cluster, "StatefulSet", found, "Pod"), key=_ordinal_of)
        start = int((self.spec.get("ordinals") or {}).get("start", 0))
        self.desired = range(start, start + replicas_of(found))
        self.in_order = self.spec.get("podManagementPolicy") != "Parallel"
        strategy = self.spec.get("updateStrategy") or {}
        self.is_rolling, self.rolling = strategy.get("type") != "OnDelete", strategy.get("rollingUpdate") or {}
        self.first_updated = start + (self.rolling.get("partition") or 0)
        self.available = available(cluster, "StatefulSet", found, self.pods)

    def manage(self) -> None:
        """Take the next step, or with parallel management, the next steps."""
        pods = {_ordinal_of(pod): pod for pod in self.pods}
        for ordinal in self.desired:
            pod = pods.get(ordinal)
            if pod is None:
                self._create(ordinal)
            elif phase_of(pod) in ("Failed", "Succeeded"):
                self.cluster.delete("Pod", pod)
            if self.in_order and (pod is None or pod not in self.available):
                return
        condemned = [pod for ordinal, pod in reversed(pods.items()) if ordinal not in self.desired]
        for pod in condemned[:1] if self.in_order else condemned:
            self.cluster.delete("Pod", pod)
        if self.is_rolling and not condemned:
            allowed = scaled(self.rolling.get("maxUnavailable") or 1, len(self.desired), rounds_up=True)
            allowed -= len(self.desired) - len(self.available)
            stale = [pod for ordinal, pod in reversed(pods.items()) if ordinal >= self.first_updated]
            for pod in [pod for pod in stale if _revision_of(pod) != self.update][: max(allowed, 0)]:
                self.cluster.delete("Pod", pod)

    def _create(self, ordinal: int) -> None:
        revision = self.current if self.is_rolling and ordinal < self.first_updated else self.update
        template = self.revisions[revision]["data"]["spec"]["template"]
        name = f"{self.found['metadata']['name']}-{ordinal}"
        pod = pod_of(self.cluster, "StatefulSet", self.found, template)
        identity = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}
        labels = {**(pod["metadata"]["labels"] or {}), _REVISION: revision, **identity}
        pod["metadata"] |= {"name": name, "labels": labels}
        pod["spec"] |= {"hostname": name, "subdomain": self.spec.get("serviceName", "")}
        self.cluster.create("Pod", self.found["metadata"]["namespace"], pod)

    def write_status(self) -> None:
        """Count the pods."""
        pods = claim(self.cluster, "StatefulSet", self.found, "Pod")
        used = [_revision_of(pod) for pod in pods if is_active(pod)]
        ready = sum(ready_since(pod) is not None for pod in pods)
        if self.is_rolling and used.count(self.update) == ready == len(pods) == len(self.desired):
            self.current = self.update  # the rollout is complete
        status = {
            **counts(
                observedGeneration=self.found["metadata"]["generation"],
                replicas=len(pods),
                readyReplicas=ready,
                currentReplicas=used.count(self.current),
                updatedReplicas=used.count(self.update),
            ),
            "availableReplicas": len(available(self.cluster, "StatefulSet", self.found, pods)),
            "currentRevision": self.current,
            "updateRevision": self.update,
            "collisionCount": 0,
        }
        self.cluster.write("StatefulSet", self.found, status=status)
