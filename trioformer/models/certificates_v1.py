"""certificates/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, Time

__all__ = [
    "CertificateSigningRequest",
    "CertificateSigningRequestCondition",
    "CertificateSigningRequestSpec",
    "CertificateSigningRequestStatus",
]


@frozen_model(kw_only=True)
class CertificateSigningRequestSpec(Model):
    """certificates/v1 CertificateSigningRequestSpec."""

    expiration_seconds: int | None = None
    extra: Mapping[str, tuple[str, ...]] = EMPTY_MAP
    groups: tuple[str, ...] = ()
    request: bytes = b""
    signer_name: str = ""
    uid: str | None = None
    usages: tuple[str, ...] = ()
    username: str | None = None


@frozen_model(kw_only=True)
class CertificateSigningRequestCondition(Model):
    """certificates/v1 CertificateSigningRequestCondition."""

    last_transition_time: Time | None = None
    last_update_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class CertificateSigningRequestStatus(Model):
    """certificates/v1 CertificateSigningRequestStatus."""

    certificate: bytes | None = None
    conditions: tuple[CertificateSigningRequestCondition, ...] = ()


@frozen_model(kw_only=True)
class CertificateSigningRequest(KubernetesObject):
    """certificates/v1 CertificateSigningRequest."""

    __resource__: ClassVar[ResourceInfo] = builtin("certificates.k8s.io/v1", "CertificateSigningRequest")

    spec: CertificateSigningRequestSpec = CertificateSigningRequestSpec()
    status: CertificateSigningRequestStatus = CertificateSigningRequestStatus()
