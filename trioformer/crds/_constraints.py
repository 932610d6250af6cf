"""Add the constraints in a :class:`Schema` to the JSON schema of a type, and check defaults against the result.

A JSON schema is a dict whose keys are the API's names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from .._suggestions import describe
from ._facts import Rule, Schema

__all__ = ["JSONSchema", "add_facts", "check_list_type", "violation"]

JSONSchema: TypeAlias = dict[str, Any]
"""A schema as JSON."""

Fail: TypeAlias = Callable[[str], Exception]
"""A function that returns an error for the field that has the schema."""

_MAX_INT64: Final = 2**63 - 1
_NUMBERS = ("integer", "number")
# The API's names of the constraints, and the types of values that they apply to.
_FACTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "title": ("title", ()),
    "format": ("format", ("string", *_NUMBERS)),
    "pattern": ("pattern", ("string",)),
    "minimum": ("minimum", _NUMBERS),
    "maximum": ("maximum", _NUMBERS),
    "exclusive_minimum": ("exclusiveMinimum", _NUMBERS),
    "exclusive_maximum": ("exclusiveMaximum", _NUMBERS),
    "multiple_of": ("multipleOf", _NUMBERS),
    "min_length": ("minLength", ("string",)),
    "max_length": ("maxLength", ("string",)),
    "min_items": ("minItems", ("array",)),
    "max_items": ("maxItems", ("array",)),
    "min_properties": ("minProperties", ("object",)),
    "max_properties": ("maxProperties", ("object",)),
    "list_type": ("x-kubernetes-list-type", ("array",)),
    "map_type": ("x-kubernetes-map-type", ("object",)),
    "nullable": ("nullable", ()),
    "preserve_unknown_fields": ("x-kubernetes-preserve-unknown-fields", ("object",)),
    "embedded_resource": ("x-kubernetes-embedded-resource", ("object",)),
}
_RANGES: Final = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))
_WORDS: Final = {"string": "strings", "array": "lists", "object": "objects and maps", "integer": "numbers"}
# RE2 has neither look-around nor references to groups, since both need backtracking.
_NOT_RE2: Final = re.compile(r"\(\?<?[=!]|\\[1-9]|\(\?P=")


def add_facts(schema: JSONSchema, facts: Schema, fail: Fail) -> None:
    """Add constraints to a JSON schema.

    Args:
        schema: The JSON schema of the value's type, which is changed in place.
        facts: The constraints to add.
        fail: A function that returns an error for the field.
    """
    kind = schema.get("type")
    for name, (member, kinds) in _FACTS.items():
        value = getattr(facts, name)
        if value is None:
            continue
        if kinds and kind is not None and kind not in kinds:
            raise fail(f"{name} applies to {_WORDS[kinds[0]]}, but the type of the field is {kind}")
        schema[member] = value
    if facts.pattern is not None:
        _check_pattern(facts.pattern, fail)
    for least, greatest in _RANGES:
        if least in schema and greatest in schema and schema[least] > schema[greatest]:
            raise fail(f"{least} is {schema[least]}, which is greater than {greatest}, {schema[greatest]}")
    if facts.list_type not in (None, "map"):
        schema.pop("x-kubernetes-list-map-keys", None)
    if facts.list_map_keys:
        schema["x-kubernetes-list-map-keys"] = [*facts.list_map_keys]
    if facts.rules:
        schema["x-kubernetes-validations"] = [
            *schema.get("x-kubernetes-validations", ()),
            *(_rule(rule, fail) for rule in facts.rules),
        ]
    if facts.description is not None:
        schema["description"] = facts.description
    schema.update(facts.more)


def merged(*facts: Schema) -> Schema:
    """Combine several :class:`Schema` objects into one; later values replace earlier ones."""
    changes: dict[str, Any] = {}
    for each in facts:
        changes |= {
            name: value for name, value in attrs.asdict(each, recurse=False).items() if value not in (None, (), {})
        }
    return Schema(**changes)


def _rule(rule: object, fail: Fail) -> JSONSchema:
    if not isinstance(rule, Rule):
        raise fail(f"a rule must be a Rule, not {describe(rule)}; write Rule(…)")
    return rule.to_json()


def _check_pattern(pattern: str, fail: Fail) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise fail(f"the pattern {pattern!r} is not a regular expression: {error}") from error
    if found := _NOT_RE2.search(pattern):
        raise fail(
            f"the pattern {pattern!r} has {found[0]!r}, which the server's regular expressions (RE2) do not support"
        )


def check_list_type(schema: JSONSchema, fail: Fail) -> None:
    """Check that the items of a list have the values that the list type uses to distinguish them."""
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", ())
    items: JSONSchema = schema.get("items", {})
    if list_type == "map":
        if not keys:
            raise fail("a list of type map requires list_map_keys")
        if items.get("type") != "object" or "properties" not in items:
            raise fail("the items of a list of type map must be objects")
        for key in keys:
            found = items["properties"].get(key)
            if found is None:
                raise fail(f"list_map_keys has {key!r}, but its items have only {', '.join(items['properties'])}")
            if found.get("type") not in ("string", "boolean", *_NUMBERS):
                raise fail(f"list_map_keys has {key!r}, which is not a scalar")
            if key not in items.get("required", ()) and "default" not in found:
                raise fail(f"list_map_keys has {key!r}, which must be required or have a default that is not None")
    elif keys:
        raise fail("list_map_keys are for lists of type map; add list_type='map'")
    elif list_type == "set":
        is_atomic = "atomic" in (items.get("x-kubernetes-list-type"), items.get("x-kubernetes-map-type"))
        if items.get("type") in ("object", "array") and not is_atomic:
            raise fail("the items of a list of type set must be scalars, or atomic lists or objects")


# --- defaults ---------------------------------------------------------------------------------------------------------


def violation(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return the reason that a value does not match a schema, or None if it matches.

    Formats and validation rules are checked only by the server, not here.
    """
    return next(_violations(schema, value), None)


def _violations(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{value!r} is not one of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, str):
        yield from _in_range(len(value), schema, "Length", "characters")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{value!r} does not match the pattern {schema['pattern']!r}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_violations(schema, value)
    elif isinstance(value, list):
        yield from _in_range(len(value), schema, "Items", "items")
        for item in value:
            yield from _violations(schema.get("items", {}), item)
    elif isinstance(value, dict):
        yield from _in_range(len(value), schema, "Properties", "members")
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value and "default" not in properties.get(name, {}):
                yield f"it has no {name!r}, which is required"
        for name, member in value.items():
            yield from _violations(properties.get(name, schema.get("additionalProperties", {})), member)


def _in_range(size: int, schema: Mapping[str, Any], what: str, word: str) -> Iterator[str]:
    if size < schema.get(f"min{what}", 0):
        yield f"it has {size} {word}, and at least {schema[f'min{what}']} are required"
    if size > schema.get(f"max{what}", size):
        yield f"it has {size} {word}, and at most {schema[f'max{what}']} are allowed"


def _number_violations(schema: Mapping[str, Any], value: float) -> Iterator[str]:
    if isinstance(value, int) and abs(value) > _MAX_INT64:
        yield f"{value} needs more than 64 bits"
    least, greatest = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        yield f"{value} is less than {least} allows" if value == least else f"{value} is less than {least}"
    if greatest is not None and (value > greatest or (value == greatest and schema.get("exclusiveMaximum"))):
        yield (
            f"{value} is greater than {greatest} allows" if value == greatest else f"{value} is greater than {greatest}"
        )
