"""The validation of schemas. As in kube-apiserver, a schema must be structural and must have valid defaults.

A structural schema defines the type of each field outside ``allOf``, ``anyOf``, ``oneOf`` and ``not``.
So the set of known fields does not depend on the values in an object, and unknown fields can be removed.

Source: ``validation.go``, ``complete.go`` and ``defaulting`` in apiextensions-apiserver ``pkg/apiserver/schema``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from ._custom_objects import embedded_causes
from ._field_errors import forbidden, invalid_value, required
from ._metadata import json_equal
from ._patterns import go_problem
from ._schema_validation import validate
from ._schemas import parse_schema, prune
from ._storage import JSONObject

Level: TypeAlias = Literal["root", "item", "field"]
Raw: TypeAlias = Mapping[str, Any]
Causes: TypeAlias = Iterator[JSONObject]

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_WITHOUT_TYPE: Final[Mapping[Level, str]] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_X: Final = "x-kubernetes"
_FORBIDDEN_IN_CLAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "empty": ("type", "title", "description", f"{_X}-list-map-keys", f"{_X}-validations"),
    "false": ("nullable", f"{_X}-preserve-unknown-fields", f"{_X}-embedded-resource", f"{_X}-int-or-string"),
    "undefined": ("additionalProperties", "default", f"{_X}-list-type", f"{_X}-map-type"),
}
"""The fields that must not be set in clauses, by what they must be there."""


def structural_causes(schema: Raw, path: str) -> list[JSONObject]:
    """Return the reasons why a schema is not structural, or why its defaults are not valid, sorted by path."""
    causes = [*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)]
    if causes:
        return sorted(causes, key=lambda one: f"{one['field']}: {one['message']}")
    return list(_default_causes(schema, path, is_root=True, in_metadata=False))


# --- invariants -------------------------------------------------------------------------------------------------------


def _invariants(schema: Raw, level: Level, path: str) -> Causes:
    type_, items = schema.get("type") or "", schema.get("items")
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    if type_ == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, "item", f"{path}.items")
    for name, one in properties.items():
        yield from _invariants(one, "field", f"{path}.properties[{name}]")
    if additional is not None:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, dict):
            yield from _invariants(additional, "field", f"{path}.additionalProperties")
    yield from _extensions(schema, path)
    yield from _clauses(schema, path)
    yield from _type_causes(schema, level, path)
    if level == "root" or schema.get("x-kubernetes-embedded-resource"):
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                where = f"{path}.properties[{name}].type"
                yield invalid_value(where, properties[name].get("type") or "", "must be string")
    if "metadata" in properties:
        yield from _metadata_causes(properties["metadata"], level, schema, f"{path}.properties[metadata]")
    is_empty = not (schema.get("x-kubernetes-preserve-unknown-fields") or properties)
    if schema.get("x-kubernetes-embedded-resource") and is_empty:
        problem = "if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", f"must not be empty {problem}")


def _extensions(schema: Raw, path: str) -> Causes:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                problem = "must be false if x-kubernetes-int-or-string is true"
                yield invalid_value(f"{path}.{name}", value=True, detail=problem)


def _type_causes(schema: Raw, level: Level, path: str) -> Causes:
    type_, where = schema.get("type") or "", f"{path}.type"
    is_embedded = schema.get("x-kubernetes-embedded-resource")
    if is_embedded and type_ != "object":
        problem = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid_value(where, type_, problem) if type_ else required(where, problem)
    elif not (type_ or schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")):
        yield required(where, _WITHOUT_TYPE[level])
    if is_embedded and schema.get("additionalProperties") is not None:
        problem = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", problem)
    if level == "root" and type_ not in ("", "object"):
        yield invalid_value(where, type_, "must be object at the root")


def _metadata_causes(metadata: Raw, level: Level, parent: Raw, path: str) -> Causes:
    if level == "root" or parent.get("x-kubernetes-embedded-resource"):
        type_ = metadata.get("type") or ""
        if type_ != "object":
            yield invalid_value(f"{path}.type", type_, "must be object")
    if level == "root":
        names = set(metadata.get("properties") or ())
        rest = {key: one for key, one in metadata.items() if one and key not in ("type", "default", "properties")}
        if rest or not names <= {"name", "generateName"}:
            problem = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(path, problem)


# --- clauses ----------------------------------------------------------------------------------------------------------


def _clauses(schema: Raw, path: str, *, skip_any_of: bool | None = None) -> Causes:
    skip_first = False
    if skip_any_of is None:
        skip_any_of = schema.get("anyOf") == _INT_OR_STRING
        skip_first = any(one.get("anyOf") == _INT_OR_STRING for one in (schema.get("allOf") or [])[:1])
    for name in ("anyOf", "allOf", "oneOf"):
        if name == "anyOf" and skip_any_of:
            continue
        for i, one in enumerate(schema.get(name) or ()):
            skip = name == "allOf" and i == 0 and skip_first
            yield from _clause(one, f"{path}.{name}[{i}]", skip_any_of=skip)
    if schema.get("not") is not None:
        yield from _clause(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern and (problem := go_problem(pattern)):
        text = f"must be a valid regular expression, but isn't: {problem}"
        yield invalid_value(f"{path}.pattern", pattern, text)


def _clause(schema: Raw, path: str, *, skip_any_of: bool = False) -> Causes:
    yield from _clauses(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), dict):
        yield from _clause(schema["items"], f"{path}.items")
    properties = schema.get("properties") or {}
    for name, one in properties.items():
        yield from _clause(one, f"{path}.properties[{name}]")
    for wanted, names in _FORBIDDEN_IN_CLAUSES.items():
        for name in names:
            value = schema.get(name)
            if value or (value is not None and wanted == "undefined" and name != "additionalProperties"):
                yield forbidden(f"{path}.{name}", f"must be {wanted} to be structural")
    if "metadata" in properties:
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(clause: Raw, schema: Raw | None, where: str, path: str) -> Causes:
    """Yield an error for each field that is defined in a clause such as ``anyOf`` but not in the schema itself."""
    for name in ("not", "allOf", "anyOf", "oneOf"):
        value = clause.get(name)
        for i, one in enumerate(value if isinstance(value, list) else () if value is None else (value,)):
            index = "" if name == "not" else f"[{i}]"
            yield from _clause_completeness(one, schema, where, f"{path}.{name}{index}")


def _clause_completeness(clause: Raw, schema: Raw | None, where: str, path: str) -> Causes:
    if schema is None:
        yield required(where, f"because it is defined in {path}")
        return
    yield from _completeness(clause, schema, where, path)
    if isinstance(clause.get("items"), dict):
        yield from _clause_completeness(clause["items"], schema.get("items"), f"{where}.items", f"{path}.items")
    for name, one in (clause.get("properties") or {}).items():
        known = (schema.get("properties") or {}).get(name)
        place = f".properties[{name}]"
        yield from _clause_completeness(one, known, where + place, path + place)


# --- defaults ---------------------------------------------------------------------------------------------------------


def _default_causes(schema: Raw, path: str, *, is_root: bool, in_metadata: bool) -> Causes:
    is_embedded = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    in_metadata = in_metadata and not is_embedded
    default, where = schema.get("default"), f"{path}.default"
    if default is not None:
        parsed = parse_schema(schema)
        pruned = copy.deepcopy(default)
        prune(pruned, parsed, lambda _: None)
        if not in_metadata and not json_equal(pruned, default):
            yield invalid_value(where, default, "must not have unknown fields")
        if causes := list(embedded_causes(default, parsed, where)):
            yield from causes
        else:
            yield from validate(default, parsed, prefix=where)
    if isinstance(schema.get("items"), dict):
        yield from _default_causes(schema["items"], f"{path}.items", is_root=False, in_metadata=in_metadata)
    for name, one in (schema.get("properties") or {}).items():
        inside = in_metadata or (is_embedded and name in ("metadata", "apiVersion", "kind"))
        yield from _default_causes(one, f"{path}.properties[{name}]", is_root=False, in_metadata=inside)
