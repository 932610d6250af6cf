"""apps/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import JSON, Time
from .core_v1 import PersistentVolumeClaim, PodTemplateSpec
from .meta_v1 import LabelSelector

__all__ = [
    "ControllerRevision",
    "DaemonSet",
    "DaemonSetCondition",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "DaemonSetUpdateStrategy",
    "Deployment",
    "DeploymentCondition",
    "DeploymentSpec",
    "DeploymentStatus",
    "DeploymentStrategy",
    "ReplicaSet",
    "ReplicaSetCondition",
    "ReplicaSetSpec",
    "ReplicaSetStatus",
    "RollingUpdateDaemonSet",
    "RollingUpdateDeployment",
    "RollingUpdateStatefulSetStrategy",
    "StatefulSet",
    "StatefulSetCondition",
    "StatefulSetOrdinals",
    "StatefulSetPersistentVolumeClaimRetentionPolicy",
    "StatefulSetSpec",
    "StatefulSetStatus",
    "StatefulSetUpdateStrategy",
]


@frozen_model(kw_only=True)
class ControllerRevision(KubernetesObject):
    """apps/v1 ControllerRevision."""

    __resource__: ClassVar[ResourceInfo] = builtin("apps/v1", "ControllerRevision")

    data: JSON = None
    revision: int = 0


@frozen_model(kw_only=True)
class RollingUpdateDaemonSet(Model):
    """apps/v1 RollingUpdateDaemonSet."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


@frozen_model(kw_only=True)
class DaemonSetUpdateStrategy(Model):
    """apps/v1 DaemonSetUpdateStrategy."""

    rolling_update: RollingUpdateDaemonSet | None = None
    type: str | None = None


@frozen_model(kw_only=True)
class DaemonSetSpec(Model):
    """apps/v1 DaemonSetSpec."""

    min_ready_seconds: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector = LabelSelector()
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()


@frozen_model(kw_only=True)
class DaemonSetCondition(Model):
    """apps/v1 DaemonSetCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class DaemonSetStatus(Model):
    """apps/v1 DaemonSetStatus."""

    collision_count: int | None = None
    conditions: tuple[DaemonSetCondition, ...] = ()
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_available: int | None = None
    number_misscheduled: int = 0
    number_ready: int = 0
    number_unavailable: int | None = None
    observed_generation: int | None = None
    updated_number_scheduled: int | None = None


@frozen_model(kw_only=True)
class DaemonSet(KubernetesObject):
    """apps/v1 DaemonSet."""

    __resource__: ClassVar[ResourceInfo] = builtin("apps/v1", "DaemonSet")

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


@frozen_model(kw_only=True)
class RollingUpdateDeployment(Model):
    """apps/v1 RollingUpdateDeployment."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


@frozen_model(kw_only=True)
class DeploymentStrategy(Model):
    """apps/v1 DeploymentStrategy."""

    rolling_update: RollingUpdateDeployment | None = None
    type: str | None = None


@frozen_model(kw_only=True)
class DeploymentSpec(Model):
    """apps/v1 DeploymentSpec."""

    min_ready_seconds: int | None = None
    paused: bool | None = None
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector = LabelSelector()
    strategy: DeploymentStrategy = DeploymentStrategy()
    template: PodTemplateSpec = PodTemplateSpec()


@frozen_model(kw_only=True)
class DeploymentCondition(Model):
    """apps/v1 DeploymentCondition."""

    last_transition_time: Time | None = None
    last_update_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class DeploymentStatus(Model):
    """apps/v1 DeploymentStatus."""

    available_replicas: int | None = None
    collision_count: int | None = None
    conditions: tuple[DeploymentCondition, ...] = ()
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int | None = None
    terminating_replicas: int | None = None
    unavailable_replicas: int | None = None
    updated_replicas: int | None = None


@frozen_model(kw_only=True)
class Deployment(KubernetesObject):
    """apps/v1 Deployment."""

    __resource__: ClassVar[ResourceInfo] = builtin("apps/v1", "Deployment")

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


@frozen_model(kw_only=True)
class ReplicaSetSpec(Model):
    """apps/v1 ReplicaSetSpec."""

    min_ready_seconds: int | None = None
    replicas: int | None = None
    selector: LabelSelector = LabelSelector()
    template: PodTemplateSpec = PodTemplateSpec()


@frozen_model(kw_only=True)
class ReplicaSetCondition(Model):
    """apps/v1 ReplicaSetCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class ReplicaSetStatus(Model):
    """apps/v1 ReplicaSetStatus."""

    available_replicas: int | None = None
    conditions: tuple[ReplicaSetCondition, ...] = ()
    fully_labeled_replicas: int | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0
    terminating_replicas: int | None = None


@frozen_model(kw_only=True)
class ReplicaSet(KubernetesObject):
    """apps/v1 ReplicaSet."""

    __resource__: ClassVar[ResourceInfo] = builtin("apps/v1", "ReplicaSet")

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


@frozen_model(kw_only=True)
class RollingUpdateStatefulSetStrategy(Model):
    """apps/v1 RollingUpdateStatefulSetStrategy."""

    max_unavailable: int | str | None = None
    partition: int | None = None


@frozen_model(kw_only=True)
class StatefulSetUpdateStrategy(Model):
    """apps/v1 StatefulSetUpdateStrategy."""

    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: str | None = None


@frozen_model(kw_only=True)
class StatefulSetOrdinals(Model):
    """apps/v1 StatefulSetOrdinals."""

    start: int = 0


@frozen_model(kw_only=True)
class StatefulSetPersistentVolumeClaimRetentionPolicy(Model):
    """apps/v1 StatefulSetPersistentVolumeClaimRetentionPolicy."""

    when_deleted: str | None = None
    when_scaled: str | None = None


@frozen_model(kw_only=True)
class StatefulSetSpec(Model):
    """apps/v1 StatefulSetSpec."""

    min_ready_seconds: int | None = None
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: str | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector = LabelSelector()
    service_name: str = ""
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()


@frozen_model(kw_only=True)
class StatefulSetCondition(Model):
    """apps/v1 StatefulSetCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class StatefulSetStatus(Model):
    """apps/v1 StatefulSetStatus."""

    available_replicas: int = 0
    collision_count: int | None = None
    conditions: tuple[StatefulSetCondition, ...] = ()
    current_replicas: int | None = None
    current_revision: str | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0
    update_revision: str | None = None
    updated_replicas: int | None = None


@frozen_model(kw_only=True)
class StatefulSet(KubernetesObject):
    """apps/v1 StatefulSet."""

    __resource__: ClassVar[ResourceInfo] = builtin("apps/v1", "StatefulSet")

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()
