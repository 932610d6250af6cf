"""certificates/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, Time
from .meta_v1 import Condition

__all__ = [
    "ClusterTrustBundle",
    "ClusterTrustBundleSpec",
    "PodCertificateRequest",
    "PodCertificateRequestSpec",
    "PodCertificateRequestStatus",
]


@frozen_model(kw_only=True)
class ClusterTrustBundleSpec(Model):
    """certificates/v1beta1 ClusterTrustBundleSpec."""

    signer_name: str | None = None
    trust_bundle: str = ""


@frozen_model(kw_only=True)
class ClusterTrustBundle(KubernetesObject):
    """certificates/v1beta1 ClusterTrustBundle."""

    __resource__: ClassVar[ResourceInfo] = builtin("certificates.k8s.io/v1beta1", "ClusterTrustBundle")

    spec: ClusterTrustBundleSpec = ClusterTrustBundleSpec()


@frozen_model(kw_only=True)
class PodCertificateRequestSpec(Model):
    """certificates/v1beta1 PodCertificateRequestSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {
        "node_uid": "nodeUID",
        "pod_uid": "podUID",
        "service_account_uid": "serviceAccountUID",
        "stub_pkcs10_request": "stubPKCS10Request",
    }

    max_expiration_seconds: int | None = None
    node_name: str = ""
    node_uid: str = ""
    pkix_public_key: bytes | None = None
    pod_name: str = ""
    pod_uid: str = ""
    proof_of_possession: bytes | None = None
    service_account_name: str = ""
    service_account_uid: str = ""
    signer_name: str = ""
    stub_pkcs10_request: bytes = b""
    unverified_user_annotations: Mapping[str, str] = EMPTY_MAP


@frozen_model(kw_only=True)
class PodCertificateRequestStatus(Model):
    """certificates/v1beta1 PodCertificateRequestStatus."""

    begin_refresh_at: Time | None = None
    certificate_chain: str | None = None
    conditions: tuple[Condition, ...] = ()
    not_after: Time | None = None
    not_before: Time | None = None


@frozen_model(kw_only=True)
class PodCertificateRequest(KubernetesObject):
    """certificates/v1beta1 PodCertificateRequest."""

    __resource__: ClassVar[ResourceInfo] = builtin("certificates.k8s.io/v1beta1", "PodCertificateRequest")

    spec: PodCertificateRequestSpec = PodCertificateRequestSpec()
    status: PodCertificateRequestStatus = PodCertificateRequestStatus()
