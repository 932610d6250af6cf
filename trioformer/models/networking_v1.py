"""networking/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .core_v1 import TypedLocalObjectReference
from .meta_v1 import Condition, LabelSelector

__all__ = [
    "HTTPIngressPath",
    "HTTPIngressRuleValue",
    "IPAddress",
    "IPAddressSpec",
    "IPBlock",
    "Ingress",
    "IngressBackend",
    "IngressClass",
    "IngressClassParametersReference",
    "IngressClassSpec",
    "IngressLoadBalancerIngress",
    "IngressLoadBalancerStatus",
    "IngressPortStatus",
    "IngressRule",
    "IngressServiceBackend",
    "IngressSpec",
    "IngressStatus",
    "IngressTLS",
    "NetworkPolicy",
    "NetworkPolicyEgressRule",
    "NetworkPolicyIngressRule",
    "NetworkPolicyPeer",
    "NetworkPolicyPort",
    "NetworkPolicySpec",
    "ParentReference",
    "ServiceBackendPort",
    "ServiceCIDR",
    "ServiceCIDRSpec",
    "ServiceCIDRStatus",
]


@frozen_model(kw_only=True)
class ServiceBackendPort(Model):
    """networking/v1 ServiceBackendPort."""

    name: str | None = None
    number: int | None = None


@frozen_model(kw_only=True)
class IngressServiceBackend(Model):
    """networking/v1 IngressServiceBackend."""

    name: str = ""
    port: ServiceBackendPort = ServiceBackendPort()


@frozen_model(kw_only=True)
class IngressBackend(Model):
    """networking/v1 IngressBackend."""

    resource: TypedLocalObjectReference | None = None
    service: IngressServiceBackend | None = None


@frozen_model(kw_only=True)
class HTTPIngressPath(Model):
    """networking/v1 HTTPIngressPath."""

    backend: IngressBackend = IngressBackend()
    path: str | None = None
    path_type: str = ""


@frozen_model(kw_only=True)
class HTTPIngressRuleValue(Model):
    """networking/v1 HTTPIngressRuleValue."""

    paths: tuple[HTTPIngressPath, ...] = ()


@frozen_model(kw_only=True)
class ParentReference(Model):
    """networking/v1 ParentReference."""

    group: str | None = None
    name: str = ""
    namespace: str | None = None
    resource: str = ""


@frozen_model(kw_only=True)
class IPAddressSpec(Model):
    """networking/v1 IPAddressSpec."""

    parent_ref: ParentReference = ParentReference()


@frozen_model(kw_only=True)
class IPAddress(KubernetesObject):
    """networking/v1 IPAddress."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1", "IPAddress")

    spec: IPAddressSpec = IPAddressSpec()


@frozen_model(kw_only=True)
class IPBlock(Model):
    """networking/v1 IPBlock."""

    cidr: str = ""
    except_: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class IngressRule(Model):
    """networking/v1 IngressRule."""

    host: str | None = None
    http: HTTPIngressRuleValue | None = None


@frozen_model(kw_only=True)
class IngressTLS(Model):
    """networking/v1 IngressTLS."""

    hosts: tuple[str, ...] = ()
    secret_name: str | None = None


@frozen_model(kw_only=True)
class IngressSpec(Model):
    """networking/v1 IngressSpec."""

    default_backend: IngressBackend | None = None
    ingress_class_name: str | None = None
    rules: tuple[IngressRule, ...] = ()
    tls: tuple[IngressTLS, ...] = ()


@frozen_model(kw_only=True)
class IngressPortStatus(Model):
    """networking/v1 IngressPortStatus."""

    error: str | None = None
    port: int = 0
    protocol: str = ""


@frozen_model(kw_only=True)
class IngressLoadBalancerIngress(Model):
    """networking/v1 IngressLoadBalancerIngress."""

    hostname: str | None = None
    ip: str | None = None
    ports: tuple[IngressPortStatus, ...] = ()


@frozen_model(kw_only=True)
class IngressLoadBalancerStatus(Model):
    """networking/v1 IngressLoadBalancerStatus."""

    ingress: tuple[IngressLoadBalancerIngress, ...] = ()


@frozen_model(kw_only=True)
class IngressStatus(Model):
    """networking/v1 IngressStatus."""

    load_balancer: IngressLoadBalancerStatus = IngressLoadBalancerStatus()


@frozen_model(kw_only=True)
class Ingress(KubernetesObject):
    """networking/v1 Ingress."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1", "Ingress")

    spec: IngressSpec = IngressSpec()
    status: IngressStatus = IngressStatus()


@frozen_model(kw_only=True)
class IngressClassParametersReference(Model):
    """networking/v1 IngressClassParametersReference."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None
    scope: str | None = None


@frozen_model(kw_only=True)
class IngressClassSpec(Model):
    """networking/v1 IngressClassSpec."""

    controller: str | None = None
    parameters: IngressClassParametersReference | None = None


@frozen_model(kw_only=True)
class IngressClass(KubernetesObject):
    """networking/v1 IngressClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1", "IngressClass")

    spec: IngressClassSpec = IngressClassSpec()


@frozen_model(kw_only=True)
class NetworkPolicyPort(Model):
    """networking/v1 NetworkPolicyPort."""

    end_port: int | None = None
    port: int | str | None = None
    protocol: str | None = None


@frozen_model(kw_only=True)
class NetworkPolicyPeer(Model):
    """networking/v1 NetworkPolicyPeer."""

    ip_block: IPBlock | None = None
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


@frozen_model(kw_only=True)
class NetworkPolicyEgressRule(Model):
    """networking/v1 NetworkPolicyEgressRule."""

    ports: tuple[NetworkPolicyPort, ...] = ()
    to: tuple[NetworkPolicyPeer, ...] = ()


@frozen_model(kw_only=True)
class NetworkPolicyIngressRule(Model):
    """networking/v1 NetworkPolicyIngressRule."""

    from_: tuple[NetworkPolicyPeer, ...] = ()
    ports: tuple[NetworkPolicyPort, ...] = ()


@frozen_model(kw_only=True)
class NetworkPolicySpec(Model):
    """networking/v1 NetworkPolicySpec."""

    egress: tuple[NetworkPolicyEgressRule, ...] = ()
    ingress: tuple[NetworkPolicyIngressRule, ...] = ()
    pod_selector: LabelSelector = LabelSelector()
    policy_types: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class NetworkPolicy(KubernetesObject):
    """networking/v1 NetworkPolicy."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1", "NetworkPolicy")

    spec: NetworkPolicySpec = NetworkPolicySpec()


@frozen_model(kw_only=True)
class ServiceCIDRSpec(Model):
    """networking/v1 ServiceCIDRSpec."""

    cidrs: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ServiceCIDRStatus(Model):
    """networking/v1 ServiceCIDRStatus."""

    conditions: tuple[Condition, ...] = ()


@frozen_model(kw_only=True)
class ServiceCIDR(KubernetesObject):
    """networking/v1 ServiceCIDR."""

    __resource__: ClassVar[ResourceInfo] = builtin("networking.k8s.io/v1", "ServiceCIDR")

    spec: ServiceCIDRSpec = ServiceCIDRSpec()
    status: ServiceCIDRStatus = ServiceCIDRStatus()
