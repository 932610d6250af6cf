"""Label selectors and their parser (``pkg/labels/selector.go`` in apimachinery)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import final

import attrs

from ...errors import SelectorError
from ._errors import check_mapping, shown, syntax_error
from ._label_requirement import LabelOperator, LabelRequirement, key_problem, number_problem, value_problem


def _by_key(requirements: Iterable[LabelRequirement]) -> tuple[LabelRequirement, ...]:
    return tuple(sorted(requirements, key=lambda requirement: requirement.key))


def _exact_of(selector: LabelSelector) -> tuple[tuple[str, str], ...]:
    return tuple((r.key, r.values[0]) for r in selector.requirements if r.operator == "=")


def _others_of(selector: LabelSelector) -> tuple[LabelRequirement, ...]:
    return tuple(r for r in selector.requirements if r.operator != "=")


@final
@attrs.frozen
class LabelSelector:
    """A parsed label selector.

    The requirements are sorted by key, and requirements with the same key keep their order.  ``str()`` formats them in
    this order, and parsing the result of ``str()`` returns an equal selector.
    """

    requirements: tuple[LabelRequirement, ...] = attrs.field(default=(), converter=_by_key)
    """The requirements, sorted by key."""
    _exact: tuple[tuple[str, str], ...] = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_exact_of, takes_self=True)
    )
    _others: tuple[LabelRequirement, ...] = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_others_of, takes_self=True)
    )

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse a label selector such as ``app=web,tier in (back,front),!canary,shard>3``.

        The requirements are ``key=value``, ``key==value``, ``key!=value``, ``key in (a,b)``, ``key notin (a,b)``,
        ``key``, ``!key``, ``key>1`` and ``key<1``, separated by commas; spaces, tabs and newlines are ignored.
        A value can be empty, as in ``key=``, ``key in ()`` and ``key in (a,)``.
        An empty selector matches everything.

        Raises:
            SelectorError: The text does not follow the grammar, or a key or value is not valid. The message shows the
                text and the position of the error, counted from 0.
        """
        return cls(_Parser(text).parse())

    @classmethod
    def of(cls, selector: LabelSelector | Mapping[str, str] | str | None) -> LabelSelector:
        """Make a label selector from a selector, its text, or a mapping from labels to required values.

        None, an empty string and an empty mapping match everything.

        Raises:
            SelectorError: The text cannot be parsed, or the mapping has an invalid key or value.
            TypeError: ``selector`` has any other type.
        """
        if isinstance(selector, LabelSelector):
            return selector
        if selector is None or isinstance(selector, str):
            return cls.parse(selector or "")
        check_mapping(selector, "label")
        return cls(LabelRequirement(key, "=", (value,)) for key, value in selector.items())

    @property
    def is_empty(self) -> bool:
        """Whether the selector has no requirements and therefore matches everything."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels matches the selector."""
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        for requirement in self._others:  # noqa: SIM110  # a generator under all() costs more than the checks
            if not requirement.matches(labels):
                return False
        return True

    def __str__(self) -> str:
        """Return the text for the ``labelSelector`` parameter, which is empty if there are no requirements."""
        return ",".join(map(str, self.requirements))


_TOKEN = re.compile(r"==|!=|[=!<>(),]|[^ \t\r\n=!<>(),]+")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "<", ">", "(", ")", ","})
_BINARY: Mapping[str, LabelOperator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "in": "in",
    "notin": "notin",
    ">": "gt",
    "<": "lt",
}


class _Parser:
    """A recursive descent parser for one selector.

    ``in`` and ``notin`` are operators only where an operator is expected.  Elsewhere, ``in`` and ``notin`` are keys or
    values.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [(found.group(), found.start()) for found in _TOKEN.finditer(text)]
        self._tokens.append(("", len(text)))  # the end; no other token is empty
        self._index = 0

    def parse(self) -> list[LabelRequirement]:
        requirements: list[LabelRequirement] = []
        if self._peek() == "":
            return requirements
        while True:
            requirements.append(self._requirement())
            if self._accept(""):
                return requirements
            self._expect(",", "',' or the end")

    def _requirement(self) -> LabelRequirement:
        negated = self._accept("!")
        key = self._word("a label key" if negated else "a label key or '!'", key_problem)
        if self._peek() in ("", ","):
            return LabelRequirement(key, "!" if negated else "exists")
        if negated:
            raise self._unexpected("',' or the end")
        operator = _BINARY.get(self._peek())
        if operator is None:
            raise self._unexpected("=, ==, !=, in, notin, > or <")
        self._index += 1
        if operator in ("in", "notin"):
            return LabelRequirement(key, operator, self._value_list())
        position = self._position()
        value = "" if self._peek() in ("", ",") else self._word("a value", value_problem)
        if operator in ("gt", "lt"):
            self._check(number_problem(value), position)
        return LabelRequirement(key, operator, (value,))

    def _value_list(self) -> list[str]:
        self._expect("(", "'('")
        values: list[str] = []
        while True:
            values.append("" if self._peek() in (",", ")") else self._word("a value, ',' or ')'", value_problem))
            if self._accept(")"):
                return values
            self._expect(",", "',' or ')'")

    def _word(self, expected: str, problem_of: Callable[[object], str | None]) -> str:
        token = self._peek()
        if token == "" or token in _SYMBOLS:
            raise self._unexpected(expected)
        self._check(problem_of(token), self._position())
        self._index += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._index][0]

    def _position(self) -> int:
        return self._tokens[self._index][1]

    def _accept(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._index += 1
        return True

    def _expect(self, token: str, expected: str) -> None:
        if not self._accept(token):
            raise self._unexpected(expected)

    def _check(self, problem: str | None, position: int) -> None:
        if problem is not None:
            raise syntax_error("label", self._text, position, problem)

    def _unexpected(self, expected: str) -> SelectorError:
        token = self._peek()
        found = shown(token) if token else "the end"
        return syntax_error("label", self._text, self._position(), f"found {found}, expected {expected}")
