"""apiregistration/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import Time

__all__ = ["APIService", "APIServiceCondition", "APIServiceSpec", "APIServiceStatus", "ServiceReference"]


@frozen_model(kw_only=True)
class ServiceReference(Model):
    """apiregistration/v1 ServiceReference."""

    name: str | None = None
    namespace: str | None = None
    port: int | None = None


@frozen_model(kw_only=True)
class APIServiceSpec(Model):
    """apiregistration/v1 APIServiceSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {"insecure_skip_tls_verify": "insecureSkipTLSVerify"}

    ca_bundle: bytes | None = None
    group: str | None = None
    group_priority_minimum: int = 0
    insecure_skip_tls_verify: bool | None = None
    service: ServiceReference | None = None
    version: str | None = None
    version_priority: int = 0


@frozen_model(kw_only=True)
class APIServiceCondition(Model):
    """apiregistration/v1 APIServiceCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class APIServiceStatus(Model):
    """apiregistration/v1 APIServiceStatus."""

    conditions: tuple[APIServiceCondition, ...] = ()


@frozen_model(kw_only=True)
class APIService(KubernetesObject):
    """apiregistration/v1 APIService."""

    __resource__: ClassVar[ResourceInfo] = builtin("apiregistration.k8s.io/v1", "APIService")

    spec: APIServiceSpec = APIServiceSpec()
    status: APIServiceStatus = APIServiceStatus()
