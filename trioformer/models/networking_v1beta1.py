"""networking/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .meta_v1 import Condition

__all__ = ["IPAddress", "IPAddressSpec", "ParentReference", "ServiceCIDR", "ServiceCIDRSpec", "ServiceCIDRStatus"]


@frozen_model(kw_only=True)
class ParentReference(Model):
    """networking/v1beta1 ParentReference."""

    group: str | None = None
    name: str = ""
    namespace: str | None = None
    resource: str = ""


@frozen_model(kw_only=True)
class IPAddressSpec(Model):
    """networking/v1beta1 IPAddressSpec."""

    parent_ref: ParentReference = ParentReference()


@frozen_model(kw_only=True)
class IPAddress(KubernetesObject):
    """networking/v1beta1 IPAddress."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1beta1", "IPAddress")

    spec: IPAddressSpec = IPAddressSpec()


@frozen_model(kw_only=True)
class ServiceCIDRSpec(Model):
    """networking/v1beta1 ServiceCIDRSpec."""

    cidrs: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ServiceCIDRStatus(Model):
    """networking/v1beta1 ServiceCIDRStatus."""

    conditions: tuple[Condition, ...] = ()


@frozen_model(kw_only=True)
class ServiceCIDR(KubernetesObject):
    """networking/v1beta1 ServiceCIDR."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1beta1", "ServiceCIDR")

    spec: ServiceCIDRSpec = ServiceCIDRSpec()
    status: ServiceCIDRStatus = ServiceCIDRStatus()
