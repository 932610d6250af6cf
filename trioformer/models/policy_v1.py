"""policy/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject, ObjectMeta
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, Time
from .meta_v1 import Condition, DeleteOptions, LabelSelector

__all__ = ["Eviction", "PodDisruptionBudget", "PodDisruptionBudgetSpec", "PodDisruptionBudgetStatus"]


@frozen_model(kw_only=True)
class Eviction(Model):
    """policy/v1 Eviction: the request body of a subresource."""

    _always: ClassVar[frozenset[str]] = frozenset({"api_version", "kind"})

    api_version: str = "policy/v1"
    delete_options: DeleteOptions | None = None
    kind: str = "Eviction"
    metadata: ObjectMeta = ObjectMeta()


@frozen_model(kw_only=True)
class PodDisruptionBudgetSpec(Model):
    """policy/v1 PodDisruptionBudgetSpec."""

    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


@frozen_model(kw_only=True)
class PodDisruptionBudgetStatus(Model):
    """policy/v1 PodDisruptionBudgetStatus."""

    conditions: tuple[Condition, ...] = ()
    current_healthy: int = 0
    desired_healthy: int = 0
    disrupted_pods: Mapping[str, Time] = EMPTY_MAP
    disruptions_allowed: int = 0
    expected_pods: int = 0
    observed_generation: int | None = None


@frozen_model(kw_only=True)
class PodDisruptionBudget(KubernetesObject):
    """policy/v1 PodDisruptionBudget."""

    __resource__: ClassVar[ResourceInfo] = builtin("policy/v1", "PodDisruptionBudget")

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
