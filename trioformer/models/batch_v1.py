"""batch/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
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


@frozen_model(kw_only=True)
class PodFailurePolicyOnExitCodesRequirement(Model):
    """batch/v1 PodFailurePolicyOnExitCodesRequirement."""

    container_name: str | None = None
    operator: str = ""
    values: tuple[int, ...] = ()


@frozen_model(kw_only=True)
class PodFailurePolicyOnPodConditionsPattern(Model):
    """batch/v1 PodFailurePolicyOnPodConditionsPattern."""

    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class PodFailurePolicyRule(Model):
    """batch/v1 PodFailurePolicyRule."""

    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodConditionsPattern, ...] = ()


@frozen_model(kw_only=True)
class PodFailurePolicy(Model):
    """batch/v1 PodFailurePolicy."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


@frozen_model(kw_only=True)
class SuccessPolicyRule(Model):
    """batch/v1 SuccessPolicyRule."""

    succeeded_count: int | None = None
    succeeded_indexes: str | None = None


@frozen_model(kw_only=True)
class SuccessPolicy(Model):
    """batch/v1 SuccessPolicy."""

    rules: tuple[SuccessPolicyRule, ...] = ()


@frozen_model(kw_only=True)
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


@frozen_model(kw_only=True)
class JobTemplateSpec(Model):
    """batch/v1 JobTemplateSpec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


@frozen_model(kw_only=True)
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


@frozen_model(kw_only=True)
class CronJobStatus(Model):
    """batch/v1 CronJobStatus."""

    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


@frozen_model(kw_only=True)
class CronJob(KubernetesObject):
    """batch/v1 CronJob."""

    __resource__: ClassVar[ResourceInfo] = builtin("batch/v1", "CronJob")

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


@frozen_model(kw_only=True)
class JobCondition(Model):
    """batch/v1 JobCondition."""

    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class UncountedTerminatedPods(Model):
    """batch/v1 UncountedTerminatedPods."""

    failed: tuple[str, ...] = ()
    succeeded: tuple[str, ...] = ()


@frozen_model(kw_only=True)
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


@frozen_model(kw_only=True)
class Job(KubernetesObject):
    """batch/v1 Job."""

    __resource__: ClassVar[ResourceInfo] = builtin("batch/v1", "Job")

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
