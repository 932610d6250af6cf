"""When an object is ready, as kubectl's rollout status and kstatus decide it."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.manifests import readiness_of
from trioformer.models import builtin_kind, from_dict, unstructured_kind

READY, WAITING, FAILED = "ready", "waiting", "failed"
NOT_OBSERVED = "its controller has not observed the newest generation yet"
TWO = {"replicas": 2}


def true(kind: str, **more: object) -> dict[str, object]:
    return {"type": kind, "status": "True", **more}


def observed(**status: object) -> dict[str, object]:
    return {"observedGeneration": 3, **status}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "status", "expected"),
    [
        ("apps/v1", "Deployment", TWO, {}, (WAITING, NOT_OBSERVED)),
        ("apps/v1", "Deployment", TWO, {"observedGeneration": 2, "replicas": 2}, (WAITING, NOT_OBSERVED)),
        ("apps/v1", "Deployment", TWO, observed(updatedReplicas=1), (WAITING, "1 of 2 replicas are updated")),
        ("apps/v1", "Deployment", {}, observed(), (WAITING, "0 of 1 replicas are updated")),
        (
            "apps/v1",
            "Deployment",
            TWO,
            observed(replicas=4, updatedReplicas=2),
            (WAITING, "2 old replicas will be terminated"),
        ),
        (
            "apps/v1",
            "Deployment",
            TWO,
            observed(replicas=2, updatedReplicas=2, availableReplicas=1),
            (WAITING, "1 of 2 updated replicas are available"),
        ),
        (
            "apps/v1",
            "Deployment",
            TWO,
            observed(replicas=2, updatedReplicas=2, availableReplicas=2),
            (READY, "its rollout is complete"),
        ),
        ("apps/v1", "Deployment", {"replicas": 0}, observed(), (READY, "its rollout is complete")),
        (
            "apps/v1",
            "Deployment",
            TWO,
            observed(conditions=[{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]),
            (FAILED, "it has exceeded its progress deadline"),
        ),
        ("apps/v1", "DaemonSet", {}, {}, (WAITING, NOT_OBSERVED)),
        (
            "apps/v1",
            "DaemonSet",
            {},
            observed(desiredNumberScheduled=3, updatedNumberScheduled=2, numberAvailable=3),
            (WAITING, "2 of 3 pods are updated"),
        ),
        (
            "apps/v1",
            "DaemonSet",
            {"updateStrategy": {"type": "OnDelete"}},
            observed(desiredNumberScheduled=3, updatedNumberScheduled=2, numberAvailable=3),
            (READY, "its rollout is complete"),
        ),
        (
            "apps/v1",
            "DaemonSet",
            {},
            observed(desiredNumberScheduled=3, updatedNumberScheduled=3, numberAvailable=2),
            (WAITING, "2 of 3 pods are available"),
        ),
        ("apps/v1", "DaemonSet", {}, observed(), (READY, "its rollout is complete")),
        ("apps/v1", "StatefulSet", TWO, {"observedGeneration": 0, "readyReplicas": 2}, (WAITING, NOT_OBSERVED)),
        ("apps/v1", "StatefulSet", TWO, observed(readyReplicas=1), (WAITING, "1 of 2 pods are ready")),
        (
            "apps/v1",
            "StatefulSet",
            TWO,
            observed(readyReplicas=2, updatedReplicas=1, updateRevision="b", currentRevision="a"),
            (WAITING, "1 of 2 pods are updated"),
        ),
        (
            "apps/v1",
            "StatefulSet",
            TWO,
            observed(readyReplicas=2, updateRevision="b", currentRevision="b"),
            (READY, "its rollout is complete"),
        ),
        (
            "apps/v1",
            "StatefulSet",
            {"replicas": 5, "updateStrategy": {"rollingUpdate": {"partition": 3}}},
            observed(readyReplicas=5, updatedReplicas=1, updateRevision="b", currentRevision="a"),
            (WAITING, "1 of 2 pods above the partition are updated"),
        ),
        (
            "apps/v1",
            "StatefulSet",
            {"replicas": 5, "updateStrategy": {"rollingUpdate": {"partition": 3}}},
            observed(readyReplicas=5, updatedReplicas=2, updateRevision="b", currentRevision="a"),
            (READY, "its partitioned rollout is complete"),
        ),
        (
            "apps/v1",
            "StatefulSet",
            {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
            observed(readyReplicas=2, updateRevision="b", currentRevision="a"),
            (READY, "all pods are ready, and are updated when they are deleted"),
        ),
        (
            "apps/v1",
            "ReplicaSet",
            TWO,
            observed(availableReplicas=1, conditions=[true("ReplicaFailure", message="no quota")]),
            (WAITING, "1 of 2 replicas are available: no quota"),
        ),
        (
            "apps/v1",
            "ReplicaSet",
            TWO,
            observed(availableReplicas=2, replicas=3),
            (WAITING, "1 old replica will be terminated"),
        ),
        ("apps/v1", "ReplicaSet", TWO, observed(availableReplicas=2), (READY, "all replicas are available")),
        ("v1", "ReplicationController", {"replicas": 0}, {}, (WAITING, NOT_OBSERVED)),
        ("v1", "ReplicationController", {"replicas": 0}, observed(), (READY, "all replicas are available")),
        ("batch/v1", "Job", {}, {}, (WAITING, "0 of 1 completions, 0 pods active")),
        (
            "batch/v1",
            "Job",
            {"completions": 3},
            {"succeeded": 1, "active": 2},
            (WAITING, "1 of 3 completions, 2 pods active"),
        ),
        ("batch/v1", "Job", {}, {"conditions": [true("Complete")]}, (READY, "it is complete")),
        (
            "batch/v1",
            "Job",
            {},
            {"conditions": [true("FailureTarget"), true("Failed", reason="DeadlineExceeded")]},
            (FAILED, "it has failed: DeadlineExceeded"),
        ),
        ("batch/v1", "Job", {"suspend": True}, {}, (READY, "it is suspended")),
        ("v1", "Pod", {}, {"phase": "Pending"}, (WAITING, "it has no condition Ready yet")),
        ("v1", "Pod", {}, {"conditions": [true("Ready")]}, (READY, "its condition Ready is true")),
        (
            "v1",
            "Pod",
            {},
            {"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]},
            (WAITING, "its condition Ready is False: ContainersNotReady"),
        ),
        ("v1", "Pod", {}, {"phase": "Succeeded"}, (READY, "it has succeeded")),
        ("v1", "Pod", {}, {"phase": "Failed", "reason": "Evicted"}, (FAILED, "it has failed: Evicted")),
        ("v1", "Namespace", {}, {"phase": "Active"}, (READY, "it exists")),
        ("v1", "Namespace", {}, {"phase": "Terminating"}, (WAITING, "it is being deleted")),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {},
            {"conditions": [{"type": "NamesAccepted", "status": "False", "reason": "PluralConflict"}]},
            (FAILED, "its names are not accepted: PluralConflict"),
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {},
            {"conditions": [true("NamesAccepted"), true("Established")]},
            (READY, "its condition Established is true"),
        ),
        (
            "apiregistration.k8s.io/v1",
            "APIService",
            {},
            {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound", "message": "m"}]},
            (WAITING, "its condition Available is False: ServiceNotFound: m"),
        ),
        ("v1", "ConfigMap", {}, {}, (READY, "it exists")),
        ("v1", "PersistentVolumeClaim", {}, {"phase": "Pending"}, (READY, "it exists")),
        ("example.com/v1", "Website", {}, {}, (READY, "it exists")),
        ("example.com/v1", "Website", {}, {"observedGeneration": 2}, (WAITING, NOT_OBSERVED)),
        ("example.com/v1", "Website", {}, observed(conditions=[true("Ready")]), (READY, "its condition Ready is true")),
        (
            "example.com/v1",
            "Website",
            {},
            {"conditions": [true("Ready", observedGeneration=2)]},
            (WAITING, NOT_OBSERVED),
        ),
        (
            "example.com/v1",
            "Website",
            {},
            {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            (WAITING, "its condition Ready is Unknown: without a reason"),
        ),
        ("example.com/v1", "Website", {}, {"conditions": [true("Reconciling")]}, (WAITING, "it is being reconciled")),
        (
            "example.com/v1",
            "Website",
            {},
            {"conditions": [true("Ready"), true("Stalled", reason="NoImage")]},
            (FAILED, "it is stalled: NoImage"),
        ),
        ("example.com/v1", "Website", "text", ["of another", {"type": 5}], (READY, "it exists")),
        ("example.com/v1", "Website", {}, {"conditions": "text", "observedGeneration": "5"}, (READY, "it exists")),
    ],
)
def test_readiness(api_version: str, kind: str, spec: Any, status: Any, expected: tuple[str, str]) -> None:
    if api_version.startswith("example.com"):
        cls: Any = unstructured_kind(api_version, kind, plural="websites", namespaced=True)
    else:
        cls = builtin_kind(api_version, kind)
    metadata = {"name": "a", "generation": 3}
    whole = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status}
    found = readiness_of(from_dict(cls, whole))
    assert (found.state, found.message) == expected
    assert bool(found) is (found.state == READY)


def test_an_object_that_is_being_deleted_is_not_ready() -> None:
    metadata = {"name": "a", "deletionTimestamp": "2026-11-22T19:00:00Z"}
    found = readiness_of(from_dict(builtin_kind("v1", "ConfigMap"), {"metadata": metadata}))
    assert (found.state, found.message) == (WAITING, "it is being deleted")
