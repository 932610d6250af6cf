"""When an object is ready, as kubectl's rollout status and kstatus decide it."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.manifests import readiness_of
from trioformer.models import from_dict, unstructured_kind
from trioformer.models._kinds import builtin_kind

READY, WAITING, FAILED = "ready", "waiting", "failed"
NOT_OBSERVED = "its controller has not observed the newest generation yet"
TWO = {"replicas": 2}
PARTITIONED = {"replicas": 5, "updateStrategy": {"rollingUpdate": {"partition": 3}}}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
OLD = {"updateRevision": "b", "currentRevision": "a"}
NEW = {"updateRevision": "b", "currentRevision": "b"}
API_VERSIONS = {
    **dict.fromkeys(["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet"], "apps/v1"),
    "Job": "batch/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "APIService": "apiregistration.k8s.io/v1",
    "Website": "example.com/v1",
}


def true(kind: str, **more: object) -> dict[str, object]:
    return {"type": kind, "status": "True", **more}


def false(kind: str, reason: str) -> dict[str, object]:
    return {"type": kind, "status": "False", "reason": reason}


def scheduled(desired: int, updated: int, available: int) -> dict[str, object]:
    return observed(desiredNumberScheduled=desired, updatedNumberScheduled=updated, numberAvailable=available)


def observed(**status: object) -> dict[str, object]:
    return {"observedGeneration": 3, **status}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "state", "message"),
    [
        ("Deployment", TWO, {}, WAITING, NOT_OBSERVED),
        ("Deployment", TWO, observed(updatedReplicas=1), WAITING, "1 of 2 replicas are updated"),
        ("Deployment", TWO, observed(replicas=4, updatedReplicas=2), WAITING, "2 old replicas will be terminated"),
        ("Deployment", TWO, observed(replicas=2, updatedReplicas=2, availableReplicas=1), WAITING, "1 of 2 updated"),
        (
            "Deployment",
            TWO,
            observed(replicas=2, updatedReplicas=2, availableReplicas=2),
            READY,
            "its rollout is complete",
        ),
        (
            "Deployment",
            TWO,
            observed(conditions=[false("Progressing", "ProgressDeadlineExceeded")]),
            FAILED,
            "progress deadline",
        ),
        ("DaemonSet", {}, scheduled(3, 2, 3), WAITING, "2 of 3 pods are updated"),
        ("DaemonSet", ON_DELETE, scheduled(3, 2, 3), READY, "its rollout is complete"),
        ("DaemonSet", {}, scheduled(3, 3, 2), WAITING, "2 of 3 pods are available"),
        ("DaemonSet", {}, observed(), READY, "its rollout is complete"),
        ("StatefulSet", TWO, observed(readyReplicas=1), WAITING, "1 of 2 pods are ready"),
        ("StatefulSet", TWO, observed(readyReplicas=2, updatedReplicas=1, **OLD), WAITING, "1 of 2 pods are updated"),
        ("StatefulSet", TWO, observed(readyReplicas=2, **NEW), READY, "its rollout is complete"),
        ("StatefulSet", PARTITIONED, observed(readyReplicas=5, updatedReplicas=1, **OLD), WAITING, "1 of 2 pods above"),
        ("StatefulSet", PARTITIONED, observed(readyReplicas=5, updatedReplicas=2, **OLD), READY, "partitioned"),
        ("StatefulSet", {**TWO, **ON_DELETE}, observed(readyReplicas=2, **OLD), READY, "all pods are ready; each pod"),
        (
            "ReplicaSet",
            TWO,
            observed(availableReplicas=1, conditions=[true("ReplicaFailure", message="no quota")]),
            WAITING,
            "no quota",
        ),
        ("ReplicaSet", TWO, observed(availableReplicas=2, replicas=3), WAITING, "1 old replica will be terminated"),
        ("ReplicaSet", TWO, observed(availableReplicas=2), READY, "all replicas are available"),
        ("ReplicationController", {"replicas": 0}, observed(), READY, "all replicas are available"),
        ("Job", {"completions": 3}, {"succeeded": 1, "active": 2}, WAITING, "1 of 3 completions, 2 pods active"),
        ("Job", {}, {"conditions": [true("Complete")]}, READY, "it is complete"),
        (
            "Job",
            {},
            {"conditions": [true("FailureTarget"), true("Failed", reason="DeadlineExceeded")]},
            FAILED,
            "DeadlineExceeded",
        ),
        ("Job", {"suspend": True}, {}, READY, "it is suspended"),
        ("Pod", {}, {"phase": "Pending"}, WAITING, "it has no condition Ready yet"),
        ("Pod", {}, {"conditions": [false("Ready", "ContainersNotReady")]}, WAITING, "ContainersNotReady"),
        ("Pod", {}, {"phase": "Succeeded"}, READY, "it has succeeded"),
        ("Pod", {}, {"phase": "Failed", "reason": "Evicted"}, FAILED, "it has failed: Evicted"),
        ("Namespace", {}, {"phase": "Active"}, READY, "it exists"),
        ("Namespace", {}, {"phase": "Terminating"}, WAITING, "it is being deleted"),
        (
            "CustomResourceDefinition",
            {},
            {"conditions": [false("NamesAccepted", "PluralConflict")]},
            FAILED,
            "PluralConflict",
        ),
        (
            "CustomResourceDefinition",
            {},
            {"conditions": [true("NamesAccepted"), true("Established")]},
            READY,
            "Established",
        ),
        (
            "APIService",
            {},
            {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound", "message": "m"}]},
            WAITING,
            "ServiceNotFound: m",
        ),
        ("ConfigMap", {}, {}, READY, "it exists"),
        ("DaemonSet", {}, {}, WAITING, NOT_OBSERVED),
        ("StatefulSet", TWO, {"observedGeneration": 0, "readyReplicas": 2}, WAITING, NOT_OBSERVED),
        ("ReplicationController", {"replicas": 0}, {}, WAITING, NOT_OBSERVED),
        ("Website", {}, {"observedGeneration": 2}, WAITING, NOT_OBSERVED),
        ("Website", {}, {"conditions": [true("Ready", observedGeneration=2)]}, WAITING, NOT_OBSERVED),
        ("Website", {}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, WAITING, "Unknown: without"),
        ("Website", {}, {"conditions": [true("Reconciling")]}, WAITING, "it is being reconciled"),
        ("Website", {}, {"conditions": [true("Ready"), true("Stalled", reason="NoImage")]}, FAILED, "NoImage"),
        ("Website", "text", ["of another", {"type": 5}], READY, "it exists"),
    ],
)
def test_readiness(kind: str, spec: Any, status: Any, state: str, message: str) -> None:
    api_version = API_VERSIONS.get(kind, "v1")
    if kind == "Website":
        cls: Any = unstructured_kind(api_version, kind, plural="websites", namespaced=True)
    else:
        cls = builtin_kind(api_version, kind)
    metadata = {"name": "a", "generation": 3}
    whole = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status}
    found = readiness_of(from_dict(cls, whole))
    assert (found.state, message in found.message) == (state, True), found
    assert bool(found) is (found.state == READY)


def test_an_object_that_is_being_deleted_is_not_ready() -> None:
    metadata = {"name": "a", "deletionTimestamp": "2026-11-22T19:00:00Z"}
    found = readiness_of(from_dict(builtin_kind("v1", "ConfigMap"), {"metadata": metadata}))
    assert (found.state, found.message) == (WAITING, "it is being deleted")
