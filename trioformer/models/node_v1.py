"""node/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._quantity import Quantity
from ._resources import ResourceInfo
from ._values import EMPTY_MAP
from .core_v1 import Toleration

__all__ = ["Overhead", "RuntimeClass", "Scheduling"]


@frozen_model(kw_only=True)
class Overhead(Model):
    """node/v1 Overhead."""

    pod_fixed: Mapping[str, Quantity] = EMPTY_MAP


@frozen_model(kw_only=True)
class Scheduling(Model):
    """node/v1 Scheduling."""

    node_selector: Mapping[str, str] = EMPTY_MAP
    tolerations: tuple[Toleration, ...] = ()


@frozen_model(kw_only=True)
class RuntimeClass(KubernetesObject):
    """node/v1 RuntimeClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("node.k8s.io/v1", "RuntimeClass")

    handler: str = ""
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
