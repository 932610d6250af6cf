"""The types of fields, which decide how objects are merged and owned.

The types of built-in kinds are in ``field_types.json``, which ``tests/e2e/fetch_field_types.py`` writes.  The types
are encoded as follows:

- ``s`` is a string, ``n`` is a number, ``b`` is a boolean, and ``u`` is any scalar.
- ``d`` is any value, in which objects are merged by field.  ``a`` is any value, which is replaced as a whole.
- ``{}s`` is a map of strings, ``[]s`` is a list of strings that is replaced, and ``[*]s`` is a set of strings.
- ``[name]core.v1.Container`` is a list with the key ``name``.  ``[a,b|c]…`` is a list with the keys ``a`` and ``b``,
  and with the key ``c`` for strategic merge patches.
- Any other name is the name of a struct.  A struct or map with the prefix ``!`` is replaced as a whole.
- A suffix is the value that Go uses for a missing field.  The values ``={}`` and ``=null`` are always encoded, so they
  are never added.  All other values are defaults.

The types of custom kinds are derived from the schema in their CustomResourceDefinition.

Source: kube-openapi ``pkg/schemaconv``, structured-merge-diff ``schema/elements.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import Any, Final, Literal, TypeAlias, final

import attrs

from ...models._internal import decode
from ._release import INSTALLED, Release

Scalar: TypeAlias = Literal["string", "numeric", "boolean", "untyped"]
"""The type of a scalar."""
MISSING: Final = object()
"""A marker for a missing value, which is different from null."""


@final
@attrs.define(eq=False)
class FieldType:
    """The type of a value, or several possible types."""

    scalar: Scalar | None = None
    """The scalar type, or None if the value cannot be a scalar."""
    items: ListType | None = None
    """The list type, or None if the value cannot be a list."""
    map: MapType | None = None
    """The object type, or None if the value cannot be an object."""
    _is_single: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._is_single = (self.scalar is not None) + (self.items is not None) + (self.map is not None) == 1

    def of(self, value: object) -> FieldType:
        """Return the possible type that fits a value.

        If the value is null or no type fits, return all possible types.
        """
        if self._is_single:
            return self
        match value:
            case dict() if self.map is not None:
                return FieldType(map=self.map)
            case list() if self.items is not None:
                return FieldType(items=self.items)
            case bool() | int() | float() | str() if self.scalar is not None:
                return FieldType(scalar=self.scalar)
            case _:
                return self

    def is_same(self, other: FieldType) -> bool:
        """Return whether two results of :meth:`of` for the same type are equal."""
        return (self.scalar, self.items, self.map) == (other.scalar, other.items, other.map)


@final
@attrs.define(eq=False)
class ListType:
    """The type of a list."""

    _item: Callable[[], FieldType]
    is_atomic: bool = True
    """Whether the list is replaced as a whole. Otherwise, its items are merged by key, or by value if the list has no
    keys."""
    keys: tuple[str, ...] = ()
    """The keys of the items, if any."""
    patch_key: str | None = None
    """The key for strategic merge patches; empty for a set, None for a list that is replaced."""

    @cached_property
    def item(self) -> FieldType:
        """The type of the items."""
        return self._item()


@final
@attrs.define(eq=False)
class MapType:
    """The type of an object: a struct, a map, or both."""

    fields: Mapping[str, Field] = attrs.field(factory=dict)
    """The declared fields."""
    _element: Callable[[], FieldType] | None = None
    is_atomic: bool = False
    """Whether the object is replaced as a whole."""
    implied: Mapping[str, object] = attrs.field(factory=dict)
    """The fields that Go always encodes, with the value that Go uses for a missing field."""

    @cached_property
    def element(self) -> FieldType | None:
        """The type of undeclared fields, or None if these are not allowed."""
        return None if self._element is None else self._element()

    def member(self, name: str) -> FieldType:
        """Return the type of a field.  An undeclared field may have any type."""
        field = self.fields.get(name)
        return field.type if field is not None else self.element or DEDUCED


@final
@attrs.define(eq=False)
class Field:
    """A declared field of a struct."""

    _type: Callable[[], FieldType]
    default: object = MISSING
    """The default of the field, which is also used if the field is a missing key of an item."""

    @cached_property
    def type(self) -> FieldType:
        """Its type."""
        return self._type()


def _just(given: FieldType) -> Callable[[], FieldType]:
    return lambda: given


UNTYPED: Final[FieldType] = FieldType(
    "untyped", ListType(lambda: UNTYPED), MapType({}, lambda: UNTYPED, is_atomic=True)
)
"""Any value, which is replaced as a whole."""
DEDUCED: Final[FieldType] = FieldType("untyped", ListType(lambda: UNTYPED), MapType({}, lambda: DEDUCED))
"""Any value. Objects are merged by field, and lists are replaced."""
_CODES: Final[Mapping[str, FieldType]] = {
    "s": FieldType("string"),
    "n": FieldType("numeric"),
    "b": FieldType("boolean"),
    "u": FieldType("untyped"),
    "d": DEDUCED,
    "a": UNTYPED,
}
OBJECT_META: Final = "meta.v1.ObjectMeta"


# --- built-in kinds ---------------------------------------------------------------------------------------------------


@cache
def _table(release: Release) -> Mapping[str, Any]:
    table: Mapping[str, Any] = decode(release.read("field_types.json"))
    return {**table, "atomic": frozenset(table["atomic"])}


def builtin_type(release: Release, api_version: str, kind: str) -> FieldType | None:
    """Return the type of a built-in kind, or None if the kind is not in the table."""
    name = _table(release)["kinds"].get(f"{api_version} {kind}")
    return None if name is None else named_type(release, name)


@cache
def named_type(release: Release, name: str) -> FieldType:
    """Return the struct type with this name from the table."""
    table = _table(release)
    parts = {field: code.partition("=") for field, code in table["types"][name].items()}
    defaults = {field: decode(default.encode()) for field, (_, _, default) in parts.items() if default}
    fields = {
        field: Field(partial(coded_type, release, code), default=defaults.get(field, MISSING))
        for field, (code, _, _) in parts.items()
    }
    implied = {field: default for field, default in defaults.items() if default in (None, {})}
    return FieldType(map=MapType(fields, None, is_atomic=name in table["atomic"], implied=implied))


@cache
def coded_type(release: Release, code: str) -> FieldType:
    """Return the type for a type code from the table."""
    if (known := _CODES.get(code)) is not None:
        return known
    if code.startswith("["):
        relation, _, item = code[1:].partition("]")
        keys, divider, patch = relation.partition("|")
        patch = patch if divider else keys
        names = () if keys in ("", "*") else tuple(keys.split(","))
        patch_key = "" if patch == "*" else patch.partition(",")[0] or None
        return FieldType(
            items=ListType(partial(coded_type, release, item), is_atomic=not keys, keys=names, patch_key=patch_key)
        )
    if code.startswith("{}"):
        return FieldType(map=MapType({}, partial(coded_type, release, code[2:])))
    if code.startswith("!"):
        struct = coded_type(release, code[1:]).map
        assert struct is not None
        return FieldType(map=attrs.evolve(struct, is_atomic=True))
    return named_type(release, code)


# --- custom kinds -----------------------------------------------------------------------------------------------------

_SCALARS: Final[Mapping[str, Scalar]] = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_TEXT_FORMATS: Final = ("", "byte")


def custom_type(schema: Mapping[str, Any] | None) -> FieldType:
    """Return the type of a custom kind with this schema.  Without a schema, objects may have any fields."""
    if schema is None:
        schema = {"x-kubernetes-preserve-unknown-fields": True}
    return _schema_type({**schema, "type": "object"}, preserves=False, is_object=True)


def _schema_type(schema: Mapping[str, Any], *, preserves: bool, is_object: bool = False) -> FieldType:
    preserves = preserves or schema.get("x-kubernetes-preserve-unknown-fields") is True
    match schema.get("type") or "":
        case "":
            return FieldType("untyped", _list_type(schema, preserves), _map_type(schema, preserves, is_object))
        case "object":
            return FieldType(map=_map_type(schema, preserves, is_object))
        case "array":
            return FieldType(items=_list_type(schema, preserves))
        case "string":
            return FieldType("string" if schema.get("format", "") in _TEXT_FORMATS else "untyped")
        case other:
            return FieldType(_SCALARS.get(other, "untyped"))


def _list_type(schema: Mapping[str, Any], preserves: bool) -> ListType:  # as its only caller has it
    items = schema.get("items")
    item = UNTYPED if not items else _schema_type(items, preserves=preserves)
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return ListType(_just(item), is_atomic=False)
        case "map":
            return ListType(_just(item), is_atomic=False, keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()))
        case _:
            return ListType(_just(item))


def _map_type(schema: Mapping[str, Any], preserves: bool, is_object: bool) -> MapType:  # as above
    properties = schema.get("properties") or {}
    fields = {
        name: Field(_just(_schema_type(one, preserves=preserves)), default=one.get("default", MISSING))
        for name, one in properties.items()
    }
    if is_object or schema.get("x-kubernetes-embedded-resource") is True:
        fields |= {name: Field(_just(_CODES["s"])) for name in ("apiVersion", "kind")}
        fields["metadata"] = Field(partial(coded_type, INSTALLED, OBJECT_META))  # the same in each release
    additional = schema.get("additionalProperties")
    element: Callable[[], FieldType] | None = None
    if isinstance(additional, dict):
        element = _just(_schema_type(additional, preserves=preserves))
    elif additional is True or (additional is None and (preserves or not fields)):
        element = _just(DEDUCED)
    return MapType(fields, element, is_atomic=schema.get("x-kubernetes-map-type") == "atomic")
