"""Field selectors and their parser (``pkg/fields/selector.go`` in apimachinery)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, final

import attrs

from ...errors import SelectorError
from .._meta import KubernetesObject
from .._resources import ResourceInfo
from ._errors import check_mapping, shown, syntax_error
from ._selectable_fields import SelectableFields

FieldOperator: TypeAlias = Literal["=", "!="]
"""The operator of a :class:`FieldRequirement`; ``==`` is parsed as ``=``."""

_TERM = re.compile(r"(?:[^\\,]|\\.|\\\Z)+", re.DOTALL)
_OPERATOR = re.compile(r"!=|==?")
_ESCAPE = re.compile(r"\\(.?)|=", re.DOTALL)
_TO_ESCAPE = re.compile(r"[\\,=]")
_NOT_IN_PATH = re.compile(r"[\s,=!\\]")
_PATH_RULE = "a field path must not be empty and must not contain white space, ',', '=', '!' or a backslash"


class FieldRequirement(NamedTuple):
    """One requirement of a field selector: a tuple of path, operator and value."""

    path: str
    """The path of the field: API names joined by dots, such as ``metadata.name`` or ``spec.nodeName``.  It is not
    empty."""
    operator: FieldOperator
    """Whether the field must equal the value or differ from it."""
    value: str
    """The value without escapes.  An empty value matches a field that is not set."""

    def __str__(self) -> str:
        """Return the text of the requirement, with every ``,``, ``=`` and backslash in the value escaped."""
        escaped = _TO_ESCAPE.sub(r"\\\g<0>", self.value)
        return f"{self.path}{self.operator}{escaped}"


def _checked(requirements: Iterable[tuple[str, FieldOperator, str]]) -> tuple[FieldRequirement, ...]:
    checked = [FieldRequirement(*requirement) for requirement in requirements]
    for requirement in checked:
        problem = _problem(*requirement)
        if problem is not None:
            raise SelectorError(f"field requirement on {shown(requirement.path)}: {problem}")
    return tuple(sorted(checked, key=str))


def _problem(path: object, operator: object, value: object) -> str | None:
    if not isinstance(path, str):
        return f"a field path must be a string, not {type(path).__name__}"
    if not _is_path(path):
        return _PATH_RULE
    if operator not in ("=", "!="):
        return f"{operator!r} is not an operator; the operators are =, !="
    if not isinstance(value, str):
        return f"a field's value must be a string, not {type(value).__name__}"
    return None


def _is_path(text: str) -> bool:
    return text != "" and not _NOT_IN_PATH.search(text)


@final
@attrs.frozen
class FieldSelector:
    """A parsed field selector.

    The paths are not checked; :meth:`selectable_fields` returns the fields that a kind supports.
    The requirements are sorted by their text, and ``str()`` formats them in this order.  Parsing the result of
    ``str()`` returns an equal selector.

    Raises:
        SelectorError: A path, operator or value is not valid.
    """

    requirements: tuple[FieldRequirement, ...] = attrs.field(default=(), converter=_checked)
    """The requirements, sorted; tuples ``(path, operator, value)`` are accepted."""

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Parse a field selector such as ``metadata.name=web-0,status.phase!=Running``.

        The operators are ``=``, ``==`` and ``!=``.
        In a value, a comma, an equals sign and a backslash must be escaped as ``\,``, ``\=`` and ``\\``.
        Whitespace in a value is part of the value, and whitespace in a path is an error.
        Empty terms are skipped, and an empty selector matches everything.

        Raises:
            SelectorError: The text does not follow the grammar. The message shows the text and the position of the
                error, counted from 0.
        """
        requirements: list[FieldRequirement] = []
        for term in _TERM.finditer(text):
            operator = _OPERATOR.search(text, term.start(), term.end())
            if operator is None:
                problem = f"{shown(term.group())} has no operator; expected =, == or !="
                raise syntax_error("field", text, term.start(), problem)
            path = text[term.start() : operator.start()]
            if not _is_path(path):
                raise syntax_error("field", text, term.start(), f"found {shown(path)}, but {_PATH_RULE}")
            value = _unescape(text, operator.end(), term.end())
            requirements.append(FieldRequirement(path, "!=" if operator.group() == "!=" else "=", value))
        return cls(requirements)

    @classmethod
    def of(cls, selector: FieldSelector | Mapping[str, str] | str | None) -> FieldSelector:
        """Make a field selector from a selector, its text, or a mapping from fields to required values.

        None, an empty string and an empty mapping match everything.

        Raises:
            SelectorError: The text cannot be parsed, or the mapping has an invalid path or value.
            TypeError: ``selector`` has any other type.
        """
        if isinstance(selector, FieldSelector):
            return selector
        if selector is None or isinstance(selector, str):
            return cls.parse(selector or "")
        check_mapping(selector, "field")
        return cls((path, "=", value) for path, value in selector.items())

    @property
    def is_empty(self) -> bool:
        """Whether the selector has no requirements and therefore matches everything."""
        return not self.requirements

    @staticmethod
    def selectable_fields(kind: ResourceInfo | type[KubernetesObject]) -> SelectableFields:
        """Return an object that lists the selectable fields of this kind and reads their values as text.

        Raises:
            TypeError: The class is not a kind.
        """
        return SelectableFields.of(kind)

    def matches(self, getter: Callable[[str], str]) -> bool:
        """Return whether an object matches the selector.

        Args:
            getter: A function that returns the text of the object's field at a path, or an empty string if the field
                is not set. Exceptions from this function propagate.
        """
        for path, operator, value in self.requirements:  # noqa: SIM110  # a generator under all() costs more
            if (getter(path) == value) is (operator == "!="):
                return False
        return True

    def __str__(self) -> str:
        """Return the text for the ``fieldSelector`` parameter, which is empty if there are no requirements."""
        return ",".join(map(str, self.requirements))


def _unescape(text: str, start: int, end: int) -> str:
    def bare(found: re.Match[str]) -> str:
        escaped: str | None = found.group(1)
        if escaped is None:
            raise syntax_error("field", text, start + found.start(), r"'=' in a value must be written '\='")
        if escaped not in ("\\", ",", "="):
            problem = rf"'{found.group()}' is not an escape; the escapes are '\,', '\=' and '\\'"
            raise syntax_error("field", text, start + found.start(), problem)
        return escaped

    return _ESCAPE.sub(bare, text[start:end])
