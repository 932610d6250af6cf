"""coordination/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import MicroTime

__all__ = ["LeaseCandidate", "LeaseCandidateSpec"]


@frozen_model(kw_only=True)
class LeaseCandidateSpec(Model):
    """coordination/v1beta1 LeaseCandidateSpec."""

    binary_version: str = ""
    emulation_version: str | None = None
    lease_name: str = ""
    ping_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    strategy: str = ""


@frozen_model(kw_only=True)
class LeaseCandidate(KubernetesObject):
    """coordination/v1beta1 LeaseCandidate."""

    __resource__: ClassVar[ResourceInfo] = builtin("coordination.k8s.io/v1beta1", "LeaseCandidate")

    spec: LeaseCandidateSpec = LeaseCandidateSpec()
