"""Convert schemas to Python types and to arguments for ``trioformer.crds.Schema``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

import attrs

from ._source import Call, Expression, called, listed, literal

__all__ = ["ANYTHING", "Facts", "Schema", "Type", "Uses", "facts_of_part", "is_condition", "rules_of", "type_of"]

Schema: TypeAlias = Mapping[str, Any]
"""A schema in a CustomResourceDefinition, with the API's names."""
Facts: TypeAlias = dict[str, Expression]
"""The arguments to ``trioformer.crds.Schema``."""

ANYTHING: Final = "JSON"
_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
# controller-gen's, for resource.Quantity.
_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
# trioformer.crds' own, for bytes; the format "byte" does not allow an empty string.
_BASE64: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_IMPLIED: Final = {"integer": "int64", "number": "double"}
"""The formats that trioformer.crds adds to a type without a format."""
_ARGUMENTS: Final = {
    "title": "title",
    "format": "format",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-list-map-keys": "list_map_keys",
    "x-kubernetes-map-type": "map_type",
    "nullable": "nullable",
    "x-kubernetes-embedded-resource": "embedded_resource",
}
_OF_PARTS: Final = {name: _ARGUMENTS[name] for name in ("minProperties", "maxProperties", "x-kubernetes-map-type")}
_SAID_OTHERWISE: Final = frozenset(
    {
        "additionalProperties",
        "default",
        "description",
        "items",
        "properties",
        "required",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)
_RULE: Final = {
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}
_CONDITION: Final = frozenset({"lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"})


@final
@attrs.define(eq=False)
class Uses:
    """The names that a generated module imports."""

    names: dict[str, set[str]] = attrs.field(factory=dict)
    """The imported names, by module."""

    def use(self, module: str, name: str) -> str:
        """Add an import to the module, and return the imported name."""
        self.names.setdefault(module, set()).add(name)
        return name


@final
@attrs.frozen
class Type:
    """A Python type for a schema."""

    hint: Expression
    """The type expression, without None and without constraints."""
    facts: Facts
    """The constraints on the values."""
    is_class: bool = False
    """Whether the type is a class of the module; the constraints are then in the decorator of the class."""
    is_literal: bool = False
    """Whether a JSON default can be written as a Python literal."""

    def annotated(self, uses: Uses, more: Facts | None = None) -> Expression:
        """Return the annotation for a list item or a map value, with its constraints."""
        return annotated(self.hint, {**self.facts, **(more or {})}, uses)


def annotated(hint: Expression, facts: Facts, uses: Uses) -> Expression:
    """Return an ``Annotated`` type with the constraints on its values."""
    if not facts:
        return hint
    schema = called(uses.use("trioformer.crds", "Schema"), **facts)
    return listed(uses.use("typing", "Annotated"), hint, schema)


def type_of(schema: Schema, uses: Uses, make_class: Callable[[Schema], str]) -> Type:
    """Return the Python type for a schema.

    Args:
        schema: The schema to convert.
        uses: The imports of the module, to which new names are added.
        make_class: A function that writes the class for a schema with properties, and returns the class name.
    """
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string(schema, uses)
    if kind == "array":
        return _array(schema, uses, make_class)
    if kind == "object":
        return _object(schema, uses, make_class)
    if kind not in _SCALARS:
        known = {"x-kubernetes-preserve-unknown-fields": True}
        return Type(uses.use("trioformer.models", ANYTHING), facts_of(schema, uses, implied=known))
    return _scalar(schema, kind, uses)


def _int_or_string(schema: Schema, uses: Uses) -> Type:
    implied = {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": schema.get("pattern")}
    if kind := schema.get("type"):
        facts = facts_of(schema, uses, implied={**implied, "pattern": None})
        more = facts.get("more")
        facts["more"] = Call("", (*(more.items if isinstance(more, Call) else ()), ('"type": ', literal(kind))), "{}")
        return Type("int | str", facts, is_literal=True)
    if schema.get("pattern") == _QUANTITY:
        return Type(uses.use("trioformer.models", "Quantity"), facts_of(schema, uses, implied=implied))
    del implied["pattern"]
    return Type("int | str", facts_of(schema, uses, implied=implied), is_literal=True)


def _array(schema: Schema, uses: Uses, make_class: Callable[[Schema], str]) -> Type:
    items = schema.get("items") or {}
    implied: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
    if is_condition(items):
        item: Expression = uses.use("trioformer.models.meta_v1", "Condition")
        implied = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        if "x-kubernetes-list-type" not in schema:
            implied = {}
        return Type(listed("tuple", item, "..."), facts_of(schema, uses, implied=implied))
    found = type_of(items, uses, make_class)
    more = {} if found.is_class else _description(items)
    hint = listed("tuple", found.annotated(uses, more), "...")
    return Type(hint, facts_of(schema, uses, implied=implied), is_literal=found.is_literal)


def _object(schema: Schema, uses: Uses, make_class: Callable[[Schema], str]) -> Type:
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") is True
    values = schema.get("additionalProperties")
    if schema.get("properties") or not (keeps or values):
        facts: Facts = {"nullable": "True"} if schema.get("nullable") else {}
        return Type(make_class(schema), facts, is_class=True)
    uses.use("collections.abc", "Mapping")
    implied = {"x-kubernetes-preserve-unknown-fields": True}
    if not isinstance(values, Mapping) or not values or values == implied:
        value = uses.use("trioformer.models", ANYTHING)
        return Type(listed("Mapping", "str", value), facts_of(schema, uses, implied=implied))
    found = type_of(values, uses, make_class)
    more = {} if found.is_class else _description(values)
    hint = listed("Mapping", "str", found.annotated(uses, more))
    return Type(hint, facts_of(schema, uses), is_literal=found.is_literal)


def _scalar(schema: Schema, kind: str, uses: Uses) -> Type:
    enum = [value for value in schema.get("enum") or () if value is not None]
    wanted: type[object] | None = {"string": str, "integer": int}.get(kind)
    implied: dict[str, Any] = {"format": _IMPLIED.get(kind)}
    if enum and wanted is not None and all(type(value) is wanted for value in enum):
        hint: Expression = listed(uses.use("typing", "Literal"), *map(literal, enum))
        implied = {"enum": schema["enum"]} if kind == "string" else {**implied, "enum": schema["enum"]}
        return Type(hint, facts_of(schema, uses, implied=implied), is_literal=True)
    if kind == "string" and schema.get("format") == "date-time":
        return Type(uses.use("trioformer.models", "Time"), facts_of(schema, uses, implied={"format": "date-time"}))
    if kind == "string" and (schema.get("format") == "byte" or schema.get("pattern") == _BASE64):
        return Type("bytes", facts_of(schema, uses, implied={"pattern": _BASE64}))
    return Type(_SCALARS[kind], facts_of(schema, uses, implied=implied), is_literal=True)


def is_condition(schema: Schema) -> bool:
    """Return whether a schema is the schema of ``meta/v1`` Condition."""
    properties = schema.get("properties") or {}
    return (
        properties.keys() == _CONDITION
        and {"lastTransitionTime", "status", "type"} <= {*schema.get("required", ())}
        and not schema.get("x-kubernetes-validations")
        and properties["lastTransitionTime"].get("format") == "date-time"
        and properties["status"].get("enum") == ["True", "False", "Unknown"]
    )


# --- what is said about values ----------------------------------------------------------------------------------------


def facts_of_part(schema: Schema, uses: Uses) -> Facts:
    """Return everything in a schema except its properties, as arguments to ``resource_part``."""
    return facts_of({key: value for key, value in schema.items() if key != "nullable"}, uses, arguments=_OF_PARTS)


def facts_of(
    schema: Schema, uses: Uses, *, implied: Mapping[str, Any] | None = None, arguments: Mapping[str, str] = _ARGUMENTS
) -> Facts:
    """Return everything in a schema except the type, as arguments to ``trioformer.crds.Schema``.

    Args:
        schema: The schema to convert.
        uses: The imports of the module, to which new names are added.
        implied: Members of the schema to omit, because the type already implies them.  The default is None.
        arguments: The argument name for each member of the schema. Other members are passed in ``more``.
    """
    facts: Facts = {}
    more: dict[str, Any] = {}
    for name, value in schema.items():
        if value is None or (implied is not None and name in implied and implied[name] == value):
            continue
        if name in arguments:
            if value is not False:
                facts[arguments[name]] = literal(value)
        elif name not in _SAID_OTHERWISE:
            more[name] = value
    keeps = "x-kubernetes-preserve-unknown-fields"
    if schema.get(keeps) is True and keeps not in (implied or {}):
        facts["preserve_unknown_fields"] = "True"
    if schema.get("x-kubernetes-validations"):
        facts["rules"] = rules_of(schema["x-kubernetes-validations"], uses)
    if more:
        facts["more"] = literal(more)
    return facts


def _description(schema: Schema) -> Facts:
    text = schema.get("description")
    return {"description": literal(" ".join(str(text).split()))} if text else {}


def rules_of(rules: list[Schema], uses: Uses) -> Call:
    """Return the expression for validation rules."""
    name = uses.use("trioformer.crds", "Rule")
    made = []
    for rule in rules:
        named = {_RULE[key]: literal(value) for key, value in rule.items() if key in _RULE and value is not None}
        made.append(called(name, literal(rule.get("rule", "")), **named))
    return Call("", tuple(("", one) for one in made))
