"""authentication/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject, ObjectMeta
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, Time

__all__ = [
    "BoundObjectReference",
    "SelfSubjectReview",
    "SelfSubjectReviewStatus",
    "TokenRequest",
    "TokenRequestSpec",
    "TokenRequestStatus",
    "TokenReview",
    "TokenReviewSpec",
    "TokenReviewStatus",
    "UserInfo",
]


@frozen_model(kw_only=True)
class BoundObjectReference(Model):
    """authentication/v1 BoundObjectReference."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None


@frozen_model(kw_only=True)
class UserInfo(Model):
    """authentication/v1 UserInfo."""

    extra: Mapping[str, tuple[str, ...]] = EMPTY_MAP
    groups: tuple[str, ...] = ()
    uid: str | None = None
    username: str | None = None


@frozen_model(kw_only=True)
class SelfSubjectReviewStatus(Model):
    """authentication/v1 SelfSubjectReviewStatus."""

    user_info: UserInfo = UserInfo()


@frozen_model(kw_only=True)
class SelfSubjectReview(KubernetesObject):
    """authentication/v1 SelfSubjectReview."""

    __resource__: ClassVar[ResourceInfo] = builtin("authentication.k8s.io/v1", "SelfSubjectReview")

    status: SelfSubjectReviewStatus = SelfSubjectReviewStatus()


@frozen_model(kw_only=True)
class TokenRequestSpec(Model):
    """authentication/v1 TokenRequestSpec."""

    audiences: tuple[str, ...] = ()
    bound_object_ref: BoundObjectReference | None = None
    expiration_seconds: int | None = None


@frozen_model(kw_only=True)
class TokenRequestStatus(Model):
    """authentication/v1 TokenRequestStatus."""

    expiration_timestamp: Time | None = None
    token: str = ""


@frozen_model(kw_only=True)
class TokenRequest(Model):
    """authentication/v1 TokenRequest: the request body of a subresource."""

    _always: ClassVar[frozenset[str]] = frozenset({"api_version", "kind"})

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenRequest"
    metadata: ObjectMeta = ObjectMeta()
    spec: TokenRequestSpec = TokenRequestSpec()
    status: TokenRequestStatus = TokenRequestStatus()


@frozen_model(kw_only=True)
class TokenReviewSpec(Model):
    """authentication/v1 TokenReviewSpec."""

    audiences: tuple[str, ...] = ()
    token: str = ""


@frozen_model(kw_only=True)
class TokenReviewStatus(Model):
    """authentication/v1 TokenReviewStatus."""

    audiences: tuple[str, ...] = ()
    authenticated: bool | None = None
    error: str | None = None
    user: UserInfo = UserInfo()


@frozen_model(kw_only=True)
class TokenReview(KubernetesObject):
    """authentication/v1 TokenReview."""

    __resource__: ClassVar[ResourceInfo] = builtin("authentication.k8s.io/v1", "TokenReview")

    spec: TokenReviewSpec = TokenReviewSpec()
    status: TokenReviewStatus = TokenReviewStatus()
