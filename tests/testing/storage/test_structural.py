"""Schemas that are not structural, with kube-apiserver's texts; the contract tests compare them with a real server."""

from __future__ import annotations

from typing import Any

from trioformer.testing._storage._structural import structural_causes


def texts(schema: dict[str, Any]) -> list[str]:
    return [f"{each['field']}: {each['message']}" for each in structural_causes(schema, "s")]


def test_what_a_clause_says_of_items_and_below_is_missing_too() -> None:
    schema = {
        "type": "object",
        "properties": {"ports": {"type": "array", "items": {"type": "object", "properties": {}}}},
        "not": {"properties": {"ports": {"items": {"properties": {"name": {"pattern": "x"}}}}}},
    }
    (found,) = texts(schema)
    place = "properties[ports].items.properties[name]"
    assert found.startswith(f"s.{place}: Required value")
    assert found.endswith(f"because it is defined in s.not.{place}")


def test_an_embedded_resource_is_an_object_without_other_fields() -> None:
    embedded = {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    schema = {
        "type": "object",
        "properties": {
            "a": {**embedded},
            "b": {**embedded, "type": "string"},
            "c": {**embedded, "type": "object", "additionalProperties": {"type": "string"}},
        },
    }
    assert [text.partition(":")[0] for text in texts(schema)] == [
        "s.properties[a].type",
        "s.properties[b].type",
        "s.properties[c].additionalProperties",
    ]
