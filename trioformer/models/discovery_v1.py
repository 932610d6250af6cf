"""discovery/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import EMPTY_MAP
from .core_v1 import ObjectReference

__all__ = ["Endpoint", "EndpointConditions", "EndpointHints", "EndpointPort", "EndpointSlice", "ForNode", "ForZone"]


@frozen_model(kw_only=True)
class EndpointConditions(Model):
    """discovery/v1 EndpointConditions."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


@frozen_model(kw_only=True)
class ForNode(Model):
    """discovery/v1 ForNode."""

    name: str = ""


@frozen_model(kw_only=True)
class ForZone(Model):
    """discovery/v1 ForZone."""

    name: str = ""


@frozen_model(kw_only=True)
class EndpointHints(Model):
    """discovery/v1 EndpointHints."""

    for_nodes: tuple[ForNode, ...] = ()
    for_zones: tuple[ForZone, ...] = ()


@frozen_model(kw_only=True)
class Endpoint(Model):
    """discovery/v1 Endpoint."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    deprecated_topology: Mapping[str, str] = EMPTY_MAP
    hints: EndpointHints | None = None
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ObjectReference | None = None
    zone: str | None = None


@frozen_model(kw_only=True)
class EndpointPort(Model):
    """discovery/v1 EndpointPort."""

    app_protocol: str | None = None
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


@frozen_model(kw_only=True)
class EndpointSlice(KubernetesObject):
    """discovery/v1 EndpointSlice."""

    __resource__: ClassVar[ResourceInfo] = builtin("discovery.k8s.io/v1", "EndpointSlice")

    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()
