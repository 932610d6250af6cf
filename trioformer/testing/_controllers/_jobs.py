"""Jobs: pods that must succeed.  Source: kubernetes ``pkg/controller/job``."""

from __future__ import annotations

from typing import Final

from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import (
    claim,
    controller_of,
    find_condition,
    is_active,
    phase_of,
    pod_of,
    ready_since,
    to_delete,
    with_condition,
)

_FINALIZER: Final = "batch.kubernetes.io/job-tracking"
_CONTROLLER: Final = "kubernetes.io/job-controller"
_FIRST_BACKOFF, _LONGEST_BACKOFF = 10.0, 600.0


def reconcile_job(cluster: Cluster, namespace: str, name: str) -> None:
    """Create or delete pods, count those that have ended, and finish the Job."""
    job = cluster.get("Job", namespace, name)
    if job is None:
        for pod in cluster.list("Pod", namespace):
            if (controller_of(pod).get("kind"), controller_of(pod).get("name")) == ("Job", name):
                _release(cluster, pod)
        return
    conditions = job["status"].get("conditions")
    is_finished = find_condition(conditions, "Complete") or find_condition(conditions, "Failed")
    if not is_finished and job["spec"].get("managedBy", _CONTROLLER) == _CONTROLLER:
        _Sync(cluster, job).run()


def _release(cluster: Cluster, pod: JSONObject | None) -> None:
    """Remove the finalizer of a pod that has been counted."""
    if pod is not None and _FINALIZER in (pod["metadata"].get("finalizers") or ()):
        pod["metadata"]["finalizers"].remove(_FINALIZER)
        cluster.write("Pod", pod)


class _Sync:
    """One check of a Job."""

    def __init__(self, cluster: Cluster, job: JSONObject) -> None:
        self.cluster, self.job, self.spec, self.status = cluster, job, job["spec"], {**job["status"]}
        self.namespace = job["metadata"]["namespace"]
        self.pods = claim(cluster, "Job", job, "Pod")
        self.active = [pod for pod in self.pods if is_active(pod)]
        self.is_suspended = bool(self.spec.get("suspend"))
        self.completions = self.spec.get("completions", None if "parallelism" in self.spec else 1)

    def run(self) -> None:
        uncounted = [pod for pod in self.pods if _FINALIZER in (pod["metadata"].get("finalizers") or ())]
        ended = [pod for pod in uncounted if not is_active(pod)]
        succeeded = sum(phase_of(pod) == "Succeeded" for pod in ended)
        self._add(succeeded=succeeded, failed=len(ended) - succeeded)
        if not self.is_suspended:
            self.status.setdefault("startTime", self.cluster.timestamp)
        if (problem := self._failure()) is not None:
            self._add(failed=len(self.active))
            ended += self.active
            self._delete(self.active)
            self._set_conditions(("FailureTarget", "Failed"), "True", *problem)
        else:
            if "deletionTimestamp" not in self.job["metadata"]:
                self._manage()
            self._complete()
        ready = sum(ready_since(pod) is not None for pod in self.active)
        numbers: JSONObject = {"ready": ready, "active": len(self.active) or None, "terminating": 0}
        numbers["uncountedTerminatedPods"] = {}
        self.cluster.write("Job", self.job, status={**self.status, **numbers})
        for pod in ended:
            _release(self.cluster, self.cluster.get("Pod", self.namespace, pod["metadata"]["name"]))

    def _add(self, **numbers: int) -> None:
        self.status |= {field: self.status.get(field, 0) + number for field, number in numbers.items() if number}

    def _failure(self) -> tuple[str, str] | None:
        """Return the reason and the message if the Job has failed."""
        limit, seconds, restarts = self.spec.get("backoffLimit", 6), self.spec.get("activeDeadlineSeconds"), 0
        if ((self.spec.get("template") or {}).get("spec") or {}).get("restartPolicy") == "OnFailure":
            statuses = [one for pod in self.active for one in pod["status"].get("containerStatuses") or ()]
            restarts = sum(one["restartCount"] for one in statuses)
        if self.status.get("failed", 0) > limit or restarts >= max(limit, 1):
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if seconds is not None and not self.is_suspended:
            if (wait := self.cluster.seconds_until(self.status["startTime"], seconds)) <= 0:
                return "DeadlineExceeded", "Job was active longer than specified deadline"
            self.cluster.check_later(wait, "Job", self.job)
        return None

    def _manage(self) -> None:
        """Delete pods that are not needed, or create missing pods."""
        succeeded, desired = self.status.get("succeeded", 0), self.spec.get("parallelism", 1)
        if self.is_suspended:
            desired = 0
        elif self.completions is not None:
            desired = min(desired, self.completions - succeeded)
        elif succeeded:
            desired = len(self.active)
        missing = desired - len(self.active)
        self._delete(to_delete(self.active, -missing))
        if missing > 0 and (wait := self._backoff()) > 0:
            self.cluster.check_later(wait, "Job", self.job)
            return
        for _ in range(missing):
            pod = pod_of(self.cluster, "Job", self.job, self.spec.get("template") or {})
            pod["metadata"]["finalizers"] = [*(pod["metadata"]["finalizers"] or ()), _FINALIZER]
            self.active.append(self.cluster.create("Pod", self.namespace, pod))

    def _backoff(self) -> float:
        """Return how long the next pod must wait after failures, or at most 0."""
        ended = sorted((_end_of(pod), phase_of(pod)) for pod in self.pods if phase_of(pod) in ("Failed", "Succeeded"))
        phases = [phase for _, phase in reversed(ended)]
        failures = phases.index("Succeeded") if "Succeeded" in phases else len(phases)
        delay = min(_FIRST_BACKOFF * 2.0 ** (failures - 1), _LONGEST_BACKOFF)
        return self.cluster.seconds_until(ended[-1][0], delay) if failures else 0.0

    def _delete(self, pods: list[JSONObject]) -> None:
        for pod in pods:
            self.cluster.delete("Pod", pod)
        self.active = [pod for pod in self.active if pod not in pods]

    def _complete(self) -> None:
        """Set the conditions of a Job that is complete, suspended or resumed."""
        succeeded = self.status.get("succeeded", 0)
        was_suspended = find_condition(self.status.get("conditions"), "Suspended").get("status") == "True"
        if not self.active and succeeded >= (1 if self.completions is None else self.completions):
            words = "CompletionsReached", "Reached expected number of succeeded pods"
            self._set_conditions(("SuccessCriteriaMet", "Complete"), "True", *words)
            self.status["completionTime"] = self.cluster.timestamp
        elif self.is_suspended and not was_suspended:
            self._set_conditions(("Suspended",), "True", "JobSuspended", "Job suspended")
            self.status["startTime"] = None
        elif was_suspended and not self.is_suspended:
            self._set_conditions(("Suspended",), "False", "JobResumed", "Job resumed")
            self.status["startTime"] = self.cluster.timestamp

    def _set_conditions(self, kinds: tuple[str, ...], status: str, reason: str, message: str) -> None:
        now = self.cluster.timestamp
        for kind in kinds:
            new = {"type": kind, "status": status, "lastProbeTime": now, "lastTransitionTime": now}
            conditions = self.status.get("conditions")
            self.status["conditions"] = with_condition(conditions, {**new, "reason": reason, "message": message})


def _end_of(pod: JSONObject) -> str:
    """Return the time at which a pod ended."""
    states = [one["state"].get("terminated") or {} for one in pod["status"].get("containerStatuses") or ()]
    return max(
        str(one.get("finishedAt", "")) for one in (*states, {"finishedAt": pod["metadata"]["creationTimestamp"]})
    )
