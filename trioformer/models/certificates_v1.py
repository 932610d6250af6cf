"""certificates/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

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


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
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


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class CertificateSigningRequestCondition(Model):
    """certificates/v1 CertificateSigningRequestCondition."""

    last_transition_time: Time | None = None
    last_update_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class CertificateSigningRequestStatus(Model):
    """certificates/v1 CertificateSigningRequestStatus."""

    certificate: bytes | None = None
    conditions: tuple[CertificateSigningRequestCondition, ...] = ()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class CertificateSigningRequest(KubernetesObject):
    """certificates/v1 CertificateSigningRequest."""

    __resource__: ClassVar[ResourceInfo] = builtin("certificates.k8s.io/v1", "CertificateSigningRequest")

    spec: CertificateSigningRequestSpec = CertificateSigningRequestSpec()
    status: CertificateSigningRequestStatus = CertificateSigningRequestStatus()
