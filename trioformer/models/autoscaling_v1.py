"""autoscaling/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

# ruff: noqa: RUF009

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

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


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class CrossVersionObjectReference(Model):
    """autoscaling/v1 CrossVersionObjectReference."""

    api_version: str | None = None
    kind: str = ""
    name: str = ""


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class HorizontalPodAutoscalerSpec(Model):
    """autoscaling/v1 HorizontalPodAutoscalerSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {"target_cpu_utilization_percentage": "targetCPUUtilizationPercentage"}

    max_replicas: int = 0
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    target_cpu_utilization_percentage: int | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class HorizontalPodAutoscalerStatus(Model):
    """autoscaling/v1 HorizontalPodAutoscalerStatus."""

    _json_names: ClassVar[Mapping[str, str]] = {"current_cpu_utilization_percentage": "currentCPUUtilizationPercentage"}

    current_cpu_utilization_percentage: int | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: Time | None = None
    observed_generation: int | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class HorizontalPodAutoscaler(KubernetesObject):
    """autoscaling/v1 HorizontalPodAutoscaler."""

    __resource__: ClassVar[ResourceInfo] = builtin("autoscaling/v1", "HorizontalPodAutoscaler")

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ScaleSpec(Model):
    """autoscaling/v1 ScaleSpec."""

    replicas: int = 0


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ScaleStatus(Model):
    """autoscaling/v1 ScaleStatus."""

    replicas: int = 0
    selector: str | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class Scale(Model):
    """autoscaling/v1 Scale: the request body of a subresource."""

    _always: ClassVar[frozenset[str]] = frozenset({"api_version", "kind"})

    api_version: str = "autoscaling/v1"
    kind: str = "Scale"
    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()
