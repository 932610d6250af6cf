"""What a class says about its CustomResourceDefinition besides its fields: bounds, rules, columns, subresources."""

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
"""How the items of a list are told apart: not at all, each is unique, or by the fields of ``list_map_keys``."""

MapType: TypeAlias = Literal["atomic", "granular"]
"""Whether an object or a map has one owner as a whole, or one for each field; the server's default is granular."""

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
    """What the server says if it is false; None for the expression itself."""
    message_expression: str | None = attrs.field(default=None, kw_only=True)
    """An expression that makes the message, and replaces ``message`` if it can be evaluated."""
    reason: RuleReason | None = attrs.field(default=None, kw_only=True)
    """The reason in the server's response; None for ``FieldValueInvalid``."""
    field_path: str | None = attrs.field(default=None, kw_only=True)
    """The field that the response names, relative to the value, such as ``.replicas``; None for the value."""
    optional_old_self: bool | None = attrs.field(default=None, kw_only=True)
    """Whether a rule that reads ``oldSelf`` is evaluated for new values as well; ``oldSelf`` is then optional."""

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
        TypeError: They are a single string, whose characters would be taken for them.
    """
    if isinstance(names, str):
        raise TypeError(f"{where} must be a tuple of strings, not a str; write ({names!r},)")
    return tuple(names)


@final
@attrs.frozen(kw_only=True)
class Schema:
    """What the type of a field does not say about its values; written as ``Annotated[type, Schema(…)]``.

    It describes the value that it annotates, so an item of a list or a value of a map has its own::

        replicas: Annotated[int, Schema(minimum=0, maximum=100)] = 1
        hosts: Annotated[tuple[Annotated[str, Schema(min_length=1)], ...], Schema(max_items=8, list_type="set")] = ()

    The server checks the values, and the program does not.
    """

    description: str | None = None
    """Description; None for the string below the field, or else the docstring of its class."""
    title: str | None = None
    """A short title."""
    format: str | None = None
    """Format of a string or a number, such as ``int32``, ``uuid``, ``hostname`` or ``ipv4``."""
    pattern: str | None = None
    """Regular expression (RE2) that a part of a string must match."""
    minimum: float | None = None
    """The least number."""
    maximum: float | None = None
    """The greatest number."""
    exclusive_minimum: bool | None = None
    """Whether a number must be greater than ``minimum``."""
    exclusive_maximum: bool | None = None
    """Whether a number must be less than ``maximum``."""
    multiple_of: float | None = None
    """What a number must be a multiple of."""
    min_length: int | None = None
    """The least length of a string, in code points."""
    max_length: int | None = None
    """The greatest length of a string, in code points."""
    min_items: int | None = None
    """The least number of items of a list."""
    max_items: int | None = None
    """The greatest number of items of a list."""
    min_properties: int | None = None
    """The least number of members of a map or an object."""
    max_properties: int | None = None
    """The greatest number of members of a map or an object."""
    list_type: ListType | None = None
    """How the items of a list are told apart; None for atomic, or ``map`` by type for conditions."""
    list_map_keys: Sequence[str] = attrs.field(default=(), converter=_texts)
    """For the list type ``map``: the fields of an item that identify it, with the API's names."""
    map_type: MapType | None = None
    """Whether an object or a map has one owner as a whole."""
    rules: Sequence[Rule] = attrs.field(default=(), converter=_rules)
    """Validation rules."""
    nullable: bool | None = None
    """Whether the value may be null; the program reads null as the default."""
    required: bool | None = None
    """Whether the value must be given; None for a field without a default whose type does not include None."""
    server_default: bool | None = None
    """Whether the server fills in the default of the class; None for all but None and empty lists, maps and objects."""
    preserve_unknown_fields: bool | None = None
    """Whether the server stores members that the schema does not have."""
    embedded_resource: bool | None = None
    """Whether the value is a whole object with apiVersion, kind and metadata."""
    more: Mapping[str, JSON] = attrs.field(default=EMPTY_MAP, converter=_members)
    """Other members of the schema, with the API's names, such as ``oneOf``; they replace those that are made."""


@final
@attrs.frozen
class PrinterColumn:
    """A column that ``kubectl get`` prints.

    The columns of a class replace the server's own column for the age, but not that for the name.
    """

    name: str
    """The heading, such as ``Replicas``."""
    path: str
    """JSON path in the object, such as ``.spec.replicas`` or ``.metadata.creationTimestamp``."""
    type: Literal["integer", "number", "string", "boolean", "date"] | None = attrs.field(default=None, kw_only=True)
    """Type; None for that of the field, and ``string`` for a path with more than names."""
    format: str | None = attrs.field(default=None, kw_only=True)
    """Format, such as ``int32`` or ``date-time``."""
    description: str | None = attrs.field(default=None, kw_only=True)
    """What the column means."""
    priority: int = attrs.field(default=0, kw_only=True)
    """0 for a column that is always printed; others need ``-o wide``."""


@final
@attrs.frozen(kw_only=True)
class ScaleSubresource:
    """The fields that ``kubectl scale`` and autoscalers read and write."""

    spec_replicas: str = ".spec.replicas"
    """JSON path of the wanted number of replicas."""
    status_replicas: str = ".status.replicas"
    """JSON path of the observed number of replicas."""
    label_selector: str | None = None
    """JSON path of the label selector as a string, which an HorizontalPodAutoscaler needs; None for none."""


@final
@attrs.frozen(kw_only=True)
class CustomResource:
    """What the decorator of a class has stated: one version of a kind."""

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
    """Whether the server warns of the version."""
    deprecation_warning: str | None
    """The text of the warning; None for the server's own."""
    schema: Schema
    """What is said about the object as a whole."""


NO_FACTS: Final = Schema()
