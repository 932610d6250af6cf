"""apiextensions/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, JSON, Time

__all__ = [
    "CustomResourceColumnDefinition",
    "CustomResourceConversion",
    "CustomResourceDefinition",
    "CustomResourceDefinitionCondition",
    "CustomResourceDefinitionNames",
    "CustomResourceDefinitionSpec",
    "CustomResourceDefinitionStatus",
    "CustomResourceDefinitionVersion",
    "CustomResourceSubresourceScale",
    "CustomResourceSubresourceStatus",
    "CustomResourceSubresources",
    "CustomResourceValidation",
    "ExternalDocumentation",
    "JSONSchemaProps",
    "SelectableField",
    "ServiceReference",
    "ValidationRule",
    "WebhookClientConfig",
    "WebhookConversion",
]


@frozen_model(kw_only=True)
class CustomResourceColumnDefinition(Model):
    """apiextensions/v1 CustomResourceColumnDefinition."""

    description: str | None = None
    format: str | None = None
    json_path: str = ""
    name: str = ""
    priority: int | None = None
    type: str = ""


@frozen_model(kw_only=True)
class ServiceReference(Model):
    """apiextensions/v1 ServiceReference."""

    name: str = ""
    namespace: str = ""
    path: str | None = None
    port: int | None = None


@frozen_model(kw_only=True)
class WebhookClientConfig(Model):
    """apiextensions/v1 WebhookClientConfig."""

    ca_bundle: bytes | None = None
    service: ServiceReference | None = None
    url: str | None = None


@frozen_model(kw_only=True)
class WebhookConversion(Model):
    """apiextensions/v1 WebhookConversion."""

    client_config: WebhookClientConfig | None = None
    conversion_review_versions: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class CustomResourceConversion(Model):
    """apiextensions/v1 CustomResourceConversion."""

    strategy: str = ""
    webhook: WebhookConversion | None = None


@frozen_model(kw_only=True)
class CustomResourceDefinitionNames(Model):
    """apiextensions/v1 CustomResourceDefinitionNames."""

    categories: tuple[str, ...] = ()
    kind: str = ""
    list_kind: str | None = None
    plural: str = ""
    short_names: tuple[str, ...] = ()
    singular: str | None = None


@frozen_model(kw_only=True)
class ExternalDocumentation(Model):
    """apiextensions/v1 ExternalDocumentation."""

    description: str | None = None
    url: str | None = None


@frozen_model(kw_only=True)
class ValidationRule(Model):
    """apiextensions/v1 ValidationRule."""

    field_path: str | None = None
    message: str | None = None
    message_expression: str | None = None
    optional_old_self: bool | None = None
    reason: str | None = None
    rule: str = ""


@frozen_model(kw_only=True)
class JSONSchemaProps(Model):
    """apiextensions/v1 JSONSchemaProps."""

    _json_names: ClassVar[Mapping[str, str]] = {
        "ref": "$ref",
        "schema": "$schema",
        "x_kubernetes_embedded_resource": "x-kubernetes-embedded-resource",
        "x_kubernetes_int_or_string": "x-kubernetes-int-or-string",
        "x_kubernetes_list_map_keys": "x-kubernetes-list-map-keys",
        "x_kubernetes_list_type": "x-kubernetes-list-type",
        "x_kubernetes_map_type": "x-kubernetes-map-type",
        "x_kubernetes_preserve_unknown_fields": "x-kubernetes-preserve-unknown-fields",
        "x_kubernetes_validations": "x-kubernetes-validations",
    }

    ref: str | None = None
    schema: str | None = None
    additional_items: JSON = None
    additional_properties: JSON = None
    all_of: tuple[JSONSchemaProps, ...] = ()
    any_of: tuple[JSONSchemaProps, ...] = ()
    default: JSON = None
    definitions: Mapping[str, JSONSchemaProps] = EMPTY_MAP
    dependencies: Mapping[str, JSON] = EMPTY_MAP
    description: str | None = None
    enum: tuple[JSON, ...] = ()
    example: JSON = None
    exclusive_maximum: bool | None = None
    exclusive_minimum: bool | None = None
    external_docs: ExternalDocumentation | None = None
    format: str | None = None
    id: str | None = None
    items: JSON = None
    max_items: int | None = None
    max_length: int | None = None
    max_properties: int | None = None
    maximum: float | None = None
    min_items: int | None = None
    min_length: int | None = None
    min_properties: int | None = None
    minimum: float | None = None
    multiple_of: float | None = None
    not_: JSONSchemaProps | None = None
    nullable: bool | None = None
    one_of: tuple[JSONSchemaProps, ...] = ()
    pattern: str | None = None
    pattern_properties: Mapping[str, JSONSchemaProps] = EMPTY_MAP
    properties: Mapping[str, JSONSchemaProps] = EMPTY_MAP
    required: tuple[str, ...] = ()
    title: str | None = None
    type: str | None = None
    unique_items: bool | None = None
    x_kubernetes_embedded_resource: bool | None = None
    x_kubernetes_int_or_string: bool | None = None
    x_kubernetes_list_map_keys: tuple[str, ...] = ()
    x_kubernetes_list_type: str | None = None
    x_kubernetes_map_type: str | None = None
    x_kubernetes_preserve_unknown_fields: bool | None = None
    x_kubernetes_validations: tuple[ValidationRule, ...] = ()


@frozen_model(kw_only=True)
class CustomResourceValidation(Model):
    """apiextensions/v1 CustomResourceValidation."""

    _json_names: ClassVar[Mapping[str, str]] = {"open_api_v3_schema": "openAPIV3Schema"}

    open_api_v3_schema: JSONSchemaProps | None = None


@frozen_model(kw_only=True)
class SelectableField(Model):
    """apiextensions/v1 SelectableField."""

    json_path: str = ""


@frozen_model(kw_only=True)
class CustomResourceSubresourceScale(Model):
    """apiextensions/v1 CustomResourceSubresourceScale."""

    label_selector_path: str | None = None
    spec_replicas_path: str = ""
    status_replicas_path: str = ""


@frozen_model(kw_only=True)
class CustomResourceSubresourceStatus(Model):
    """apiextensions/v1 CustomResourceSubresourceStatus."""


@frozen_model(kw_only=True)
class CustomResourceSubresources(Model):
    """apiextensions/v1 CustomResourceSubresources."""

    scale: CustomResourceSubresourceScale | None = None
    status: CustomResourceSubresourceStatus | None = None


@frozen_model(kw_only=True)
class CustomResourceDefinitionVersion(Model):
    """apiextensions/v1 CustomResourceDefinitionVersion."""

    additional_printer_columns: tuple[CustomResourceColumnDefinition, ...] = ()
    deprecated: bool | None = None
    deprecation_warning: str | None = None
    name: str = ""
    schema: CustomResourceValidation | None = None
    selectable_fields: tuple[SelectableField, ...] = ()
    served: bool = False
    storage: bool = False
    subresources: CustomResourceSubresources | None = None


@frozen_model(kw_only=True)
class CustomResourceDefinitionSpec(Model):
    """apiextensions/v1 CustomResourceDefinitionSpec."""

    conversion: CustomResourceConversion | None = None
    group: str = ""
    names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()
    preserve_unknown_fields: bool | None = None
    scope: str = ""
    versions: tuple[CustomResourceDefinitionVersion, ...] = ()


@frozen_model(kw_only=True)
class CustomResourceDefinitionCondition(Model):
    """apiextensions/v1 CustomResourceDefinitionCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    observed_generation: int | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class CustomResourceDefinitionStatus(Model):
    """apiextensions/v1 CustomResourceDefinitionStatus."""

    accepted_names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()
    conditions: tuple[CustomResourceDefinitionCondition, ...] = ()
    observed_generation: int | None = None
    stored_versions: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class CustomResourceDefinition(KubernetesObject):
    """apiextensions/v1 CustomResourceDefinition."""

    __resource__: ClassVar[ResourceInfo] = builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition")

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()
