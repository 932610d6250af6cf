"""Additional parts of CustomResourceDefinitions: bounds, rules, columns and subresources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import attrs

from ..models import JSON, FrozenMap
from ..models._internal import EMPTY_MAP

__all__ = [
    "CustomResource",
    "ListType",
    "MapType",
    "PrinterColumn",
    "Rule",
    "RuleReason",
    "ScaleSubresource",
    "Schema",
    "as_texts",
]

ListType: TypeAlias = Literal["atomic", "set", "map"]
"""The list type: ``atomic`` (the list has one owner), ``set`` (items are unique), or ``map`` (``list_map_keys``
identify an item)."""

MapType: TypeAlias = Literal["atomic", "granular"]
"""The map type: ``atomic`` (the object or map has one owner), or ``granular``, the server's default (each field has
its own owner)."""

RuleReason: TypeAlias = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
"""The reason in the server's 422 response if an object violates a rule."""


@final
@attrs.frozen
class Rule:
    """A validation rule in the Common Expression Language (``x-kubernetes-validations``).

    In the expression, ``self`` is the value that the rule applies to, and fields have the API's names::

        Rule("self.minReplicas <= self.replicas", message="replicas must be at least minReplicas")
    """

    rule: str
    """The expression, which must be true for the server to accept the object."""
    message: str | None = attrs.field(default=None, kw_only=True)
    """The server's message if the expression is false.  The default, None, shows the expression."""
    message_expression: str | None = attrs.field(default=None, kw_only=True)
    """An expression that returns the message.  If it can be evaluated, it replaces ``message``."""
    reason: RuleReason | None = attrs.field(default=None, kw_only=True)
    """The reason in the server's response.  The default, None, means ``FieldValueInvalid``."""
    field_path: str | None = attrs.field(default=None, kw_only=True)
    """The field that the response names, relative to the value, such as ``.replicas``.  The default, None, names the
    value itself."""
    optional_old_self: bool | None = attrs.field(default=None, kw_only=True)
    """Whether a rule with ``oldSelf`` is also evaluated for new values, for which ``oldSelf`` is an empty optional."""

    def to_json(self) -> dict[str, JSON]:
        """Return the rule as JSON for the server."""
        members: dict[str, JSON] = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {name: value for name, value in members.items() if value is not None}


def _texts(names: Sequence[str]) -> tuple[str, ...]:
    return as_texts(names, "list_map_keys")


def _rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    return tuple(rules)


def _members(more: Mapping[str, JSON]) -> FrozenMap[JSON]:
    return FrozenMap(more)


