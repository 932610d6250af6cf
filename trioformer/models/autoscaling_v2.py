"""autoscaling/v2.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._quantity import Quantity
from ._resources import ResourceInfo
from ._values import Time
from .meta_v1 import LabelSelector

__all__ = [
    "ContainerResourceMetricSource",
    "ContainerResourceMetricStatus",
    "CrossVersionObjectReference",
    "ExternalMetricSource",
    "ExternalMetricStatus",
    "HPAScalingPolicy",
    "HPAScalingRules",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerBehavior",
    "HorizontalPodAutoscalerCondition",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "MetricIdentifier",
    "MetricSpec",
    "MetricStatus",
    "MetricTarget",
    "MetricValueStatus",
    "ObjectMetricSource",
    "ObjectMetricStatus",
    "PodsMetricSource",
    "PodsMetricStatus",
    "ResourceMetricSource",
    "ResourceMetricStatus",
]


@frozen_model(kw_only=True)
class MetricTarget(Model):
    """autoscaling/v2 MetricTarget."""

    average_utilization: int | None = None
    average_value: Quantity | None = None
    type: str = ""
    value: Quantity | None = None


@frozen_model(kw_only=True)
class ContainerResourceMetricSource(Model):
    """autoscaling/v2 ContainerResourceMetricSource."""

    container: str = ""
    name: str = ""
    target: MetricTarget = MetricTarget()


@frozen_model(kw_only=True)
class MetricValueStatus(Model):
    """autoscaling/v2 MetricValueStatus."""

    average_utilization: int | None = None
    average_value: Quantity | None = None
    value: Quantity | None = None


@frozen_model(kw_only=True)
class ContainerResourceMetricStatus(Model):
    """autoscaling/v2 ContainerResourceMetricStatus."""

    container: str = ""
    current: MetricValueStatus = MetricValueStatus()
    name: str = ""


@frozen_model(kw_only=True)
class CrossVersionObjectReference(Model):
    """autoscaling/v2 CrossVersionObjectReference."""

    api_version: str | None = None
    kind: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class MetricIdentifier(Model):
    """autoscaling/v2 MetricIdentifier."""

    name: str = ""
    selector: LabelSelector | None = None


@frozen_model(kw_only=True)
class ExternalMetricSource(Model):
    """autoscaling/v2 ExternalMetricSource."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


@frozen_model(kw_only=True)
class ExternalMetricStatus(Model):
    """autoscaling/v2 ExternalMetricStatus."""

    current: MetricValueStatus = MetricValueStatus()
    metric: MetricIdentifier = MetricIdentifier()


@frozen_model(kw_only=True)
class HPAScalingPolicy(Model):
    """autoscaling/v2 HPAScalingPolicy."""

    period_seconds: int = 0
    type: str = ""
    value: int = 0


@frozen_model(kw_only=True)
class HPAScalingRules(Model):
    """autoscaling/v2 HPAScalingRules."""

    policies: tuple[HPAScalingPolicy, ...] = ()
    select_policy: str | None = None
    stabilization_window_seconds: int | None = None
    tolerance: Quantity | None = None


@frozen_model(kw_only=True)
class HorizontalPodAutoscalerBehavior(Model):
    """autoscaling/v2 HorizontalPodAutoscalerBehavior."""

    scale_down: HPAScalingRules | None = None
    scale_up: HPAScalingRules | None = None


@frozen_model(kw_only=True)
class ObjectMetricSource(Model):
    """autoscaling/v2 ObjectMetricSource."""

    described_object: CrossVersionObjectReference = CrossVersionObjectReference()
    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


@frozen_model(kw_only=True)
class PodsMetricSource(Model):
    """autoscaling/v2 PodsMetricSource."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


@frozen_model(kw_only=True)
class ResourceMetricSource(Model):
    """autoscaling/v2 ResourceMetricSource."""

    name: str = ""
    target: MetricTarget = MetricTarget()


@frozen_model(kw_only=True)
class MetricSpec(Model):
    """autoscaling/v2 MetricSpec."""

    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    type: str = ""


@frozen_model(kw_only=True)
class HorizontalPodAutoscalerSpec(Model):
    """autoscaling/v2 HorizontalPodAutoscalerSpec."""

    behavior: HorizontalPodAutoscalerBehavior | None = None
    max_replicas: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()


@frozen_model(kw_only=True)
class HorizontalPodAutoscalerCondition(Model):
    """autoscaling/v2 HorizontalPodAutoscalerCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class ObjectMetricStatus(Model):
    """autoscaling/v2 ObjectMetricStatus."""

    current: MetricValueStatus = MetricValueStatus()
    described_object: CrossVersionObjectReference = CrossVersionObjectReference()
    metric: MetricIdentifier = MetricIdentifier()


@frozen_model(kw_only=True)
class PodsMetricStatus(Model):
    """autoscaling/v2 PodsMetricStatus."""

    current: MetricValueStatus = MetricValueStatus()
    metric: MetricIdentifier = MetricIdentifier()


@frozen_model(kw_only=True)
class ResourceMetricStatus(Model):
    """autoscaling/v2 ResourceMetricStatus."""

    current: MetricValueStatus = MetricValueStatus()
    name: str = ""


@frozen_model(kw_only=True)
class MetricStatus(Model):
    """autoscaling/v2 MetricStatus."""

    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    type: str = ""


@frozen_model(kw_only=True)
class HorizontalPodAutoscalerStatus(Model):
    """autoscaling/v2 HorizontalPodAutoscalerStatus."""

    conditions: tuple[HorizontalPodAutoscalerCondition, ...] = ()
    current_metrics: tuple[MetricStatus, ...] = ()
    current_replicas: int | None = None
    desired_replicas: int = 0
    last_scale_time: Time | None = None
    observed_generation: int | None = None


@frozen_model(kw_only=True)
class HorizontalPodAutoscaler(KubernetesObject):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    __resource__: ClassVar[ResourceInfo] = builtin("autoscaling/v2", "HorizontalPodAutoscaler")

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()
