"""flowcontrol/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import Time

__all__ = [
    "ExemptPriorityLevelConfiguration",
    "FlowDistinguisherMethod",
    "FlowSchema",
    "FlowSchemaCondition",
    "FlowSchemaSpec",
    "FlowSchemaStatus",
    "GroupSubject",
    "LimitResponse",
    "LimitedPriorityLevelConfiguration",
    "NonResourcePolicyRule",
    "PolicyRulesWithSubjects",
    "PriorityLevelConfiguration",
    "PriorityLevelConfigurationCondition",
    "PriorityLevelConfigurationReference",
    "PriorityLevelConfigurationSpec",
    "PriorityLevelConfigurationStatus",
    "QueuingConfiguration",
    "ResourcePolicyRule",
    "ServiceAccountSubject",
    "Subject",
    "UserSubject",
]


@frozen_model(kw_only=True)
class ExemptPriorityLevelConfiguration(Model):
    """flowcontrol/v1 ExemptPriorityLevelConfiguration."""

    lendable_percent: int | None = None
    nominal_concurrency_shares: int | None = None


@frozen_model(kw_only=True)
class FlowDistinguisherMethod(Model):
    """flowcontrol/v1 FlowDistinguisherMethod."""

    type: str = ""


@frozen_model(kw_only=True)
class PriorityLevelConfigurationReference(Model):
    """flowcontrol/v1 PriorityLevelConfigurationReference."""

    name: str = ""


@frozen_model(kw_only=True)
class NonResourcePolicyRule(Model):
    """flowcontrol/v1 NonResourcePolicyRule."""

    _json_names: ClassVar[Mapping[str, str]] = {"non_resource_urls": "nonResourceURLs"}

    non_resource_urls: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ResourcePolicyRule(Model):
    """flowcontrol/v1 ResourcePolicyRule."""

    api_groups: tuple[str, ...] = ()
    cluster_scope: bool | None = None
    namespaces: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class GroupSubject(Model):
    """flowcontrol/v1 GroupSubject."""

    name: str = ""


@frozen_model(kw_only=True)
class ServiceAccountSubject(Model):
    """flowcontrol/v1 ServiceAccountSubject."""

    name: str = ""
    namespace: str = ""


@frozen_model(kw_only=True)
class UserSubject(Model):
    """flowcontrol/v1 UserSubject."""

    name: str = ""


@frozen_model(kw_only=True)
class Subject(Model):
    """flowcontrol/v1 Subject."""

    group: GroupSubject | None = None
    kind: str = ""
    service_account: ServiceAccountSubject | None = None
    user: UserSubject | None = None


@frozen_model(kw_only=True)
class PolicyRulesWithSubjects(Model):
    """flowcontrol/v1 PolicyRulesWithSubjects."""

    non_resource_rules: tuple[NonResourcePolicyRule, ...] = ()
    resource_rules: tuple[ResourcePolicyRule, ...] = ()
    subjects: tuple[Subject, ...] = ()


@frozen_model(kw_only=True)
class FlowSchemaSpec(Model):
    """flowcontrol/v1 FlowSchemaSpec."""

    distinguisher_method: FlowDistinguisherMethod | None = None
    matching_precedence: int = 0
    priority_level_configuration: PriorityLevelConfigurationReference = PriorityLevelConfigurationReference()
    rules: tuple[PolicyRulesWithSubjects, ...] = ()


@frozen_model(kw_only=True)
class FlowSchemaCondition(Model):
    """flowcontrol/v1 FlowSchemaCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str | None = None
    type: str | None = None


@frozen_model(kw_only=True)
class FlowSchemaStatus(Model):
    """flowcontrol/v1 FlowSchemaStatus."""

    conditions: tuple[FlowSchemaCondition, ...] = ()


@frozen_model(kw_only=True)
class FlowSchema(KubernetesObject):
    """flowcontrol/v1 FlowSchema."""

    __resource__: ClassVar[ResourceInfo] = builtin("flowcontrol.apiserver.k8s.io/v1", "FlowSchema")

    spec: FlowSchemaSpec = FlowSchemaSpec()
    status: FlowSchemaStatus = FlowSchemaStatus()


@frozen_model(kw_only=True)
class QueuingConfiguration(Model):
    """flowcontrol/v1 QueuingConfiguration."""

    hand_size: int = 0
    queue_length_limit: int = 0
    queues: int = 0


@frozen_model(kw_only=True)
class LimitResponse(Model):
    """flowcontrol/v1 LimitResponse."""

    queuing: QueuingConfiguration | None = None
    type: str = ""


@frozen_model(kw_only=True)
class LimitedPriorityLevelConfiguration(Model):
    """flowcontrol/v1 LimitedPriorityLevelConfiguration."""

    borrowing_limit_percent: int | None = None
    lendable_percent: int | None = None
    limit_response: LimitResponse = LimitResponse()
    nominal_concurrency_shares: int | None = None


@frozen_model(kw_only=True)
class PriorityLevelConfigurationSpec(Model):
    """flowcontrol/v1 PriorityLevelConfigurationSpec."""

    exempt: ExemptPriorityLevelConfiguration | None = None
    limited: LimitedPriorityLevelConfiguration | None = None
    type: str = ""


@frozen_model(kw_only=True)
class PriorityLevelConfigurationCondition(Model):
    """flowcontrol/v1 PriorityLevelConfigurationCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str | None = None
    type: str | None = None


@frozen_model(kw_only=True)
class PriorityLevelConfigurationStatus(Model):
    """flowcontrol/v1 PriorityLevelConfigurationStatus."""

    conditions: tuple[PriorityLevelConfigurationCondition, ...] = ()


@frozen_model(kw_only=True)
class PriorityLevelConfiguration(KubernetesObject):
    """flowcontrol/v1 PriorityLevelConfiguration."""

    __resource__: ClassVar[ResourceInfo] = builtin("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration")

    spec: PriorityLevelConfigurationSpec = PriorityLevelConfigurationSpec()
    status: PriorityLevelConfigurationStatus = PriorityLevelConfigurationStatus()
