"""autoscaling/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject, ObjectMeta
from ._resources import ResourceInfo
from ._values import Time

__all__ = [
    "CrossVersionObjectReference",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "Scale",
    "ScaleSpec",
    "ScaleStatus",
]


@frozen_model(kw_only=True)
class CrossVersionObjectReference(Model):
    """autoscaling/v1 CrossVersionObjectReference."""

    api_version: str | None = None
    kind: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class HorizontalPodAutoscalerSpec(Model):
    """autoscaling/v1 HorizontalPodAutoscalerSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {"target_cpu_utilization_percentage": "targetCPUUtilizationPercentage"}

    max_replicas: int = 0
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    target_cpu_utilization_percentage: int | None = None


@frozen_model(kw_only=True)
class HorizontalPodAutoscalerStatus(Model):
    """autoscaling/v1 HorizontalPodAutoscalerStatus."""

    _json_names: ClassVar[Mapping[str, str]] = {"current_cpu_utilization_percentage": "currentCPUUtilizationPercentage"}

    current_cpu_utilization_percentage: int | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: Time | None = None
    observed_generation: int | None = None


@frozen_model(kw_only=True)
class HorizontalPodAutoscaler(KubernetesObject):
    """autoscaling/v1 HorizontalPodAutoscaler."""

    __resource__: ClassVar[ResourceInfo] = builtin("autoscaling/v1", "HorizontalPodAutoscaler")

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


@frozen_model(kw_only=True)
class ScaleSpec(Model):
    """autoscaling/v1 ScaleSpec."""

    replicas: int = 0


@frozen_model(kw_only=True)
class ScaleStatus(Model):
    """autoscaling/v1 ScaleStatus."""

    replicas: int = 0
    selector: str | None = None


@frozen_model(kw_only=True)
class Scale(Model):
    """autoscaling/v1 Scale: the request body of a subresource."""

    _always: ClassVar[frozenset[str]] = frozenset({"api_version", "kind"})

    api_version: str = "autoscaling/v1"
    kind: str = "Scale"
    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()
