"""admissionregistration/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .meta_v1 import LabelSelector

__all__ = [
    "ApplyConfiguration",
    "JSONPatch",
    "MatchCondition",
    "MatchResources",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBindingSpec",
    "MutatingAdmissionPolicySpec",
    "Mutation",
    "NamedRuleWithOperations",
    "ParamKind",
    "ParamRef",
    "Variable",
]


@frozen_model(kw_only=True)
class ApplyConfiguration(Model):
    """admissionregistration/v1beta1 ApplyConfiguration."""

    expression: str | None = None


@frozen_model(kw_only=True)
class JSONPatch(Model):
    """admissionregistration/v1beta1 JSONPatch."""

    expression: str | None = None


@frozen_model(kw_only=True)
class MatchCondition(Model):
    """admissionregistration/v1beta1 MatchCondition."""

    expression: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class NamedRuleWithOperations(Model):
    """admissionregistration/v1beta1 NamedRuleWithOperations."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str | None = None


@frozen_model(kw_only=True)
class MatchResources(Model):
    """admissionregistration/v1beta1 MatchResources."""

    exclude_resource_rules: tuple[NamedRuleWithOperations, ...] = ()
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: tuple[NamedRuleWithOperations, ...] = ()


@frozen_model(kw_only=True)
class Mutation(Model):
    """admissionregistration/v1beta1 Mutation."""

    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = None
    patch_type: str = ""


@frozen_model(kw_only=True)
class ParamKind(Model):
    """admissionregistration/v1beta1 ParamKind."""

    api_version: str | None = None
    kind: str | None = None


@frozen_model(kw_only=True)
class Variable(Model):
    """admissionregistration/v1beta1 Variable."""

    expression: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class MutatingAdmissionPolicySpec(Model):
    """admissionregistration/v1beta1 MutatingAdmissionPolicySpec."""

    failure_policy: str | None = None
    match_conditions: tuple[MatchCondition, ...] = ()
    match_constraints: MatchResources | None = None
    mutations: tuple[Mutation, ...] = ()
    param_kind: ParamKind | None = None
    reinvocation_policy: str | None = None
    variables: tuple[Variable, ...] = ()


@frozen_model(kw_only=True)
class MutatingAdmissionPolicy(KubernetesObject):
    """admissionregistration/v1beta1 MutatingAdmissionPolicy."""

    __resource__: ClassVar[ResourceInfo] = builtin("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy")

    spec: MutatingAdmissionPolicySpec = MutatingAdmissionPolicySpec()


@frozen_model(kw_only=True)
class ParamRef(Model):
    """admissionregistration/v1beta1 ParamRef."""

    name: str | None = None
    namespace: str | None = None
    parameter_not_found_action: str | None = None
    selector: LabelSelector | None = None


@frozen_model(kw_only=True)
class MutatingAdmissionPolicyBindingSpec(Model):
    """admissionregistration/v1beta1 MutatingAdmissionPolicyBindingSpec."""

    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str | None = None


@frozen_model(kw_only=True)
class MutatingAdmissionPolicyBinding(KubernetesObject):
    """admissionregistration/v1beta1 MutatingAdmissionPolicyBinding."""

    __resource__: ClassVar[ResourceInfo] = builtin(
        "admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyBinding"
    )

    spec: MutatingAdmissionPolicyBindingSpec = MutatingAdmissionPolicyBindingSpec()
