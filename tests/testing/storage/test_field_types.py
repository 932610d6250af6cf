"""The types of fields: the table of built-in kinds is whole, and schemas say how custom kinds are merged."""

from __future__ import annotations

from typing import Any

from trioformer.testing._storage._field_types import (
    DEDUCED,
    MISSING,
    FieldType,
    builtin_type,
    coded_type,
    custom_type,
    named_type,
)
from trioformer.testing._storage._kinds import Kinds
from trioformer.testing._storage._release import INSTALLED


def test_every_served_kind_has_a_type_and_every_part_of_it_too() -> None:
    pending = [
        builtin_type(INSTALLED, served.info.api_version, served.info.kind)
        for served in Kinds.builtin()
        if served.is_stored
    ]
    assert None not in pending
    seen: set[int] = set()
    while pending:
        of = pending.pop()
        if of is None or id(of) in seen:
            continue
        seen.add(id(of))
        if of.map is not None:
            pending += [field.type for field in of.map.fields.values()]
            pending.append(of.map.element)
        if of.items is not None:
            assert bool(of.items.keys) <= (not of.items.is_atomic)
            pending.append(of.items.item)
    assert len(seen) > 500


def test_lists_have_keys_for_apply_and_another_for_strategic_patches() -> None:
    container = named_type(INSTALLED, "core.v1.Container").map
    assert container is not None
    ports = container.fields["ports"].type.items
    assert ports is not None
    assert (ports.keys, ports.patch_key, ports.is_atomic) == (("containerPort", "protocol"), "containerPort", False)
    port = ports.item.map
    assert port is not None
    assert (port.fields["protocol"].default, port.fields["hostPort"].default) == ("TCP", MISSING)
    finalizers = coded_type(INSTALLED, "[*]s").items
    assert finalizers is not None
    assert (finalizers.keys, finalizers.patch_key, finalizers.is_atomic) == ((), "", False)
    replaced = coded_type(INSTALLED, "[]s").items
    assert replaced is not None
    assert (replaced.patch_key, replaced.is_atomic) == (None, True)


def test_structs_that_go_always_encodes_are_implied() -> None:
    spec = named_type(INSTALLED, "core.v1.PodSpec").map
    template = named_type(INSTALLED, "core.v1.PodTemplateSpec").map
    assert spec is not None
    assert template is not None
    assert (spec.implied, template.implied) == ({"containers": None}, {"metadata": {}, "spec": {}})


def member(of: FieldType, *path: str) -> FieldType:
    for name in path:
        assert of.map is not None
        of = of.map.member(name)
    return of


def test_a_schema_says_how_its_fields_are_merged() -> None:
    text = {"type": "string"}
    item = {"type": "object", "properties": {"name": text, "kind": text | {"default": "a"}}}
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "kind"]}
    properties: dict[str, Any] = {
        "items": {"type": "array", "items": item, **keys},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
        "atomic": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
    }
    of = custom_type({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    items = member(of, "spec", "items").items
    assert items is not None
    assert items.keys == ("name", "kind")
    assert member(of, "spec", "free", "x") is DEDUCED
    assert member(of, "spec", "either").scalar == "untyped"
    assert member(of, "spec", "pod", "metadata") is named_type(INSTALLED, "meta.v1.ObjectMeta")
    atomic = member(of, "spec", "atomic").map
    assert atomic is not None
    assert atomic.is_atomic
    spec = member(of, "spec").map
    assert spec is not None
    assert spec.element is None
