"""batch/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

# ruff: noqa: RUF009

from __future__ import annotations

from typing import ClassVar

import attrs

from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject, ObjectMeta
from ._resources import ResourceInfo
from ._values import Time
from .core_v1 import ObjectReference, PodTemplateSpec
from .meta_v1 import LabelSelector

__all__ = [
    "CronJob",
    "CronJobSpec",
    "CronJobStatus",
    "Job",
    "JobCondition",
    "JobSpec",
    "JobStatus",
    "JobTemplateSpec",
    "PodFailurePolicy",
    "PodFailurePolicyOnExitCodesRequirement",
    "PodFailurePolicyOnPodConditionsPattern",
    "PodFailurePolicyRule",
    "SuccessPolicy",
    "SuccessPolicyRule",
    "UncountedTerminatedPods",
]


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class PodFailurePolicyOnExitCodesRequirement(Model):
    """batch/v1 PodFailurePolicyOnExitCodesRequirement."""

    container_name: str | None = None
    operator: str = ""
    values: tuple[int, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class PodFailurePolicyOnPodConditionsPattern(Model):
    """batch/v1 PodFailurePolicyOnPodConditionsPattern."""

    status: str = ""
    type: str = ""


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class PodFailurePolicyRule(Model):
    """batch/v1 PodFailurePolicyRule."""

    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodConditionsPattern, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class PodFailurePolicy(Model):
    """batch/v1 PodFailurePolicy."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class SuccessPolicyRule(Model):
    """batch/v1 SuccessPolicyRule."""

    succeeded_count: int | None = None
    succeeded_indexes: str | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class SuccessPolicy(Model):
    """batch/v1 SuccessPolicy."""

    rules: tuple[SuccessPolicyRule, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class JobSpec(Model):
    """batch/v1 JobSpec."""

    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str | None = None
    completions: int | None = None
    managed_by: str | None = None
    manual_selector: bool | None = None
    max_failed_indexes: int | None = None
    parallelism: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    selector: LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: bool | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    ttl_seconds_after_finished: int | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class JobTemplateSpec(Model):
    """batch/v1 JobTemplateSpec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class CronJobSpec(Model):
    """batch/v1 CronJobSpec."""

    concurrency_policy: str | None = None
    failed_jobs_history_limit: int | None = None
    job_template: JobTemplateSpec = JobTemplateSpec()
    schedule: str = ""
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int | None = None
    suspend: bool | None = None
    time_zone: str | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class CronJobStatus(Model):
    """batch/v1 CronJobStatus."""

    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class CronJob(KubernetesObject):
    """batch/v1 CronJob."""

    __resource__: ClassVar[ResourceInfo] = builtin("batch/v1", "CronJob")

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class JobCondition(Model):
    """batch/v1 JobCondition."""

    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class UncountedTerminatedPods(Model):
    """batch/v1 UncountedTerminatedPods."""

    failed: tuple[str, ...] = ()
    succeeded: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class JobStatus(Model):
    """batch/v1 JobStatus."""

    active: int | None = None
    completed_indexes: str | None = None
    completion_time: Time | None = None
    conditions: tuple[JobCondition, ...] = ()
    failed: int | None = None
    failed_indexes: str | None = None
    ready: int | None = None
    start_time: Time | None = None
    succeeded: int | None = None
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class Job(KubernetesObject):
    """batch/v1 Job."""

    __resource__: ClassVar[ResourceInfo] = builtin("batch/v1", "Job")

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
