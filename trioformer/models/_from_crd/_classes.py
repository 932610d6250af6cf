"""Write the classes for one version of a kind and for its nested objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import attrs

from .._meta import KubernetesObject
from ._defaults import default_of, empty_default, is_empty
from ._names import class_name, field_names, json_names, unused
from ._source import Call, Expression, Union, assigned, called, decorated, docstring, literal
from ._types import Facts, Schema, Uses, annotated, facts_of_part, rules_of, type_of

__all__ = ["Module", "write_version"]

_INDENT: Final = "    "
_OF_OBJECTS: Final = frozenset(name for name in dir(KubernetesObject) if not name.startswith("_"))
_OF_KIND: Final = ("apiVersion", "kind", "metadata")


@final
@attrs.define(eq=False)
class Module:
    """The generated module, while it is being written."""

    uses: Uses = attrs.field(factory=Uses)
    """The names that the module imports."""
    taken: set[str] = attrs.field(factory=set)
    """The names of the module's classes, and all names that the module may import."""
    classes: list[str] = attrs.field(factory=list)
    """The source of each class; a class comes after the classes that its fields use."""
    notes: list[str] = attrs.field(factory=list)
    """Notes on the parts of the definitions that the classes do not express."""


@final
@attrs.frozen
class _Parts:
    """A writer for the classes of the nested objects in one version."""

    module: Module
    kind: str
    """The name of the kind's class, which is the prefix of all other class names."""
    has_status: bool
    """Whether the status is a subresource, for which the server sets a default only if the schema has one."""
    top: frozenset[str]
    """The names of the kind's top-level fields, which the names of nested classes begin with."""
    can_be_made: dict[str, bool] = attrs.field(factory=dict, init=False)
    """For each class, whether all its fields are optional."""

    def write(self, schema: Schema, path: tuple[str, ...]) -> str:
        """Write the classes for a schema with properties and for its nested objects; return the schema's class name."""
        short = path[1:] if path[0] == "spec" and path[1:2] and path[1] not in self.top else path
        name = unused(class_name(self.kind, *short), self.module.taken)
        lines = self.fields(schema, path, name, frozenset())
        uses = self.module.uses
        facts = facts_of_part(schema, uses)
        part = uses.use("trioformer.crds", "resource_part")
        head = [decorated(called(part, **facts)), f"class {name}({uses.use('trioformer.models', 'Model')}):"]
        self.module.classes.append("\n".join([*head, *(_body(schema, lines))]))
        return name

    def fields(
        self, schema: Schema, path: tuple[str, ...], name: str, reserved: frozenset[str], skipped: tuple[str, ...] = ()
    ) -> list[str]:
        """Return the source lines of a class's fields, and write the classes that the fields use."""
        properties: Mapping[str, Schema] = {
            key: value for key, value in (schema.get("properties") or {}).items() if key not in skipped
        }
        required = {*(schema.get("required") or ())}
        names = field_names(properties, reserved)
        lines: list[str] = []
        if other := json_names(names):
            self.module.uses.use("typing", "ClassVar")
            self.module.uses.use("collections.abc", "Mapping")
            lines += [assigned(_INDENT, "_json_names", "ClassVar[Mapping[str, str]]", literal(other)), ""]
        self.can_be_made[name] = True
        for key, ours in names.items():
            annotation, default, is_class = self._field(properties[key], (*path, key), is_required=key in required)
            self.can_be_made[name] &= default is not None
            lines.append(assigned(_INDENT, ours, annotation, default))
            text = properties[key].get("description")
            if text and not is_class and str(text).strip():
                lines += docstring(str(text), _INDENT)
        return lines

    def _is_not_filled(self, path: tuple[str, ...]) -> bool:
        return self.has_status and path[0] == "status"

    def _field(
        self, schema: Schema, path: tuple[str, ...], *, is_required: bool
    ) -> tuple[Expression, Expression | None, bool]:
        """Return a field's annotation and default, and whether its type is a class in the module."""
        uses = self.module.uses
        found = type_of(schema, uses, lambda part: self.write(part, path))
        facts: Facts = dict(found.facts)
        hint, default = found.hint, None
        if "default" in schema:
            can_be_made = found.is_class and self.can_be_made[str(found.hint)]
            default = default_of(schema, found, uses, can_be_made=can_be_made)
            if default is None:
                facts["more"] = _with_default(facts.get("more"), schema["default"])
            elif is_required or self._is_not_filled(path) or (is_empty(default) and not _has_defaults(schema)):
                facts["server_default"] = "True"
            if is_required:
                facts["required"] = "True"
        if default is None and (not is_required or "default" in schema):
            default = empty_default(schema, found, uses)
            if default is None:
                hint, default = _or_none(hint), "None"
        elif default is None and schema.get("nullable") and hint != "JSON":
            hint = _or_none(hint)
            facts["required"] = "True"
        return annotated(hint, facts, uses), default, found.is_class


def _or_none(hint: Expression) -> Expression:
    return hint if hint == "JSON" else Union(hint)


def _with_default(more: Expression | None, value: Any) -> Expression:
    pair = ('"default": ', literal(value))
    return Call("", (*(more.items if isinstance(more, Call) else ()), pair), "{}")