def as_texts(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Convert a sequence of strings to a tuple.

    Raises:
        TypeError: ``names`` is a single string.
    """
    if isinstance(names, str):
        raise TypeError(f"{where} must be a tuple of strings, not a str; write ({names!r},)")
    return tuple(names)


@final
@attrs.frozen(kw_only=True)
class Schema:
    """Constraints on a value, written as ``Annotated[type, Schema(…)]``.

    Constraints apply only to the annotated value.  List items and map values need their own annotations::

        replicas: Annotated[int, Schema(minimum=0, maximum=100)] = 1
        hosts: Annotated[tuple[Annotated[str, Schema(min_length=1)], ...], Schema(max_items=8, list_type="set")] = ()

    Only the server checks values against these constraints.
    """

    description: str | None = None
    """The description.  The default, None, uses the string below the field, or the docstring of the field's class."""
    title: str | None = None
    """A short title."""
    format: str | None = None
    """The format of a string or number, such as ``int32``, ``uuid``, ``hostname`` or ``ipv4``."""
    pattern: str | None = None
    """A regular expression (RE2) that must match a part of the string."""
    minimum: float | None = None
    """The minimum of a number."""
    maximum: float | None = None
    """The maximum of a number."""
    exclusive_minimum: bool | None = None
    """Whether a number must be greater than ``minimum``."""
    exclusive_maximum: bool | None = None
    """Whether a number must be less than ``maximum``."""
    multiple_of: float | None = None
    """A number of which the value must be a multiple."""
    min_length: int | None = None
    """The minimum length of a string, in code points."""
    max_length: int | None = None
    """The maximum length of a string, in code points."""
    min_items: int | None = None
    """The minimum number of items of a list."""
    max_items: int | None = None
    """The maximum number of items of a list."""
    min_properties: int | None = None
    """The minimum number of members of a map or an object."""
    max_properties: int | None = None
    """The maximum number of members of a map or an object."""
    list_type: ListType | None = None
    """The list type.  The default, None, means ``map`` by type for lists of conditions and ``atomic`` for all other
    lists."""
    list_map_keys: Sequence[str] = attrs.field(default=(), converter=_texts)
    """The fields that identify an item in a list of type ``map``, with the API's names."""
    map_type: MapType | None = None
    """``atomic`` if the whole object or map has one owner."""
    rules: Sequence[Rule] = attrs.field(default=(), converter=_rules)
    """The validation rules for the value."""
    nullable: bool | None = None
    """Whether the value can be null; the program reads null as the default."""
    required: bool | None = None
    """Whether the field is required.  The default, None, requires a field that has no default and whose type does not
    include None."""
    server_default: bool | None = None
    """Whether the server sets the default of the class.  The default, None, means yes, except for None and for an
    empty list, map or object."""
    preserve_unknown_fields: bool | None = None
    """Whether the server stores members that the schema does not define."""
    embedded_resource: bool | None = None
    """Whether the value is a complete object with apiVersion, kind and metadata."""
    more: Mapping[str, JSON] = attrs.field(default=EMPTY_MAP, converter=_members)
    """Additional members of the schema, such as ``oneOf``, under the API's names.  They replace generated members."""


@final
@attrs.frozen
class PrinterColumn:
    """A column that ``kubectl get`` prints.

    If a class defines columns, they replace the server's default age column, but not the name column.
    """

    name: str
    """The heading of the column, such as ``Replicas``."""
    path: str
    """The JSON path of the value, such as ``.spec.replicas`` or ``.metadata.creationTimestamp``."""
    type: Literal["integer", "number", "string", "boolean", "date"] | None = attrs.field(default=None, kw_only=True)
    """The type.  The default, None, uses the type of the field, or ``string`` if the path does not consist of names."""
    format: str | None = attrs.field(default=None, kw_only=True)
    """The format, such as ``int32`` or ``date-time``."""
    description: str | None = attrs.field(default=None, kw_only=True)
    """The description of the column."""
    priority: int = attrs.field(default=0, kw_only=True)
    """The priority.  Columns with the priority 0 are always printed, and all others only with ``-o wide``."""


@final
@attrs.frozen(kw_only=True)
class ScaleSubresource:
    """The fields that ``kubectl scale`` and autoscalers read and write."""

    spec_replicas: str = ".spec.replicas"
    """The JSON path of the desired number of replicas."""
    status_replicas: str = ".status.replicas"
    """The JSON path of the observed number of replicas."""
    label_selector: str | None = None
    """The JSON path of the label selector as a string, which a HorizontalPodAutoscaler requires."""


@final
@attrs.frozen(kw_only=True)
class CustomResource:
    """The arguments to :func:`custom_resource` for one class."""

    printer_columns: tuple[PrinterColumn, ...]
    """The columns that ``kubectl get`` prints."""
    selectable_fields: tuple[str, ...]
    """The JSON paths that field selectors can use."""
    scale: ScaleSubresource | None
    """The scale subresource."""
    served: bool
    """Whether the server serves the version."""
    stored: bool | None
    """Whether the server stores objects in the version, or None for the only version."""
    deprecated: bool
    """Whether the server sends a warning to clients that use the version."""
    deprecation_warning: str | None
    """The text of the warning, or None for the server's own text."""
    schema: Schema
    """The constraints on the whole object."""


NO_FACTS: Final = Schema()
