"""One requirement of a label selector; the rules for keys and values follow ``api/validate/content/kube.go``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, final

import attrs

from ...errors import SelectorError
from ._errors import shown

LabelOperator: TypeAlias = Literal["=", "!=", "in", "notin", "exists", "!", "gt", "lt"]
"""The operator of a :class:`LabelRequirement`, with the names in apimachinery's ``pkg/selection``; ``==`` is parsed as
``=``."""

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NAME_RULE = "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_NAME_LENGTH = 63
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LENGTH = 253
_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")

_VALUE_COUNTS: Mapping[str, tuple[int, int | None]] = {
    "=": (1, 1),
    "!=": (1, 1),
    "in": (1, None),
    "notin": (1, None),
    "exists": (0, 0),
    "!": (0, 0),
    "gt": (1, 1),
    "lt": (1, 1),
}


def key_problem(key: object) -> str | None:
    """Return the reason that ``key`` is not a valid label key (``[prefix/]name``), or None if it is valid."""
    if not isinstance(key, str):
        return f"a label key must be a string, not {type(key).__name__}"
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _SUBDOMAIN_LENGTH or not _SUBDOMAIN.fullmatch(prefix)):
        return f"the prefix of label key {shown(key)} must be a lower-case DNS name of at most 253 characters"
    if len(name) > _NAME_LENGTH:
        return f"the name in label key {shown(key)} has {len(name)} characters; the limit is 63"
    if not _NAME.fullmatch(name):
        return f"the name in label key {shown(key)} must be {_NAME_RULE}"
    return None


def value_problem(value: object) -> str | None:
    """Return the reason that ``value`` is not a valid label value, or None if it is valid."""
    if not isinstance(value, str):
        return f"a label value must be a string, not {type(value).__name__}"
    if len(value) > _NAME_LENGTH:
        return f"label value {shown(value)} has {len(value)} characters; the limit is 63"
    if value and not _NAME.fullmatch(value):
        return f"label value {shown(value)} must be empty, or {_NAME_RULE}"
    return None


def number_problem(value: str) -> str | None:
    """Return the reason that ``value`` is not a valid value for ``gt`` and ``lt``, or None if it is valid."""
    if _int64(value) is None:
        return f"{shown(value)} must be an integer of at most 64 bits for a comparison"
    return None


def _int64(text: str) -> int | None:
    """Parse a 64-bit integer as Go's ``strconv.ParseInt(text, 10, 64)`` does; return None if the text is not valid."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _value_set(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("values must be a collection of strings, not a single string")
    return tuple(sorted(set(values), key=str))


def _bound_of(requirement: LabelRequirement) -> int | None:
    compares = requirement.operator in ("gt", "lt") and len(requirement.values) == 1
    return _int64(str(requirement.values[0])) if compares else None


@final
@attrs.frozen
class LabelRequirement:
    """One requirement of a label selector.

    An object without the label meets only requirements with ``!=``, ``notin`` and ``!``.  A label value that is not an
    integer meets neither ``gt`` nor ``lt``.  These rules follow ``Requirement.Matches`` in apimachinery's
    ``pkg/labels/selector.go``.

    Raises:
        SelectorError: The key, the operator, a value, or the number of values is not valid.
    """

    key: str
    """The key of the label, as ``name`` or ``prefix/name``."""
    operator: LabelOperator
    """The operator."""
    values: tuple[str, ...] = attrs.field(default=(), converter=_value_set)
    """The values, sorted and without duplicates.  ``in`` and ``notin`` need at least one value, ``exists`` and ``!``
    have no value, and all other operators have one."""
    _bound: int | None = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_bound_of, takes_self=True)
    )

    def __attrs_post_init__(self) -> None:
        problem = key_problem(self.key) or self._values_problem()
        if problem is not None:
            raise SelectorError(f"label requirement on {shown(self.key)}: {problem}")

    def _values_problem(self) -> str | None:
        if self.operator not in _VALUE_COUNTS:
            return f"{self.operator!r} is not an operator; the operators are {', '.join(_VALUE_COUNTS)}"
        minimum, maximum = _VALUE_COUNTS[self.operator]
        if len(self.values) < minimum or (maximum is not None and len(self.values) > maximum):
            takes = "at least one value" if maximum is None else ("no value", "one value")[maximum]
            return f"operator {self.operator!r} takes {takes}, not {len(self.values)}"
        problem = next(filter(None, map(value_problem, self.values)), None)
        if problem is None and self.operator in ("gt", "lt"):
            return number_problem(self.values[0])
        return problem

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets the requirement."""
        value = labels.get(self.key)
        operator = self.operator
        if value is None:
            return operator in ("!=", "notin", "!")
        if operator in ("=", "in"):
            return value in self.values
        if operator in ("!=", "notin"):
            return value not in self.values
        if self._bound is None:
            return operator == "exists"
        number = _int64(value)
        if number is None:
            return False
        return number > self._bound if operator == "gt" else number < self._bound

    def __str__(self) -> str:
        """Return the text of the requirement, such as ``tier in (back,front)``."""
        joined = ",".join(self.values)
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({joined})"
            case "gt":
                return f"{self.key}>{joined}"
            case "lt":
                return f"{self.key}<{joined}"
            case _:
                return f"{self.key}{self.operator}{joined}"
