"""coordination/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import MicroTime

__all__ = ["Lease", "LeaseSpec"]


@frozen_model(kw_only=True)
class LeaseSpec(Model):
    """coordination/v1 LeaseSpec."""

    acquire_time: MicroTime | None = None
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    preferred_holder: str | None = None
    renew_time: MicroTime | None = None
    strategy: str | None = None


@frozen_model(kw_only=True)
class Lease(KubernetesObject):
    """coordination/v1 Lease."""

    __resource__: ClassVar[ResourceInfo] = builtin("coordination.k8s.io/v1", "Lease")

    spec: LeaseSpec = LeaseSpec()