def _has_defaults(schema: Schema) -> bool:
    return any("default" in each for each in (schema.get("properties") or {}).values())


def _body(schema: Schema, lines: list[str]) -> list[str]:
    text = str(schema.get("description") or "")
    found = docstring(text, _INDENT) if text.strip() else []
    if found and lines:
        found.append("")
    while lines and not lines[-1]:
        lines.pop()
    return [*found, *lines] or [f"{_INDENT}pass"]


def write_version(
    module: Module, names: Mapping[str, Any], version: Mapping[str, Any], spec: Mapping[str, Any], *, is_only: bool
) -> str:
    """Write the classes for one version of a kind, and return the name of the kind's class.

    Args:
        module: The module to write to.
        names: The ``names`` of the definition, such as the plural and the short names.
        version: The entry in the ``versions`` of the definition.
        spec: The ``spec`` of the definition.
        is_only: Whether this is the only version that is written.
    """
    kind, name = str(names["kind"]), str(version["name"])
    is_stored = version.get("storage") is True
    base = class_name(kind) if is_only or is_stored else class_name(kind, name)
    own = unused(base if base not in module.taken else f"{base}Object", module.taken)
    where = f"{names['plural']}.{spec['group']} {name}"
    schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    top = frozenset(schema.get("properties") or ())
    parts = _Parts(module, own, "status" in (version.get("subresources") or {}), top)
    lines = parts.fields(schema, (), own, _OF_OBJECTS, _OF_KIND)
    properties = schema.get("properties") or {}
    if {*(properties.get("metadata") or ())} - {"type", "description"}:
        module.notes.append(f"{where}: the schema of metadata")
    arguments = _decorator(module, names, version, spec, schema, own, is_only=is_only)
    decorator = called(module.uses.use("trioformer.crds", "custom_resource"), literal(f"{spec['group']}/{name}"))
    decorator = attrs.evolve(decorator, items=(*decorator.items, *((f"{key}=", one) for key, one in arguments.items())))
    head = [decorated(decorator), f"class {own}({module.uses.use('trioformer.models', 'KubernetesObject')}):"]
    module.classes.append("\n".join([*head, *_body(schema, lines)]))
    return own


def _decorator(
    module: Module,
    names: Mapping[str, Any],
    version: Mapping[str, Any],
    spec: Mapping[str, Any],
    schema: Schema,
    own: str,
    *,
    is_only: bool,
) -> dict[str, Expression]:
    """Return the arguments of the decorator on a kind's class."""
    kind, subresources = str(names["kind"]), version.get("subresources") or {}
    has_field = "status" in (schema.get("properties") or {})
    has_status = "status" in subresources
    found: dict[str, Expression | None] = {
        "kind": literal(kind) if kind != own else None,
        "plural": literal(names["plural"]),
        "singular": literal(names["singular"]) if names.get("singular", kind.lower()) != kind.lower() else None,
        "namespaced": "False" if spec.get("scope") == "Cluster" else None,
        "short_names": literal(names.get("shortNames") or ()) if names.get("shortNames") else None,
        "categories": literal(names.get("categories")) if names.get("categories") else None,
        "status": str(has_status) if has_status != has_field else None,
        "scale": _scale(subresources["scale"], module.uses) if "scale" in subresources else None,
        "printer_columns": _columns(version.get("additionalPrinterColumns") or (), module.uses),
        "selectable_fields": _selectable(version.get("selectableFields") or ()),
        "rules": rules_of(schema["x-kubernetes-validations"], module.uses)
        if schema.get("x-kubernetes-validations")
        else None,
        "stored": None if is_only else str(version.get("storage") is True),
        "served": "False" if version.get("served") is False else None,
        "deprecated": _deprecation(version),
        "preserve_unknown_fields": "True" if schema.get("x-kubernetes-preserve-unknown-fields") else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _deprecation(version: Mapping[str, Any]) -> Expression | None:
    if not version.get("deprecated"):
        return None
    warning = version.get("deprecationWarning")
    return literal(warning) if warning else "True"


def _scale(scale: Mapping[str, Any], uses: Uses) -> Call:
    members = {
        "spec_replicas": ("specReplicasPath", ".spec.replicas"),
        "status_replicas": ("statusReplicasPath", ".status.replicas"),
        "label_selector": ("labelSelectorPath", None),
    }
    given = {ours: scale[theirs] for ours, (theirs, usual) in members.items() if scale.get(theirs, usual) != usual}
    named = {ours: literal(path) for ours, path in given.items()}
    return called(uses.use("trioformer.crds", "ScaleSubresource"), **named)


def _columns(columns: Any, uses: Uses) -> Expression | None:
    if not columns:
        return None
    name, made = uses.use("trioformer.crds", "PrinterColumn"), []
    for column in columns:
        members = ("type", "format", "description", "priority")
        named = {key: literal(column[key]) for key in members if column.get(key)}
        made.append(called(name, literal(column["name"]), literal(column["jsonPath"]), **named))
    return Call("", tuple(("", one) for one in made))


def _selectable(fields: Any) -> Expression | None:
    return literal([one["jsonPath"] for one in fields]) if fields else None
