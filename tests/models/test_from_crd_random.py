"""Random structural schemas: their classes are valid Python, and say the same as the schema."""

from __future__ import annotations

import ast
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_from_crd import again, definition, module_of, normalized, schema_in
from trioformer.models import from_dict, to_dict
from trioformer.models._from_crd import generate

NAMES = st.one_of(
    st.sampled_from(
        [
            "from",
            "class",
            "None",
            "int",
            "str",
            "self",
            "name",
            "metadata",
            "spec",
            "status",
            "kind",
            "podIPs",
            "pod_ips",
        ]
    ),
    st.sampled_from(["x-y", "x_y", "xY", "_x", "__x", "3d", "$ref", "a.b/c", "é", "JSON", "Time", "origin", "_origin"]),
    st.text("abcXYZ019_-./ ", min_size=1, max_size=12),
)
TEXTS = st.text("ab \"'\\\n\té🦑{}", max_size=20)


def with_facts(schema: st.SearchStrategy[dict[str, Any]], **facts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    more = st.fixed_dictionaries({}, optional=facts)
    return st.builds(lambda one, two: {**one, **two}, schema, more)


STRINGS = with_facts(
    st.just({"type": "string"}),
    default=TEXTS,
    maxLength=st.integers(20, 99),
    nullable=st.just(True),
    title=TEXTS.filter(bool),
)
ENUMS = st.lists(TEXTS, min_size=1, max_size=9, unique=True).map(
    lambda values: {"type": "string", "enum": values, "default": values[-1]}
)
NUMBERS = with_facts(
    st.just({"type": "integer", "format": "int32"}), default=st.integers(0, 9), minimum=st.integers(-9, 0)
)
BOOLEANS = with_facts(st.just({"type": "boolean"}), default=st.booleans())
FREE = st.sampled_from(
    [
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "string", "format": "date-time"},
        {"type": "object"},
    ]
)
RULES = st.lists(st.builds(lambda text: {"rule": f"self == {text!r}", "message": "no"}, TEXTS), min_size=1, max_size=2)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = with_facts(
        inner.map(lambda one: {"type": "array", "items": without_default(one)}), maxItems=st.integers(1, 9)
    )
    maps = inner.map(lambda one: {"type": "object", "additionalProperties": without_default(one)})
    return st.one_of(lists, maps, objects(inner))


def without_default(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "default"}


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def made(properties: dict[str, Any], required: set[int], more: dict[str, Any]) -> dict[str, Any]:
        names = [name for number, name in enumerate(properties) if number in required]
        given = {"required": sorted(names)} if names else {}
        return {"type": "object", "properties": properties, **given, **more}

    return st.builds(
        made,
        st.dictionaries(NAMES, inner, min_size=1, max_size=4),
        st.sets(st.integers(0, 3)),
        st.fixed_dictionaries({}, optional={"x-kubernetes-validations": RULES, "maxProperties": st.integers(9, 12)}),
    )


SCHEMAS = st.recursive(st.one_of(STRINGS, ENUMS, NUMBERS, BOOLEANS, FREE), containers, max_leaves=12)


def made_objects(value: Any, holder: str = "") -> Any:
    """A schema without what its classes cannot say: maps of anything have no other values."""
    if isinstance(value, list):
        return [made_objects(one) for one in value]
    if not isinstance(value, dict):
        return value
    members = {key: made_objects(one, key) for key, one in value.items()}
    if holder != "properties" and members.get("additionalProperties") == {"x-kubernetes-preserve-unknown-fields": True}:
        members.pop("additionalProperties")
        members["x-kubernetes-preserve-unknown-fields"] = True
    return members


@settings(max_examples=50, deadline=None)
@given(objects(SCHEMAS))
def test_the_classes_of_a_random_schema_say_the_same(spec: dict[str, Any]) -> None:
    generated = generate([definition({"properties": {"spec": spec}})])
    ast.parse(generated.text)
    (found,) = again(generated)
    back = schema_in(found)["properties"]["spec"]
    assert made_objects(normalized(back)) == made_objects(normalized(json.loads(json.dumps(spec))))
    cls = getattr(module_of(generated), generated.kinds[0])
    plain = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"odd": [1]}}
    assert to_dict(from_dict(cls, plain)) == plain
