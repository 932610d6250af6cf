"""rbac/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .meta_v1 import LabelSelector

__all__ = [
    "AggregationRule",
    "ClusterRole",
    "ClusterRoleBinding",
    "PolicyRule",
    "Role",
    "RoleBinding",
    "RoleRef",
    "Subject",
]


@frozen_model(kw_only=True)
class AggregationRule(Model):
    """rbac/v1 AggregationRule."""

    cluster_role_selectors: tuple[LabelSelector, ...] = ()


@frozen_model(kw_only=True)
class PolicyRule(Model):
    """rbac/v1 PolicyRule."""

    _json_names: ClassVar[Mapping[str, str]] = {"non_resource_urls": "nonResourceURLs"}

    api_groups: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ClusterRole(KubernetesObject):
    """rbac/v1 ClusterRole."""

    __resource__: ClassVar[ResourceInfo] = builtin("rbac.authorization.k8s.io/v1", "ClusterRole")

    aggregation_rule: AggregationRule | None = None
    rules: tuple[PolicyRule, ...] = ()


@frozen_model(kw_only=True)
class RoleRef(Model):
    """rbac/v1 RoleRef."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class Subject(Model):
    """rbac/v1 Subject."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


@frozen_model(kw_only=True)
class ClusterRoleBinding(KubernetesObject):
    """rbac/v1 ClusterRoleBinding."""

    __resource__: ClassVar[ResourceInfo] = builtin("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")

    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] = ()


@frozen_model(kw_only=True)
class Role(KubernetesObject):
    """rbac/v1 Role."""

    __resource__: ClassVar[ResourceInfo] = builtin("rbac.authorization.k8s.io/v1", "Role")

    rules: tuple[PolicyRule, ...] = ()


@frozen_model(kw_only=True)
class RoleBinding(KubernetesObject):
    """rbac/v1 RoleBinding."""

    __resource__: ClassVar[ResourceInfo] = builtin("rbac.authorization.k8s.io/v1", "RoleBinding")

    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] = ()
