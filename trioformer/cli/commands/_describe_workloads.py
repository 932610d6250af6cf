"""Describes what makes pods: Deployments, StatefulSets, Jobs and others (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .._clock import parse_time
from ..printing import human_duration
from ._describe_pods import describe_pod, describe_pod_template
from ._describe_related import Objects, Related
from ._describe_storage import describe_claim_templates
from ._describe_text import (
    Description,
    as_int,
    at,
    boolean,
    controller_of,
    pairs_text,
    rfc1123,
    selector_text,
    set_or_not,
)

__all__ = ["WORKLOADS"]

_REVISION: Final = "deployment.kubernetes.io/revision"


def _pod(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    return describe_pod(obj, events)


def _deployment(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    _names(text, obj)
    text.field("CreationTimestamp", rfc1123(at(obj, "metadata", "creationTimestamp")))
    _labels(text, obj)
    text.field("Selector", selector_text(spec.get("selector"), ""))
    counts = [
        f"{as_int(status.get(key))} {word}"
        for word, key in (
            ("updated", "updatedReplicas"),
            ("total", "replicas"),
            ("available", "availableReplicas"),
            ("unavailable", "unavailableReplicas"),
        )
    ]
    text.field("Replicas", " | ".join([f"{spec.get('replicas', 1)} desired", *counts]))
    text.field("StrategyType", at(spec, "strategy", "type") or "")
    text.field("MinReadySeconds", as_int(spec.get("minReadySeconds")))
    if (rolling := at(spec, "strategy", "rollingUpdate")) is not None:
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        text.field("RollingUpdateStrategy", f"{unavailable} max unavailable, {surge} max surge")
    describe_pod_template(text, spec.get("template"))
    text.conditions(obj)
    if replica_sets := related.get("replicasets"):
        revision = at(obj, "metadata", "annotations", _REVISION)
        new = [each for each in replica_sets if at(each, "metadata", "annotations", _REVISION) == revision]
        text.field("OldReplicaSets", _replica_sets([each for each in replica_sets if each not in new]))
        text.field("NewReplicaSet", _replica_sets(new))
    text.events(events)
    return text.render()


def _replica_sets(found: Objects) -> str:
    texts = []
    for each in found:
        created, wanted = as_int(at(each, "status", "replicas")), as_int(at(each, "spec", "replicas"))
        texts.append(f"{at(each, 'metadata', 'name')} ({created}/{wanted} replicas created)")
    return ", ".join(texts) or "<none>"


def _replica_set(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    _names(text, obj)
    text.field("Selector", selector_text(at(obj, "spec", "selector")))
    _labels(text, obj)
    _controller(text, obj)
    _replicas(text, obj)
    _pods_status(text, related)
    describe_pod_template(text, at(obj, "spec", "template"))
    text.conditions(obj)
    text.events(events)
    return text.render()


def _replication_controller(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    _names(text, obj)
    text.field("Selector", pairs_text(at(obj, "spec", "selector")))
    _labels(text, obj)
    _replicas(text, obj)
    _pods_status(text, related)
    describe_pod_template(text, at(obj, "spec", "template"))
    text.conditions(obj)
    text.events(events)
    return text.render()


def _stateful_set(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    spec = obj.get("spec") or {}
    _names(text, obj)
    text.field("CreationTimestamp", rfc1123(at(obj, "metadata", "creationTimestamp")))
    text.field("Selector", selector_text(spec.get("selector"), ""))
    _labels(text, obj)
    text.field("Replicas", f"{spec.get('replicas', 1)} desired | {as_int(at(obj, 'status', 'replicas'))} total")
    text.field("Update Strategy", at(spec, "updateStrategy", "type") or "")
    rolling = at(spec, "updateStrategy", "rollingUpdate") or {}
    if (partition := rolling.get("partition")) is not None:
        text.field("Partition", partition, 1)
        text.optional("MaxUnavailable", rolling.get("maxUnavailable"), 1)
    _pods_status(text, related)
    describe_pod_template(text, spec.get("template"))
    describe_claim_templates(text, spec.get("volumeClaimTemplates"))
    text.events(events)
    return text.render()


def _daemon_set(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    status = obj.get("status") or {}
    _names(text, obj)
    text.field("Selector", selector_text(at(obj, "spec", "selector"), ""))
    text.field("Node-Selector", pairs_text(at(obj, "spec", "template", "spec", "nodeSelector")))
    _labels(text, obj)
    for name, key in (
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ):
        text.line(0, f"{name}: {as_int(status.get(key))}")
    _pods_status(text, related)
    describe_pod_template(text, at(obj, "spec", "template"))
    text.events(events)
    return text.render()


def _job(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    _names(text, obj)
    text.field("Selector", selector_text(spec.get("selector"), ""))
    _labels(text, obj)
    _controller(text, obj)
    text.optional("Parallelism", spec.get("parallelism"))
    text.field("Completions", set_or_not(spec.get("completions")))
    for name, key in (
        ("Completion Mode", "completionMode"),
        ("Suspend", "suspend"),
        ("Backoff Limit", "backoffLimit"),
        ("TTL Seconds After Finished", "ttlSecondsAfterFinished"),
    ):
        text.optional(name, spec.get(key))
    began, ended = status.get("startTime"), status.get("completionTime")
    if began:
        text.field("Start Time", rfc1123(began))
    if ended:
        text.field("Completed At", rfc1123(ended))
    if (start := parse_time(began)) and (end := parse_time(ended)):
        text.field("Duration", human_duration((end - start).total_seconds()))
    if (deadline := spec.get("activeDeadlineSeconds")) is not None:
        text.field("Active Deadline Seconds", f"{deadline}s")
    ready = "" if status.get("ready") is None else f" ({status['ready']} Ready)"
    active, succeeded, failed = (as_int(status.get(key)) for key in ("active", "succeeded", "failed"))
    text.field("Pods Statuses", f"{active} Active{ready} / {succeeded} Succeeded / {failed} Failed")
    if spec.get("completionMode") == "Indexed":
        text.field("Completed Indexes", _indexes(str(status.get("completedIndexes") or "")))
    describe_pod_template(text, spec.get("template"))
    text.events(events)
    return text.render()


def _indexes(indexes: str, longest: int = 50) -> str:
    if not indexes:
        return "<none>"
    end = indexes.find(",", longest)
    return indexes if end < 0 else indexes[: end + 1] + "..."


def _cron_job(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    _names(text, obj)
    _labels(text, obj)
    text.field("Schedule", spec.get("schedule") or "")
    text.field("Concurrency Policy", spec.get("concurrencyPolicy") or "")
    text.field("Suspend", boolean(spec.get("suspend")))
    text.field("Time Zone", set_or_not(spec.get("timeZone")))
    text.field("Successful Job History Limit", set_or_not(spec.get("successfulJobsHistoryLimit")))
    text.field("Failed Job History Limit", set_or_not(spec.get("failedJobsHistoryLimit")))
    deadline = spec.get("startingDeadlineSeconds")
    text.field("Starting Deadline Seconds", "<unset>" if deadline is None else f"{deadline}s")
    job = at(spec, "jobTemplate", "spec") or {}
    selector = job.get("selector")
    text.field("Selector", "<unset>" if selector is None else selector_text(selector, ""))
    text.field("Parallelism", set_or_not(job.get("parallelism")))
    text.field("Completions", set_or_not(job.get("completions")))
    if job.get("activeDeadlineSeconds") is not None:
        text.field("Active Deadline Seconds", f"{job['activeDeadlineSeconds']}s")
    describe_pod_template(text, job.get("template"))
    scheduled = status.get("lastScheduleTime")
    text.field("Last Schedule Time", rfc1123(scheduled) if scheduled else "<unset>")
    text.field("Active Jobs", ", ".join(str(each.get("name")) for each in status.get("active") or []) or "<none>")
    text.events(events)
    return text.render()


def _disruption_budget(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    _names(text, obj)
    if spec.get("minAvailable") is not None:
        text.field("Min available", spec["minAvailable"])
    else:
        text.optional("Max unavailable", spec.get("maxUnavailable"))
    text.field("Selector", "<unset>" if spec.get("selector") is None else selector_text(spec["selector"]))
    text.line(0, "Status:")
    for name, key in (
        ("Allowed disruptions", "disruptionsAllowed"),
        ("Current", "currentHealthy"),
        ("Desired", "desiredHealthy"),
        ("Total", "expectedPods"),
    ):
        text.field(name, as_int(status.get(key)), 2)
    text.events(events)
    return text.render()


def _names(text: Description, obj: Mapping[str, Any]) -> None:
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Namespace", at(obj, "metadata", "namespace") or "")


def _labels(text: Description, obj: Mapping[str, Any]) -> None:
    text.labels("Labels", at(obj, "metadata", "labels"))
    text.annotations(at(obj, "metadata", "annotations"))


def _controller(text: Description, obj: Mapping[str, Any]) -> None:
    if controller := controller_of(obj):
        text.field("Controlled By", controller)


def _replicas(text: Description, obj: Mapping[str, Any]) -> None:
    current, desired = as_int(at(obj, "status", "replicas")), as_int(at(obj, "spec", "replicas"))
    text.field("Replicas", f"{current} current / {desired} desired")


def _pods_status(text: Description, related: Related) -> None:
    phases = [at(pod, "status", "phase") for pod in related.get("pods") or ()]
    words = (("Running", "Running"), ("Waiting", "Pending"), ("Succeeded", "Succeeded"), ("Failed", "Failed"))
    text.field("Pods Status", " / ".join(f"{phases.count(phase)} {word}" for word, phase in words))


WORKLOADS: Final = {
    "cronjobs.batch": _cron_job,
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _deployment,
    "jobs.batch": _job,
    "poddisruptionbudgets.policy": _disruption_budget,
    "pods": _pod,
    "replicasets.apps": _replica_set,
    "replicationcontrollers": _replication_controller,
    "statefulsets.apps": _stateful_set,
}
