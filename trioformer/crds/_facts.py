"""The parts of a CustomResourceDefinition besides the fields: bounds, rules, columns and subresources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import attrs

from ..models import EMPTY_MAP, JSON, FrozenMap

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
"""``atomic``: a list has one owner; ``set``: items are unique; ``map``: ``list_map_keys`` identify an item."""

MapType: TypeAlias = Literal["atomic", "granular"]
"""``atomic``: an object or a map has one owner; ``granular``, the server's default: each field has one."""

RuleReason: TypeAlias = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
"""The reason of the cause in the server's 422 when a rule does not hold."""


@final
@attrs.frozen
class Rule:
    """A validation rule in the Common Expression Language (``x-kubernetes-validations``).

    In the expression, ``self`` is the value that has the rule, and fields have the API's names::

        Rule("self.minReplicas <= self.replicas", message="replicas must be at least minReplicas")
    """

    rule: str
    """The expression; the server accepts the object if it is true."""
    message: str | None = attrs.field(default=None, kw_only=True)
    """The server's message if it is false; None for the expression."""
    message_expression: str | None = attrs.field(default=None, kw_only=True)
    """An expression for the message; it replaces ``message`` if it can be evaluated."""
    reason: RuleReason | None = attrs.field(default=None, kw_only=True)
    """The reason in the server's response; None for ``FieldValueInvalid``."""
    field_path: str | None = attrs.field(default=None, kw_only=True)
    """The field that the response names, relative to the value, such as ``.replicas``; None for the value."""
    optional_old_self: bool | None = attrs.field(default=None, kw_only=True)
    """Whether a rule that reads ``oldSelf`` is also evaluated for new values; ``oldSelf`` is then optional."""

    def to_json(self) -> dict[str, JSON]:
        """Return the rule as the server expects it."""
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
    """Return strings as a tuple.

    Raises:
        TypeError: They are a single string.
    """
    if isinstance(names, str):
        raise TypeError(f"{where} must be a tuple of strings, not a str; write ({names!r},)")
    return tuple(names)


@final
@attrs.frozen(kw_only=True)
class Schema:
    """Constraints of a value, written as ``Annotated[type, Schema(…)]``.

    They apply to the annotated value, so items of a list and values of a map have their own::

        replicas: Annotated[int, Schema(minimum=0, maximum=100)] = 1
        hosts: Annotated[tuple[Annotated[str, Schema(min_length=1)], ...], Schema(max_items=8, list_type="set")] = ()

    Only the server checks the values.
    """

    description: str | None = None
    """Description; None for the string below the field, or the docstring of its class."""
    title: str | None = None
    """A short title."""
    format: str | None = None
    """Format of a string or a number, such as ``int32``, ``uuid``, ``hostname`` or ``ipv4``."""
    pattern: str | None = None
    """Regular expression (RE2) that must match a part of the string."""
    minimum: float | None = None
    """The minimum."""
    maximum: float | None = None
    """The maximum."""
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
    """The list type; None for ``atomic``, and for conditions ``map`` by their type."""
    list_map_keys: Sequence[str] = attrs.field(default=(), converter=_texts)
    """For the list type ``map``: the fields that identify an item, with the API's names."""
    map_type: MapType | None = None
    """``atomic`` if an object or a map has one owner as a whole."""
    rules: Sequence[Rule] = attrs.field(default=(), converter=_rules)
    """Validation rules."""
    nullable: bool | None = None
    """Whether the value may be null; the program reads null as the default."""
    required: bool | None = None
    """Whether the value is required; by default, if the field has no default and its type does not include None."""
    server_default: bool | None = None
    """Whether the server sets the default of the class; None: unless it is None or an empty list, map or object."""
    preserve_unknown_fields: bool | None = None
    """Whether the server stores members that the schema does not have."""
    embedded_resource: bool | None = None
    """Whether the value is a whole object with apiVersion, kind and metadata."""
    more: Mapping[str, JSON] = attrs.field(default=EMPTY_MAP, converter=_members)
    """Other members of the schema, with the API's names, such as ``oneOf``; they replace generated ones."""


@final
@attrs.frozen
class PrinterColumn:
    """A column that ``kubectl get`` prints.

    The columns of a class replace the server's column for the age, but not its column for the name.
    """

    name: str
    """The heading, such as ``Replicas``."""
    path: str
    """JSON path in the object, such as ``.spec.replicas`` or ``.metadata.creationTimestamp``."""
    type: Literal["integer", "number", "string", "boolean", "date"] | None = attrs.field(default=None, kw_only=True)
    """Type; None for the type of the field, or ``string`` if the path has other parts than names."""
    format: str | None = attrs.field(default=None, kw_only=True)
    """Format, such as ``int32`` or ``date-time``."""
    description: str | None = attrs.field(default=None, kw_only=True)
    """Description."""
    priority: int = attrs.field(default=0, kw_only=True)
    """0 for a column that is always printed; others need ``-o wide``."""


@final
@attrs.frozen(kw_only=True)
class ScaleSubresource:
    """The fields that ``kubectl scale`` and autoscalers read and write."""

    spec_replicas: str = ".spec.replicas"
    """JSON path of the desired number of replicas."""
    status_replicas: str = ".status.replicas"
    """JSON path of the observed number of replicas."""
    label_selector: str | None = None
    """JSON path of the label selector as a string, which a HorizontalPodAutoscaler requires; None without one."""


@final
@attrs.frozen(kw_only=True)
class CustomResource:
    """The arguments of the decorator of a class: one version of a kind."""

    printer_columns: tuple[PrinterColumn, ...]
    """Columns of ``kubectl get``."""
    selectable_fields: tuple[str, ...]
    """JSON paths that field selectors may use."""
    scale: ScaleSubresource | None
    """The scale subresource."""
    served: bool
    """Whether the server serves the version."""
    stored: bool | None
    """Whether the server stores objects in the version; None if it is the only one."""
    deprecated: bool
    """Whether the server sends a warning with the version."""
    deprecation_warning: str | None
    """The text of the warning; None for the server's own."""
    schema: Schema
    """The constraints of the object as a whole."""


NO_FACTS: Final = Schema()
