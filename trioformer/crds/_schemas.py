"""Build the structural schema for a class.

For the program's own classes, the schema contains the fields, types and defaults.
For built-in classes such as PodTemplateSpec, the schema contains only the types.  The server checks the values when a
controller creates an object of the built-in kind.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, cast, final, get_args, get_origin

import attrs

from ..errors import DecodeError
from ..models import FrozenMap, KubernetesObject, Model, ObjectMeta, Quantity, Unstructured
from ..models._internal import EMPTY_MAP, UNIONS, camel_case, decode, encode_as
from ..models.meta_v1 import Condition
from ._constraints import JSONSchema, add_facts, check_list_type, merged, violation
from ._facts import NO_FACTS, Schema
from ._sources import description_of, problem, source_of

__all__ = ["schema_of"]

_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
# Not the format "byte": the server does not accept an empty string for it.
_BASE64: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_INT_OR_STRING: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}
_SCALARS: Final[Mapping[Any, JSONSchema]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "pattern": _BASE64},
    datetime: {"type": "string", "format": "date-time"},
    object: _ANYTHING,
    Any: _ANYTHING,
    Quantity: {**_INT_OR_STRING, "pattern": _QUANTITY},
    ObjectMeta: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_LISTS: Final = (tuple, collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
_MAPS: Final = (collections.abc.Mapping, FrozenMap)
_QUALIFIED: Final = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
# apimachinery, meta/v1 Condition: its class has the types only.
_CONDITION: Final[JSONSchema] = {
    "type": "object",
    "properties": {
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": _QUALIFIED + r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    },
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
}
_MODELS: Final = Model.__module__.rpartition(".")[0] + "."


@final
@attrs.frozen
class _Field:
    """A field of a model, an attrs class, a dataclass or a TypedDict."""

    name: str
    json: str
    hint: Any
    default: Any
    """The default, or ``attrs.NOTHING`` if there is none, or :data:`_MADE`."""


_MADE: Final = object()
"""A marker for a default that a factory makes for each object."""


def schema_of(cls: type[KubernetesObject], facts: Schema, *, has_status: bool) -> JSONSchema:
    """Return the schema of a kind.

    Args:
        cls: The class of the kind.
        facts: The constraints on whole objects.
        has_status: Whether the status is a subresource.  If so, the server does not set defaults in the status.

    Raises:
        SchemaError: A field cannot be converted to a schema.
    """
    schema = _Builder().object(cls, cls, None, fills=True, has_status=has_status)
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **schema.get("properties", {}),
    }
    add_facts(schema, facts, lambda text: problem(cls, None, text))
    return schema


@final
@attrs.define(eq=False)
class _Builder:
    """A builder for one schema, which keeps track of the classes that contain the current class."""

    _around: list[type[Any]] = attrs.field(factory=list, init=False)

    def object(
        self, cls: type[Any], owner: type[Any], field: str | None, *, fills: bool, has_status: bool = False
    ) -> JSONSchema:
        """Return the schema of a class with fields.

        Args:
            cls: The class to convert.
            owner: The class that has the field.
            field: The field whose type is the class, or None if the class is the kind itself.
            fills: Whether the server sets defaults in this object.
            has_status: Whether the status is a subresource.  If so, the server does not set defaults in the status.
        """
        if cls in self._around:
            names = " → ".join(each.__name__ for each in (*self._around[self._around.index(cls) :], cls))
            text = f"{names} contains itself, which a schema of the server cannot express; use trioformer.models.JSON"
            raise problem(owner, field, text)
        self._around.append(cls)
        properties: JSONSchema = {}
        required: list[str] = []
        for each in _fields_of(cls, owner, field):
            if each.json in properties:
                raise problem(cls, each.name, f"two fields have the JSON name {each.json!r}")
            is_filled = fills and not (has_status and each.name == "status")
            properties[each.json], is_required = self._field(cls, each, fills=is_filled)
            if is_required:
                required.append(each.json)
        self._around.pop()
        schema: JSONSchema = {"type": "object"}
        if description := description_of(cls):
            schema = {"description": description, **schema}
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        add_facts(schema, vars(cls).get("__schema__", NO_FACTS), lambda text: problem(cls, None, text))
        return schema

    def _field(self, cls: type[Any], field: _Field, *, fills: bool) -> tuple[JSONSchema, bool]:
        """Return the schema of a field, and whether the field is required."""
        facts = merged(*_notes(field.hint))
        schema = self._value(cls, field.name, field.hint, fills=fills)
        if facts.description is None and (text := source_of(cls, field.name).descriptions.get(field.name)):
            schema = {"description": text, **{key: value for key, value in schema.items() if key != "description"}}
        is_builtin = cls.__module__.startswith(_MODELS)
        is_required = facts.required
        if is_required is None:
            is_required = field.default is attrs.NOTHING and not is_builtin and not _has_none(field.hint)
        if field.default in (attrs.NOTHING, _MADE, None) or is_builtin:
            if facts.server_default:
                raise problem(
                    cls, field.name, "server_default requires a constant default of the class that is not None"
                )
        elif (fills or facts.server_default) and facts.server_default is not False:
            default = _encoded_default(cls, field)
            if "x-kubernetes-validations" in schema:  # the server evaluates its rules on the default as it stands here
                default = _filled(schema, default)
            is_empty = default in ([], {}) and not _has_default(schema)
            if facts.server_default or not (is_empty or is_required):
                if text := violation(schema, default):
                    where = "give a default that the server accepts, None or none"
                    raise problem(cls, field.name, f"the default does not match the schema: {text}; {where}")
                schema["default"] = default
        return schema, is_required

    def _value(self, cls: type[Any], name: str, hint: Any, *, fills: bool) -> JSONSchema:
        """Return the schema of a type."""
        if get_origin(hint) is Annotated:
            schema = self._value(cls, name, get_args(hint)[0], fills=fills)
            for facts in _own_notes(hint):
                add_facts(schema, facts, lambda text: problem(cls, name, text))
            if schema.get("type") == "array":
                check_list_type(schema, lambda text: problem(cls, name, text))
            return schema
        if get_origin(hint) in UNIONS:
            return self._union(cls, name, hint, fills=fills)
        if isinstance(hint, collections.abc.Hashable) and hint in _SCALARS:
            return dict(_SCALARS[hint])
        origin, args = get_origin(hint) or hint, get_args(hint)
        if origin is Literal:
            return _enum(cls, name, [each.value if isinstance(each, enum.Enum) else each for each in args])
        if origin in _LISTS:
            return self._list(cls, name, hint, fills=fills)
        if origin in _MAPS:
            return self._map(cls, name, hint, fills=fills)
        if not isinstance(hint, type):
            raise problem(cls, name, f"{_text(hint)} has no schema; write trioformer.models.JSON")
        if issubclass(hint, enum.Enum):
            if issubclass(hint, enum.Flag):
                raise problem(cls, name, f"{hint.__name__} allows combinations of members, which JSON cannot express")
            return _enum(cls, name, [member.value for member in hint])
        if issubclass(hint, KubernetesObject | Unstructured):
            embedded = "x-kubernetes-embedded-resource"
            return {"type": "object", embedded: True, "x-kubernetes-preserve-unknown-fields": True}
        if hint is Condition:
            return cast("JSONSchema", _copy(_CONDITION))
        if _has_fields(hint):
            return self.object(hint, cls, name, fills=fills)
        raise problem(cls, name, f"{_text(hint)} has no schema; write trioformer.models.JSON")

    def _union(self, cls: type[Any], name: str, hint: Any, *, fills: bool) -> JSONSchema:
        members = [each for each in get_args(hint) if each is not type(None)]
        if len(members) == 1:
            return self._value(cls, name, members[0], fills=fills)
        if {*members} == {int, str}:
            return cast("JSONSchema", _copy(_INT_OR_STRING))
        if {*members} == {int, float}:
            return dict(_SCALARS[float])
        raise problem(cls, name, f"{_text(hint)} has no schema; write one type, int | str, or trioformer.models.JSON")

    def _list(self, cls: type[Any], name: str, hint: Any, *, fills: bool) -> JSONSchema:
        args = get_args(hint)
        if not args:
            return {"type": "array", "items": dict(_ANYTHING)}
        if get_origin(hint) is tuple and args[1:] != (...,):
            raise problem(
                cls,
                name,
                f"{_text(hint)} has items of several types or a fixed number; write tuple[{_text(args[0])}, ...]",
            )
        schema: JSONSchema = {"type": "array", "items": self._item(cls, name, args[0], fills=fills)}
        if args[0] is Condition:
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        return schema

    def _map(self, cls: type[Any], name: str, hint: Any, *, fills: bool) -> JSONSchema:
        args = get_args(hint)
        if not args:
            return {"type": "object", **_ANYTHING}
        value = args[-1]
        if len(args) == 2 and args[0] is not str:
            raise problem(cls, name, f"{_text(hint)} has keys that are not strings; write Mapping[str, {_text(value)}]")
        values = self._item(cls, name, value, fills=fills)
        if values == _ANYTHING:
            return {"type": "object", **_ANYTHING}
        return {"type": "object", "additionalProperties": values}

    def _item(self, cls: type[Any], name: str, hint: Any, *, fills: bool) -> JSONSchema:
        """Return the schema of a list item or map value; if the type allows None, the schema allows null."""
        schema = self._value(cls, name, hint, fills=fills)
        if _has_none(hint) and schema != _ANYTHING:
            schema["nullable"] = True
        return schema


# --- fields -----------------------------------------------------------------------------------------------------------


def _has_fields(cls: type[Any]) -> bool:
    return attrs.has(cls) or dataclasses.is_dataclass(cls) or typing.is_typeddict(cls)


def _fields_of(cls: type[Any], owner: type[Any], field: str | None) -> Iterator[_Field]:
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise problem(cls, None, f"{error}; the types of fields must be names of its module") from error
    except TypeError as error:
        raise problem(owner, field, f"{cls.__name__} has fields whose types are not known: {error}") from error
    if typing.is_typeddict(cls):
        for name, hint in hints.items():
            is_given = name in cls.__required_keys__
            yield _Field(name, name, hint, attrs.NOTHING if is_given else None)
        return
    if attrs.has(cls):
        hidden = {"_origin"} | ({"api_version", "kind", "metadata"} if issubclass(cls, KubernetesObject) else set())
        names: Mapping[str, str] = getattr(cls, "_json_names", EMPTY_MAP)
        for each in attrs.fields(cls):
            if each.name not in hidden:
                default = _MADE if isinstance(each.default, attrs.Factory) else each.default  # type: ignore[arg-type]  # attrs types the class Factory as a function
                json = names.get(each.name) or each.metadata.get("json") or camel_case(each.name)
                yield _Field(each.name, json, hints[each.name], default)
        return
    for one in dataclasses.fields(cls):
        default = attrs.NOTHING if one.default is dataclasses.MISSING else one.default
        made = one.default_factory is not dataclasses.MISSING
        json = one.metadata.get("json") or camel_case(one.name)
        yield _Field(one.name, json, hints[one.name], _MADE if made else default)


def _own_notes(hint: Any) -> list[Schema]:
    return [note for note in get_args(hint)[1:] if isinstance(note, Schema)]


def _notes(hint: Any) -> list[Schema]:
    """Return the constraints in a type, including types such as ``Annotated[T, …] | None``."""
    if get_origin(hint) is Annotated:
        return [*_notes(get_args(hint)[0]), *_own_notes(hint)]
    return [note for each in get_args(hint) for note in _notes(each)] if get_origin(hint) in UNIONS else []


def _has_none(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _has_none(get_args(hint)[0])
    return hint is None or hint is type(None) or (get_origin(hint) in UNIONS and any(map(_has_none, get_args(hint))))


def _enum(cls: type[Any], name: str, values: list[Any]) -> JSONSchema:
    kinds = {type(value) for value in values}
    found: JSONSchema = {}
    if kinds and all(issubclass(kind, str) for kind in kinds):
        found = {"type": "string", "enum": [str(value) for value in values]}
    elif kinds and all(issubclass(kind, int) and kind is not bool for kind in kinds):
        found = {"type": "integer", "enum": [int(value) for value in values]}
    else:
        raise problem(cls, name, "the values of an enumeration must be all strings or all integers")
    return found


def _encoded_default(cls: type[Any], field: _Field) -> Any:
    try:
        return decode(encode_as(_without_none(field.hint), field.default))
    except (DecodeError, ValueError, TypeError, AttributeError) as error:
        raise problem(cls, field.name, f"the default cannot be encoded: {error}") from error


def _filled(schema: JSONSchema, value: Any) -> Any:
    """Return a value with its absent members set to their defaults."""
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    properties: dict[str, JSONSchema] = schema.get("properties", {})
    absent = {name: each["default"] for name, each in properties.items() if "default" in each and name not in given}
    return {**absent, **{name: _filled(properties.get(name, {}), each) for name, each in given.items()}}


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return _without_none(get_args(hint)[0]) if _has_none(hint) else hint
    members = [each for each in get_args(hint) if each is not type(None)] if get_origin(hint) in UNIONS else [hint]
    return members[0] if len(members) == 1 else hint


def _has_default(schema: JSONSchema) -> bool:
    return any("default" in each for each in schema.get("properties", {}).values())


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(member) for key, member in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _text(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
