"""networking/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

import attrs

from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .meta_v1 import Condition

__all__ = ["IPAddress", "IPAddressSpec", "ParentReference", "ServiceCIDR", "ServiceCIDRSpec", "ServiceCIDRStatus"]


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ParentReference(Model):
    """networking/v1beta1 ParentReference."""

    group: str | None = None
    name: str = ""
    namespace: str | None = None
    resource: str = ""


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class IPAddressSpec(Model):
    """networking/v1beta1 IPAddressSpec."""

    parent_ref: ParentReference = ParentReference()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class IPAddress(KubernetesObject):
    """networking/v1beta1 IPAddress."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1beta1", "IPAddress")

    spec: IPAddressSpec = IPAddressSpec()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ServiceCIDRSpec(Model):
    """networking/v1beta1 ServiceCIDRSpec."""

    cidrs: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ServiceCIDRStatus(Model):
    """networking/v1beta1 ServiceCIDRStatus."""

    conditions: tuple[Condition, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class ServiceCIDR(KubernetesObject):
    """networking/v1beta1 ServiceCIDR."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1beta1", "ServiceCIDR")

    spec: ServiceCIDRSpec = ServiceCIDRSpec()
    status: ServiceCIDRStatus = ServiceCIDRStatus()
