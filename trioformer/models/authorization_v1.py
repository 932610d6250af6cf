"""authorization/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import EMPTY_MAP
from .meta_v1 import FieldSelectorRequirement, LabelSelectorRequirement

__all__ = [
    "FieldSelectorAttributes",
    "LabelSelectorAttributes",
    "LocalSubjectAccessReview",
    "NonResourceAttributes",
    "NonResourceRule",
    "ResourceAttributes",
    "ResourceRule",
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReviewSpec",
    "SelfSubjectRulesReview",
    "SelfSubjectRulesReviewSpec",
    "SubjectAccessReview",
    "SubjectAccessReviewSpec",
    "SubjectAccessReviewStatus",
    "SubjectRulesReviewStatus",
]


@frozen_model(kw_only=True)
class FieldSelectorAttributes(Model):
    """authorization/v1 FieldSelectorAttributes."""

    raw_selector: str | None = None
    requirements: tuple[FieldSelectorRequirement, ...] = ()


@frozen_model(kw_only=True)
class LabelSelectorAttributes(Model):
    """authorization/v1 LabelSelectorAttributes."""

    raw_selector: str | None = None
    requirements: tuple[LabelSelectorRequirement, ...] = ()


@frozen_model(kw_only=True)
class NonResourceAttributes(Model):
    """authorization/v1 NonResourceAttributes."""

    path: str | None = None
    verb: str | None = None


@frozen_model(kw_only=True)
class ResourceAttributes(Model):
    """authorization/v1 ResourceAttributes."""

    field_selector: FieldSelectorAttributes | None = None
    group: str | None = None
    label_selector: LabelSelectorAttributes | None = None
    name: str | None = None
    namespace: str | None = None
    resource: str | None = None
    subresource: str | None = None
    verb: str | None = None
    version: str | None = None


@frozen_model(kw_only=True)
class SubjectAccessReviewSpec(Model):
    """authorization/v1 SubjectAccessReviewSpec."""

    extra: Mapping[str, tuple[str, ...]] = EMPTY_MAP
    groups: tuple[str, ...] = ()
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None
    uid: str | None = None
    user: str | None = None


@frozen_model(kw_only=True)
class SubjectAccessReviewStatus(Model):
    """authorization/v1 SubjectAccessReviewStatus."""

    allowed: bool = False
    denied: bool | None = None
    evaluation_error: str | None = None
    reason: str | None = None


@frozen_model(kw_only=True)
class LocalSubjectAccessReview(KubernetesObject):
    """authorization/v1 LocalSubjectAccessReview."""

    __resource__: ClassVar[ResourceInfo] = builtin("authorization.k8s.io/v1", "LocalSubjectAccessReview")

    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


@frozen_model(kw_only=True)
class NonResourceRule(Model):
    """authorization/v1 NonResourceRule."""

    _json_names: ClassVar[Mapping[str, str]] = {"non_resource_urls": "nonResourceURLs"}

    non_resource_urls: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ResourceRule(Model):
    """authorization/v1 ResourceRule."""

    api_groups: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class SelfSubjectAccessReviewSpec(Model):
    """authorization/v1 SelfSubjectAccessReviewSpec."""

    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None


@frozen_model(kw_only=True)
class SelfSubjectAccessReview(KubernetesObject):
    """authorization/v1 SelfSubjectAccessReview."""

    __resource__: ClassVar[ResourceInfo] = builtin("authorization.k8s.io/v1", "SelfSubjectAccessReview")

    spec: SelfSubjectAccessReviewSpec = SelfSubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


@frozen_model(kw_only=True)
class SelfSubjectRulesReviewSpec(Model):
    """authorization/v1 SelfSubjectRulesReviewSpec."""

    namespace: str | None = None


@frozen_model(kw_only=True)
class SubjectRulesReviewStatus(Model):
    """authorization/v1 SubjectRulesReviewStatus."""

    evaluation_error: str | None = None
    incomplete: bool = False
    non_resource_rules: tuple[NonResourceRule, ...] = ()
    resource_rules: tuple[ResourceRule, ...] = ()


@frozen_model(kw_only=True)
class SelfSubjectRulesReview(KubernetesObject):
    """authorization/v1 SelfSubjectRulesReview."""

    __resource__: ClassVar[ResourceInfo] = builtin("authorization.k8s.io/v1", "SelfSubjectRulesReview")

    spec: SelfSubjectRulesReviewSpec = SelfSubjectRulesReviewSpec()
    status: SubjectRulesReviewStatus = SubjectRulesReviewStatus()


@frozen_model(kw_only=True)
class SubjectAccessReview(KubernetesObject):
    """authorization/v1 SubjectAccessReview."""

    __resource__: ClassVar[ResourceInfo] = builtin("authorization.k8s.io/v1", "SubjectAccessReview")

    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()
