"""admissionregistration/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .meta_v1 import Condition, LabelSelector

__all__ = [
    "ApplyConfiguration",
    "AuditAnnotation",
    "ExpressionWarning",
    "JSONPatch",
    "MatchCondition",
    "MatchResources",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBindingSpec",
    "MutatingAdmissionPolicySpec",
    "MutatingWebhook",
    "MutatingWebhookConfiguration",
    "Mutation",
    "NamedRuleWithOperations",
    "ParamKind",
    "ParamRef",
    "RuleWithOperations",
    "ServiceReference",
    "TypeChecking",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBindingSpec",
    "ValidatingAdmissionPolicySpec",
    "ValidatingAdmissionPolicyStatus",
    "ValidatingWebhook",
    "ValidatingWebhookConfiguration",
    "Validation",
    "Variable",
    "WebhookClientConfig",
]


@frozen_model(kw_only=True)
class ApplyConfiguration(Model):
    """admissionregistration/v1 ApplyConfiguration."""

    expression: str | None = None


@frozen_model(kw_only=True)
class AuditAnnotation(Model):
    """admissionregistration/v1 AuditAnnotation."""

    key: str = ""
    value_expression: str = ""


@frozen_model(kw_only=True)
class ExpressionWarning(Model):
    """admissionregistration/v1 ExpressionWarning."""

    field_ref: str = ""
    warning: str = ""


@frozen_model(kw_only=True)
class JSONPatch(Model):
    """admissionregistration/v1 JSONPatch."""

    expression: str | None = None


@frozen_model(kw_only=True)
class MatchCondition(Model):
    """admissionregistration/v1 MatchCondition."""

    expression: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class NamedRuleWithOperations(Model):
    """admissionregistration/v1 NamedRuleWithOperations."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str | None = None


@frozen_model(kw_only=True)
class MatchResources(Model):
    """admissionregistration/v1 MatchResources."""

    exclude_resource_rules: tuple[NamedRuleWithOperations, ...] = ()
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: tuple[NamedRuleWithOperations, ...] = ()


@frozen_model(kw_only=True)
class Mutation(Model):
    """admissionregistration/v1 Mutation."""

    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = None
    patch_type: str = ""


@frozen_model(kw_only=True)
class ParamKind(Model):
    """admissionregistration/v1 ParamKind."""

    api_version: str | None = None
    kind: str | None = None


@frozen_model(kw_only=True)
class Variable(Model):
    """admissionregistration/v1 Variable."""

    expression: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class MutatingAdmissionPolicySpec(Model):
    """admissionregistration/v1 MutatingAdmissionPolicySpec."""

    failure_policy: str | None = None
    match_conditions: tuple[MatchCondition, ...] = ()
    match_constraints: MatchResources | None = None
    mutations: tuple[Mutation, ...] = ()
    param_kind: ParamKind | None = None
    reinvocation_policy: str | None = None
    variables: tuple[Variable, ...] = ()


@frozen_model(kw_only=True)
class MutatingAdmissionPolicy(KubernetesObject):
    """admissionregistration/v1 MutatingAdmissionPolicy."""

    __resource__: ClassVar[ResourceInfo] = builtin("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy")

    spec: MutatingAdmissionPolicySpec = MutatingAdmissionPolicySpec()


@frozen_model(kw_only=True)
class ParamRef(Model):
    """admissionregistration/v1 ParamRef."""

    name: str | None = None
    namespace: str | None = None
    parameter_not_found_action: str | None = None
    selector: LabelSelector | None = None


@frozen_model(kw_only=True)
class MutatingAdmissionPolicyBindingSpec(Model):
    """admissionregistration/v1 MutatingAdmissionPolicyBindingSpec."""

    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str | None = None


@frozen_model(kw_only=True)
class MutatingAdmissionPolicyBinding(KubernetesObject):
    """admissionregistration/v1 MutatingAdmissionPolicyBinding."""

    __resource__: ClassVar[ResourceInfo] = builtin("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding")

    spec: MutatingAdmissionPolicyBindingSpec = MutatingAdmissionPolicyBindingSpec()


@frozen_model(kw_only=True)
class ServiceReference(Model):
    """admissionregistration/v1 ServiceReference."""

    name: str = ""
    namespace: str = ""
    path: str | None = None
    port: int | None = None


