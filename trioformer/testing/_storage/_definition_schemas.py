"""The rules for the schemas of CustomResourceDefinitions, except for those of ``_structural.py``.

Source: apiextensions-apiserver ``pkg/apis/apiextensions/validation``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from ._field_errors import forbidden, invalid_value, not_supported, required
from ._storage import JSONObject
from ._structural import structural_causes

Raw: TypeAlias = Mapping[str, Any]
Causes: TypeAlias = Iterator[JSONObject]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_AT_ROOT: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern"
    " MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields"
    " XValidations"
)
"""The fields that kube-apiserver allows at the root of a schema if the status is a subresource, by their names in
Go."""
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_META_FIELDS: Final = frozenset({"metadata", "kind", "apiVersion"})
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NEWLINE: Final = re.compile(r"[\n\r]")


@attrs.frozen
class _Context:
    """The rules that a level of a schema inherits from the levels above it."""

    forbids_defaults: str | None = None
    """The reason why defaults are not allowed, or None if they are."""
    is_in_metadata: bool = False


def schema_causes(schema: Raw, path: str, *, has_status: bool) -> list[JSONObject]:
    """Validate the ``openAPIV3Schema`` of a version, and return the causes of all errors."""
    causes = list(_root_causes(schema, path)) if has_status else []
    if schema.get("nullable"):
        causes.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    causes += structural_causes(schema, path)
    causes += _level_causes(schema, path, _Context(), is_root=True)
    return causes


def _root_causes(schema: Raw, path: str) -> Causes:
    allowed = _AT_ROOT.split()
    for name, value in schema.items():
        go_name = name.removeprefix("x-kubernetes-").title().replace("-", "") if "-" in name else name
        go_name = f"X{go_name}" if "-" in name else f"{go_name[:1].upper()}{go_name[1:]}"
        if not value:
            continue
        if name == "type":
            if value != "object":
                problem = 'only "object" is allowed as the type at the root of the schema'
                yield invalid_value(f"{path}.type", value, f"{problem} if the status subresource is enabled")
                return
        elif go_name not in allowed:
            listed = f"[{' '.join(allowed)}]"
            problem = f"only {listed} fields are allowed at the root of the schema if the status subresource is enabled"
            yield invalid_value(path, dict(schema), problem)
            return


def _level_causes(schema: Raw, path: str, context: _Context, *, is_root: bool = False) -> Causes:
    yield from _standard_causes(schema, path, context)
    if schema.get("uniqueItems"):
        problem = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", problem)
    yield from _children_causes(schema, path, context, is_root=is_root)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        yield invalid_value(where, value=False, detail="must be true or undefined")
    yield from _map_type_causes(schema, path)
    yield from _list_type_causes(schema, path)
    yield from _rule_causes(schema, path)


def _standard_causes(schema: Raw, path: str, context: _Context) -> Causes:
    type_ = schema.get("type") or ""
    if type_ and type_ not in _TYPES:
        yield not_supported(f"{path}.type", type_, _TYPES)
    if schema.get("default") is not None and context.forbids_defaults is not None:
        yield forbidden(f"{path}.default", f"must not be set {context.forbids_defaults}".strip())
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if type_ == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if context.is_in_metadata and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _children_causes(schema: Raw, path: str, context: _Context, *, is_root: bool) -> Causes:
    additional, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if additional is not None:
        where = f"{path}.additionalProperties"
        if properties and additional is not True:
            yield forbidden(where, "additionalProperties and properties are mutual exclusive")
        if isinstance(additional, dict):
            reason = "inside additionalProperties applying to object metadata"
            below = attrs.evolve(context, forbids_defaults=reason) if context.is_in_metadata else context
            yield from _level_causes(additional, where, below)
    for name, one in properties.items():
        below = context
        if name in _META_FIELDS and (is_root or schema.get("x-kubernetes-embedded-resource")):
            below = attrs.evolve(context, is_in_metadata=True)
            if is_root:
                below = attrs.evolve(below, forbids_defaults=f"in top-level {name}")
        yield from _level_causes(one, f"{path}.properties[{name}]", below)
    if isinstance(schema.get("not"), dict):
        yield from _level_causes(schema["not"], f"{path}.not", context)
    for name in ("allOf", "oneOf", "anyOf"):
        for i, one in enumerate(schema.get(name) or ()):
            yield from _level_causes(one, f"{path}.{name}[{i}]", context)
    if isinstance(schema.get("items"), dict):
        yield from _level_causes(schema["items"], f"{path}.items", context)


def _map_type_causes(schema: Raw, path: str) -> Causes:
    map_type, type_ = schema.get("x-kubernetes-map-type"), schema.get("type") or ""
    if map_type is None:
        return
    if type_ != "object":
        problem = "must be object if x-kubernetes-map-type is specified"
        yield invalid_value(f"{path}.type", type_, problem) if type_ else required(f"{path}.type", problem)
    if map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _list_type_causes(schema: Raw, path: str) -> Causes:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    type_, items = schema.get("type") or "", schema.get("items")
    where = f"{path}.x-kubernetes-list-type"
    if list_type is not None and type_ != "array":
        problem = "must be array if x-kubernetes-list-type is specified"
        yield invalid_value(f"{path}.type", type_, problem) if type_ else required(f"{path}.type", problem)
    elif list_type == "set" and isinstance(items, dict):
        yield from _set_item_causes(items, f"{path}.items")
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield not_supported(where, list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        problem = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield required(where, problem) if list_type is None else invalid_value(where, list_type, problem)
    if list_type == "map":
        yield from _map_causes(items, keys, path)
    if list_type in ("set", "map") and isinstance(items, dict):
        if items.get("nullable"):
            problem = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
            yield forbidden(f"{path}.items.nullable", problem)
        if list_type == "map":
            yield from _key_causes(items, keys, f"{path}.items")


def _set_item_causes(items: Raw, path: str) -> Causes:
    problem = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        yield invalid_value(f"{path}.x-kubernetes-list-type", list_type, problem)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid_value(f"{path}.x-kubernetes-map-type", list_type, problem)


def _map_causes(items: Any, keys: list[str], path: str) -> Causes:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(where, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        problem = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid_value(f"{path}.items.type", items.get("type") or "", problem)
        return
    for i, key in enumerate(keys):
        known = (items.get("properties") or {}).get(key)
        if known is None:
            yield invalid_value(where, keys, "entries must all be names of item properties")
        elif known.get("type") in ("array", "object"):
            problem = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid_value(f"{path}.items.properties[{key}].type", items["type"], problem)
        if key in keys[:i]:
            yield invalid_value(where, keys, "must not contain duplicate entries")


def _key_causes(items: Raw, keys: list[str], path: str) -> Causes:
    for key in keys:
        known = (items.get("properties") or {}).get(key)
        if known is None:
            continue
        place = f"{path}.properties[{key}]"
        if key not in (items.get("required") or ()) and known.get("default") is None:
            problem = "so it must have a default or be a required property"
            yield required(f"{place}.default", f"this property is in x-kubernetes-list-map-keys, {problem}")
        if known.get("nullable"):
            problem = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(f"{place}.nullable", problem)


def _rule_causes(schema: Raw, path: str) -> Causes:
    """Validate CEL rules, except for their expressions."""
    for i, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{i}]"
        text, message = rule.get("rule") or "", rule.get("message") or ""
        if not text.strip():
            yield required(f"{where}.rule", "rule is not specified")
        elif message and not message.strip():
            yield invalid_value(f"{where}.message", message, "must be non-empty if specified")
        elif _NEWLINE.search(message.strip()):
            yield invalid_value(f"{where}.message", message, "must not contain line breaks")
        elif _NEWLINE.search(text.strip()) and not message.strip():
            yield required(f"{where}.message", "message must be specified if rule contains line breaks")
        if rule.get("messageExpression") and not rule["messageExpression"].strip():
            yield required(f"{where}.messageExpression", "messageExpression must be non-empty if specified")
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield not_supported(f"{where}.reason", rule["reason"], _REASONS)


def has_rules(schema: object) -> bool:
    """Return whether a schema contains CEL rules at any level."""
    if isinstance(schema, dict):
        return bool(schema.get("x-kubernetes-validations")) or any(map(has_rules, schema.values()))
    return isinstance(schema, list) and any(map(has_rules, schema))
