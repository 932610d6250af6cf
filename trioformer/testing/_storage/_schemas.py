"""Structural schemas of custom kinds, and the pruning and defaulting of objects before validation.

When kube-apiserver decodes an object, it removes the fields that are not in the schema.  Then kube-apiserver removes
nulls that are neither allowed nor replaced by a default, and sets the defaults.

Source: ``convert.go``, ``pruning`` and ``defaulting`` in apiextensions-apiserver ``pkg/apiserver/schema``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final

import attrs

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
"""The fields that every object may have, even if the schema does not contain them."""

OnUnknown: TypeAlias = Callable[[str], None]
"""A function that is called with the path of each removed field."""


@final
@attrs.frozen(eq=False)
class Schema:
    """A parsed level of a schema.  :attr:`raw` contains the rules for values."""

    raw: Mapping[str, Any]
    """The schema as it was written."""
    properties: Mapping[str, Schema]
    """The known fields."""
    additional: Schema | bool | None
    """The schema of all other fields.  A bool allows them without a schema, and None means that they are unknown."""
    items: Schema | None
    """The schema of the items of a list."""
    preserves_unknown: bool
    """Whether unknown fields are kept in this level and the levels below, down to a property whose schema does not
    preserve them."""
    is_embedded: bool
    """Whether the value is an embedded object, which has its own kind and metadata."""
    is_nullable: bool
    """Whether null is a valid value.  Otherwise, null means that the field is missing."""
    types: tuple[str, ...]
    """The allowed types: one type, two types for an integer or string, or none if the type is not restricted."""
    clauses: Mapping[str, tuple[Schema, ...]]
    """The schemas of ``allOf``, ``anyOf``, ``oneOf`` and ``not``."""

    @property
    def default(self) -> Any:
        """A new copy of the default value, or None if there is no default."""
        return copy.deepcopy(self.raw.get("default"))

    @property
    def has_default(self) -> bool:
        """Whether the schema has a default that is not null."""
        return self.raw.get("default") is not None

    @property
    def values(self) -> Schema | None:
        """The schema for the values of a map, or None if there is none."""
        return self.additional if isinstance(self.additional, Schema) else None

    def child(self, name: str) -> Schema | None:
        """Return the schema of a field, or None if the field has no schema."""
        return self.properties.get(name) or self.values


def parse_schema(raw: Mapping[str, Any]) -> Schema:
    """Parse a schema that has been checked."""
    additional = raw.get("additionalProperties")
    items = raw.get("items")
    clauses = {name: tuple(map(parse_schema, raw[name])) for name in ("allOf", "anyOf", "oneOf") if raw.get(name)}
    if raw.get("not") is not None:
        clauses["not"] = (parse_schema(raw["not"]),)
    types = ("integer", "string") if raw.get("x-kubernetes-int-or-string") else (raw.get("type") or "",)
    return Schema(
        raw=raw,
        properties={name: parse_schema(one) for name, one in (raw.get("properties") or {}).items()},
        additional=parse_schema(additional) if isinstance(additional, dict) else additional,
        items=parse_schema(items) if isinstance(items, dict) else None,
        preserves_unknown=bool(raw.get("x-kubernetes-preserve-unknown-fields")),
        is_embedded=bool(raw.get("x-kubernetes-embedded-resource")),
        is_nullable=bool(raw.get("nullable")),
        types=() if types == ("",) else types,
        clauses=clauses,
    )


# --- pruning ----------------------------------------------------------------------------------------------------------


def prune(value: Any, schema: Schema | None, on_unknown: OnUnknown, path: str = "") -> None:
    """Remove from a value, which is modified in place, the fields that are not in the schema."""
    if schema is not None and schema.preserves_unknown:
        _prune_known(value, schema, on_unknown, path)
    elif isinstance(value, dict):
        for name in list(value):
            if schema is not None and schema.is_embedded and name in META_FIELDS:
                continue
            where = f"{path}.{name}" if path else name
            known = None if schema is None else schema.properties.get(name)
            if known is None and (schema is None or schema.additional is None):
                if path or name not in META_FIELDS:
                    on_unknown(where)
                del value[name]
            else:
                prune(value[name], known or (schema.values if schema is not None else None), on_unknown, where)
    elif isinstance(value, list):
        items = None if schema is None else schema.items
        for i, item in enumerate(value):
            prune(item, items, on_unknown, f"{path}[{i}]")


def _prune_known(value: Any, schema: Schema | None, on_unknown: OnUnknown, path: str) -> None:
    """Keep unknown fields, but prune the values of the fields that have a schema."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, member in value.items():
            if schema.is_embedded and name in META_FIELDS:
                continue
            if name in schema.properties or schema.additional is not None:
                where = f"{path}.{name}" if path else name
                prune(member, schema.properties.get(name) or schema.values, on_unknown, where)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _prune_known(item, schema.items, on_unknown, f"{path}[{i}]")


# --- nulls and defaults -----------------------------------------------------------------------------------------------


def drop_nulls(value: Any, schema: Schema | None) -> None:
    """Remove the fields that are null, are not nullable, and have no default."""
    if isinstance(value, dict):
        for name in list(value):
            known = None if schema is None else schema.child(name)
            if value[name] is None and known is not None and not known.is_nullable and not known.has_default:
                del value[name]
            else:
                drop_nulls(value[name], known)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item, None if schema is None else schema.items)


def set_defaults(value: Any, schema: Schema | None) -> None:
    """Set the defaults of fields that are missing, or that are null but not nullable."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, known in schema.properties.items():
            if known.has_default and (name not in value or (value[name] is None and not known.is_nullable)):
                value[name] = known.default
        for name in value:
            known_or_none = schema.child(name)
            if name not in schema.properties and _is_wrong_null(value[name], known_or_none):
                value[name] = known_or_none.default if known_or_none is not None else None
            set_defaults(value[name], known_or_none)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            if schema.items is not None and _is_wrong_null(item, schema.items):
                value[i] = schema.items.default
            set_defaults(value[i], schema.items)


def _is_wrong_null(value: object, schema: Schema | None) -> bool:
    return value is None and schema is not None and not schema.is_nullable


def embedded_objects(value: Any, schema: Schema, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the value of each embedded object that has its own kind."""
    if schema.is_embedded and isinstance(value, dict):
        yield path, value
    for child, known, where in children(value, schema, path):
        yield from embedded_objects(child, known, where)


def children(value: Any, schema: Schema, path: str) -> Iterator[tuple[Any, Schema, str]]:
    """Yield each member or item of a value that has a schema, with the schema and the path for error messages."""
    if isinstance(value, dict):
        for name, member in value.items():
            if (known := schema.properties.get(name)) is not None:
                yield member, known, f"{path}.{name}" if path else name
            elif schema.values is not None:
                yield member, schema.values, f"{path}[{name}]"
    elif isinstance(value, list) and schema.items is not None:
        for i, item in enumerate(value):
            yield item, schema.items, f"{path}[{i}]"
