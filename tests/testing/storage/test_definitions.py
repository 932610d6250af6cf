"""What is wrong with a CustomResourceDefinition; e2e/contract/test_validation.py compares it with kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.errors import StatusError
from trioformer.testing import APIServer
from trioformer.testing._storage._definitions import definition_causes, deprecation_of, set_definition_defaults


def causes_of(version: dict[str, Any], **spec: Any) -> list[str]:
    whole: dict[str, Any] = {
        "metadata": {"name": "shops.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "shops", "kind": "Shop"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema(), **version}],
            **spec,
        },
    }
    set_definition_defaults(whole)
    return [f"{cause['field']}: {cause['message']}" for cause in definition_causes(whole, None)]


def schema(**more: Any) -> dict[str, Any]:
    return {"openAPIV3Schema": {"type": "object", **more}}


def of_field(**field: Any) -> dict[str, Any]:
    return {"schema": schema(properties={"field": field})}


@pytest.mark.parametrize(
    ("version", "spec", "field", "text"),
    [
        ({"storage": False}, {}, "status.storedVersions", "must have at least one stored version"),
        ({"deprecated": True, "deprecationWarning": ""}, {}, "deprecationWarning", "must not be an empty string"),
        ({"deprecated": True, "deprecationWarning": "a\x07"}, {}, "deprecationWarning", "found at index 1"),
        (of_field(type="array", items=[{"type": "string"}]), {}, "field].items", "must be a schema object"),
        ({}, {"preserveUnknownFields": True}, "spec.preserveUnknownFields", "cannot set to true"),
        ({"subresources": {"scale": {"labelSelectorPath": "a"}}}, {}, "labelSelectorPath", ""),
        (
            of_field(**{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
            {},
            "field].items",
            "must have a schema if x-kubernetes-list-type is map",
        ),
        ({}, {"conversion": {"strategy": "Magic"}}, "spec.conversion.strategy", "Unsupported value"),
        (
            {},
            {"conversion": {"strategy": "Webhook"}},
            "webhookClientConfig",
            "required when strategy is set to Webhook",
        ),
        ({}, {"conversion": {"strategy": "None", "webhook": {"a": 1}}}, "webhookClientConfig", "should not be set"),
        ({"subresources": {"scale": {"specReplicasPath": ".spec.n"}}}, {}, "statusReplicasPath", "Required value"),
        ({"subresources": {"scale": {"specReplicasPath": ".n"}}}, {}, "specReplicasPath", "json path under .spec"),
        ({"selectableFields": [{"jsonPath": ""}]}, {}, "selectableFields[0].jsonPath", "Required value"),
        ({"selectableFields": [{"jsonPath": ".spec.no"}]}, {}, "selectableFields[0].jsonPath", "a valid field"),
        (
            {"selectableFields": [{"jsonPath": "spec.a"}]},
            {},
            "selectableFields[0].jsonPath",
            "expected [ or .",
        ),
        ({"selectableFields": [{"jsonPath": ".a[0]"}]}, {}, "selectableFields[0].jsonPath", "array notation is not"),
        (
            {"selectableFields": [{"jsonPath": ".spec."}]},
            {},
            "selectableFields[0].jsonPath",
            "unexpected end of JSON",
        ),
        (of_field(type="null"), {}, "field].type", "use nullable as an alternative"),
        (
            of_field(
                **{
                    "type": "array",
                    "items": {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a"],
                }
            ),
            {},
            "properties[a]",
            "so it must have a default or be a required property",
        ),
        (of_field(**{"type": "string", "x-kubernetes-validations": [{"rule": " "}]}), {}, ".rule", "rule is not"),
        (
            of_field(**{"type": "string", "x-kubernetes-validations": [{"rule": "a", "message": " "}]}),
            {},
            ".message",
            "must be non-empty if specified",
        ),
        (
            of_field(**{"type": "string", "x-kubernetes-validations": [{"rule": "a", "message": "b\nc"}]}),
            {},
            ".message",
            "must not contain line breaks",
        ),
        (
            of_field(**{"type": "string", "x-kubernetes-validations": [{"rule": "a\nb"}]}),
            {},
            ".message",
            "message must be specified if rule contains line breaks",
        ),
        (
            of_field(**{"type": "string", "x-kubernetes-validations": [{"rule": "a", "messageExpression": " "}]}),
            {},
            ".messageExpression",
            "must be non-empty if specified",
        ),
        (
            of_field(**{"type": "string", "x-kubernetes-validations": [{"rule": "a", "reason": "Because"}]}),
            {},
            ".reason",
            "Unsupported value",
        ),
    ],
)
def test_what_is_wrong_with_a_definition_is_named(
    version: dict[str, Any], spec: dict[str, Any], field: str, text: str
) -> None:
    found = causes_of(version, **spec)
    assert [cause for cause in found if field in cause and text in cause], found


def test_a_stored_version_and_two_of_them() -> None:
    versions = [{"name": name, "served": True, "storage": True, "schema": schema()} for name in ("v1", "v2")]
    assert [cause for cause in causes_of({}, versions=versions) if "must have the storage version v2" in cause]


@pytest.mark.parametrize(("other", "use"), [("v2", "v2"), ("v2beta1", "v2beta1"), ("v1alpha1", "")])
def test_a_deprecated_version_names_a_newer_one(other: str, use: str) -> None:
    old = {"name": "v1beta1", "served": True, "deprecated": True}
    spec = {"group": "example.com", "names": {"kind": "Shop"}, "versions": [old, {"name": other, "served": True}]}
    text = deprecation_of(spec, old)
    assert text.startswith("example.com/v1beta1 Shop is deprecated")
    assert use in text


def test_selectable_fields_are_scalars_outside_of_the_metadata_and_there_once() -> None:
    fields = {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}, "part": {"type": "object"}}
    paths = [{"jsonPath": path} for path in (".metadata.name", ".part", ".part", "")]
    found = causes_of({"schema": schema(properties=fields), "selectableFields": paths})
    assert len([cause for cause in found if "selectableFields" in cause]) >= 4
    assert any("Duplicate value" in cause for cause in found)
    assert any("must not point to fields in metadata" in cause for cause in found)
    assert any("must point to a field of type string, boolean or integer" in cause for cause in found)


@pytest.mark.parametrize("policy", ["", "https://example.com/pull/1", "unapproved, it is a test"])
def test_protected_groups_need_an_approval(policy: str) -> None:
    spec = {"group": "x.k8s.io", "scope": "Cluster", "names": {"plural": "shops", "kind": "Shop"}}
    whole: dict[str, Any] = {"metadata": {"name": "shops.x.k8s.io"}, "spec": spec}
    spec["versions"] = [{"name": "v1", "served": True, "storage": True, "schema": schema()}]  # type: ignore[assignment]
    if policy:
        whole["metadata"]["annotations"] = {"api-approved.kubernetes.io": policy}
    set_definition_defaults(whole)
    is_refused = any("api-approved" in f"{cause}" for cause in definition_causes(whole, None))
    assert is_refused is (policy == "")


def test_a_schema_with_a_status_has_only_an_object_at_its_root() -> None:
    found = causes_of({"schema": {"openAPIV3Schema": {"type": "string"}}, "subresources": {"status": {}}})
    assert any('only "object" is allowed as the type at the root' in cause for cause in found)
    found = causes_of({"schema": schema(maxProperties=3, nullable=True), "subresources": {"status": {}}})
    assert found


@pytest.mark.parametrize(
    "wrong",
    [
        {"x-kubernetes-validations": [{"rule": 1}]},
        {"items": 5},
        {"enum": 5},
        {"items": {"type": 5}},
        {"additionalProperties": "a"},
        {"additionalProperties": {"properties": {"a": {"maximum": True}}}},
        {"allOf": [{"not": {"required": "a"}}]},
    ],
)
def test_a_schema_of_other_types_is_refused(wrong: dict[str, Any]) -> None:
    names = {"plural": "shops", "kind": "Shop"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema(**wrong)}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    with pytest.raises(StatusError, match="cannot unmarshal") as caught:
        APIServer().create({**head, "metadata": {"name": "shops.example.com"}, "spec": spec})
    assert caught.value.code == 400


def test_versions_of_other_forms_are_older_than_all_others() -> None:
    old = {"name": "v1alpha1", "served": True, "deprecated": True}
    other = {"name": "first", "served": True}
    spec = {"group": "example.com", "names": {"kind": "Shop"}, "versions": [old, other]}
    assert "first" not in deprecation_of(spec, old)


def test_versions_have_names_of_their_own() -> None:
    versions = [{"name": "v1", "served": True, "storage": storage, "schema": schema()} for storage in (True, False)]
    assert any("must contain unique version names" in cause for cause in causes_of({}, versions=versions))