@frozen_model(kw_only=True)
class WebhookClientConfig(Model):
    """admissionregistration/v1 WebhookClientConfig."""

    ca_bundle: bytes | None = None
    service: ServiceReference | None = None
    url: str | None = None


@frozen_model(kw_only=True)
class RuleWithOperations(Model):
    """admissionregistration/v1 RuleWithOperations."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str | None = None


@frozen_model(kw_only=True)
class MutatingWebhook(Model):
    """admissionregistration/v1 MutatingWebhook."""

    admission_review_versions: tuple[str, ...] = ()
    client_config: WebhookClientConfig = WebhookClientConfig()
    failure_policy: str | None = None
    match_conditions: tuple[MatchCondition, ...] = ()
    match_policy: str | None = None
    name: str = ""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    reinvocation_policy: str | None = None
    rules: tuple[RuleWithOperations, ...] = ()
    side_effects: str = ""
    timeout_seconds: int | None = None


@frozen_model(kw_only=True)
class MutatingWebhookConfiguration(KubernetesObject):
    """admissionregistration/v1 MutatingWebhookConfiguration."""

    __resource__: ClassVar[ResourceInfo] = builtin("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")

    webhooks: tuple[MutatingWebhook, ...] = ()


@frozen_model(kw_only=True)
class TypeChecking(Model):
    """admissionregistration/v1 TypeChecking."""

    expression_warnings: tuple[ExpressionWarning, ...] = ()


@frozen_model(kw_only=True)
class Validation(Model):
    """admissionregistration/v1 Validation."""

    expression: str = ""
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None


@frozen_model(kw_only=True)
class ValidatingAdmissionPolicySpec(Model):
    """admissionregistration/v1 ValidatingAdmissionPolicySpec."""

    audit_annotations: tuple[AuditAnnotation, ...] = ()
    failure_policy: str | None = None
    match_conditions: tuple[MatchCondition, ...] = ()
    match_constraints: MatchResources | None = None
    param_kind: ParamKind | None = None
    validations: tuple[Validation, ...] = ()
    variables: tuple[Variable, ...] = ()


@frozen_model(kw_only=True)
class ValidatingAdmissionPolicyStatus(Model):
    """admissionregistration/v1 ValidatingAdmissionPolicyStatus."""

    conditions: tuple[Condition, ...] = ()
    observed_generation: int | None = None
    type_checking: TypeChecking | None = None


@frozen_model(kw_only=True)
class ValidatingAdmissionPolicy(KubernetesObject):
    """admissionregistration/v1 ValidatingAdmissionPolicy."""

    __resource__: ClassVar[ResourceInfo] = builtin("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")

    spec: ValidatingAdmissionPolicySpec = ValidatingAdmissionPolicySpec()
    status: ValidatingAdmissionPolicyStatus = ValidatingAdmissionPolicyStatus()


@frozen_model(kw_only=True)
class ValidatingAdmissionPolicyBindingSpec(Model):
    """admissionregistration/v1 ValidatingAdmissionPolicyBindingSpec."""

    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str = ""
    validation_actions: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ValidatingAdmissionPolicyBinding(KubernetesObject):
    """admissionregistration/v1 ValidatingAdmissionPolicyBinding."""

    __resource__: ClassVar[ResourceInfo] = builtin(
        "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"
    )

    spec: ValidatingAdmissionPolicyBindingSpec = ValidatingAdmissionPolicyBindingSpec()


@frozen_model(kw_only=True)
class ValidatingWebhook(Model):
    """admissionregistration/v1 ValidatingWebhook."""

    admission_review_versions: tuple[str, ...] = ()
    client_config: WebhookClientConfig = WebhookClientConfig()
    failure_policy: str | None = None
    match_conditions: tuple[MatchCondition, ...] = ()
    match_policy: str | None = None
    name: str = ""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    rules: tuple[RuleWithOperations, ...] = ()
    side_effects: str = ""
    timeout_seconds: int | None = None


@frozen_model(kw_only=True)
class ValidatingWebhookConfiguration(KubernetesObject):
    """admissionregistration/v1 ValidatingWebhookConfiguration."""

    __resource__: ClassVar[ResourceInfo] = builtin("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")

    webhooks: tuple[ValidatingWebhook, ...] = ()
