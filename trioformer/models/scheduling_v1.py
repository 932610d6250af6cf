"""scheduling/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._meta import KubernetesObject
from ._resources import ResourceInfo

__all__ = ["PriorityClass"]


@frozen_model(kw_only=True)
class PriorityClass(KubernetesObject):
    """scheduling/v1 PriorityClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("scheduling.k8s.io/v1", "PriorityClass")

    description: str | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None
    value: int = 0
