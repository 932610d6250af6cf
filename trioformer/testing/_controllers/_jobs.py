"""Jobs: pods that must succeed.  Source: kubernetes ``pkg/controller/job``."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import claim, find_condition, is_active, phase_of, ready_since, scale_pods, set_condition

_CONTROLLER: Final = "kubernetes.io/job-controller"
_FIRST_BACKOFF, _LONGEST_BACKOFF = 10.0, 600.0


def reconcile_job(cluster: Cluster, job: JSONObject) -> None:
    """Create or delete pods, count them, and finish the Job."""
    is_finished = find_condition(job, "Complete") or find_condition(job, "Failed")
    if is_finished or job["spec"].get("managedBy", _CONTROLLER) != _CONTROLLER:
        return
    spec, status, pods = job["spec"], job["status"], claim(cluster, job, "Pod")
    phases = [phase_of(pod) for pod in pods]
    succeeded, failed, is_suspended = phases.count("Succeeded"), phases.count("Failed"), bool(spec.get("suspend"))
    status["startTime"] = None if is_suspended else status.get("startTime", cluster.timestamp)
    active = [pod for pod in pods if is_active(pod)]
    if (problem := _problem(cluster, job, failed)) is not None:
        failed += len(active)
        active = scale_pods(cluster, job, active, 0)
        for kind in ("FailureTarget", "Failed"):
            set_condition(cluster, job, kind, "True", *problem)
    else:
        active, completions = _scaled(cluster, job, pods, active, succeeded), spec.get("completions")
        if not active and succeeded >= (1 if completions is None else completions):
            words = "CompletionsReached", "Reached expected number of succeeded pods"
            for kind in ("SuccessCriteriaMet", "Complete"):
                set_condition(cluster, job, kind, "True", *words)
            status["completionTime"] = cluster.timestamp
        elif is_suspended:
            set_condition(cluster, job, "Suspended", "True", "JobSuspended", "Job suspended")
        elif find_condition(job, "Suspended").get("status") == "True":
            set_condition(cluster, job, "Suspended", "False", "JobResumed", "Job resumed")
    ready = sum(ready_since(pod) is not None for pod in active)
    status |= {"succeeded": succeeded or None, "failed": failed or None, "active": len(active) or None, "ready": ready}
    cluster.write(job, status={**status, "terminating": 0, "uncountedTerminatedPods": {}})


def _problem(cluster: Cluster, job: JSONObject, failed: int) -> tuple[str, str] | None:
    """Return the reason and the message if the Job has failed."""
    seconds, start = job["spec"].get("activeDeadlineSeconds"), job["status"]["startTime"]
    if failed > job["spec"].get("backoffLimit", 6):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if seconds is not None and start is not None:
        if (wait := cluster.seconds_until(start, seconds)) <= 0:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        cluster.check_later(wait, job)
    return None


def _scaled(
    cluster: Cluster, job: JSONObject, pods: list[JSONObject], active: list[JSONObject], succeeded: int
) -> list[JSONObject]:
    """Delete pods that are not needed, or create missing pods; returns the active pods."""
    spec = job["spec"]
    desired, completions = spec.get("parallelism", 1), spec.get("completions")
    if spec.get("suspend"):
        desired = 0
    elif completions is not None:
        desired = min(desired, completions - succeeded)
    elif succeeded:
        desired = len(active)
    if desired > len(active) and (wait := _backoff(cluster, pods)) > 0:
        cluster.check_later(wait, job)
        return active
    return scale_pods(cluster, job, active, desired)


def _backoff(cluster: Cluster, pods: list[JSONObject]) -> float:
    """Return how long the next pod must wait after failures, or at most 0."""
    ended = sorted((pod for pod in pods if phase_of(pod) in ("Failed", "Succeeded")), key=_end_of, reverse=True)
    failures = list(takewhile(lambda pod: phase_of(pod) == "Failed", ended))
    delay = min(_FIRST_BACKOFF * 2.0 ** (len(failures) - 1), _LONGEST_BACKOFF)
    return cluster.seconds_until(_end_of(failures[0]), delay) if failures else 0.0


def _end_of(pod: JSONObject) -> str:
    """Return the time at which a pod ended."""
    states = [one["state"].get("terminated") or {} for one in pod["status"].get("containerStatuses") or ()]
    return max([str(pod["metadata"]["creationTimestamp"]), *(str(one.get("finishedAt", "")) for one in states)])
