"""Write Python expressions and statements in a format that ruff and black leave unchanged.

An expression that does not fit on one line has one item per line and a trailing comma.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, final

import attrs

__all__ = [
    "LINE",
    "Call",
    "Expression",
    "Union",
    "assigned",
    "called",
    "decorated",
    "docstring",
    "imported",
    "listed",
    "literal",
]

LINE: Final = 88
"""The maximum line length, which is the default of ruff and black; long names and strings can exceed it."""


@final
@attrs.frozen
class Call:
    """An expression with items in brackets: a call, a subscript, a tuple or a dict."""

    head: str
    items: tuple[tuple[str, Expression], ...]
    """Pairs of a prefix, such as ``name=``, and an item."""
    brackets: str = "()"

    def flat(self) -> str:
        inner = ", ".join(before + _flat(item) for before, item in self.items)
        comma = "," if not self.head and self.brackets == "()" and len(self.items) == 1 else ""
        return f"{self.head}{self.brackets[0]}{inner}{comma}{self.brackets[1]}"

    def lines(self, indent: str) -> str:
        """Return the expression with one item on each line."""
        deeper = indent + "    "
        inner = (f"{deeper}{before}{_fitted(item, deeper, before, ',')},\n" for before, item in self.items)
        return f"{self.head}{self.brackets[0]}\n{''.join(inner)}{indent}{self.brackets[1]}"


@final
@attrs.frozen
class Union:
    """A union type with None."""

    type: Expression

    def flat(self) -> str:
        return f"{_flat(self.type)} | None"

    def lines(self, indent: str) -> str:
        """Return the union in brackets, with each type on its own line if the union does not fit on one line."""
        deeper = indent + "    "
        return f"(\n{deeper}{_fitted(self, deeper, '', '')}\n{indent})"


Expression: TypeAlias = str | Call | Union


def _flat(expression: Expression) -> str:
    return expression if isinstance(expression, str) else expression.flat()


def _fitted(expression: Expression, indent: str, before: str, after: str) -> str:
    flat = _flat(expression)
    if len(indent) + len(before) + len(flat) + len(after) <= LINE:
        return flat
    if isinstance(expression, Call) and expression.items:
        return expression.lines(indent)
    if isinstance(expression, Union):
        return f"{_fitted(expression.type, indent, '', '')}\n{indent}| None"
    return flat


def assigned(indent: str, name: str, annotation: Expression, value: Expression | None) -> str:
    """Return the annotated assignment that defines a field."""
    end = "" if value is None else f" = {_flat(value)}"
    line = f"{indent}{name}: {_flat(annotation)}{end}"
    if len(line) <= LINE:
        return line
    begin = f"{indent}{name}: {_flat(annotation)} = "
    if isinstance(value, Call) and value.items and len(begin) + len(value.head) + 1 <= LINE:
        return begin + value.lines(indent)
    if isinstance(annotation, Union) and isinstance(value, str) and len(begin) + 1 <= LINE:
        return f"{begin}(\n{indent}    {value}\n{indent})"
    if isinstance(annotation, str):
        return line
    shown = annotation.lines(indent)
    if value is not None:
        shown += f" = {_fitted(value, indent, '] = ', '')}"
    return f"{indent}{name}: {shown}"


def decorated(decorator: Call) -> str:
    """Return the source line of a decorator."""
    return "@" + _fitted(decorator, "", "@", "")


def called(head: str, *arguments: Expression, **named: Expression) -> Call:
    """Return a call expression."""
    items = [("", argument) for argument in arguments]
    return Call(head, (*items, *((f"{name}=", value) for name, value in named.items())))


def listed(head: str, *items: Expression) -> Call:
    """Return a parametrized type, such as ``tuple[int, ...]``."""
    return Call(head, tuple(("", item) for item in items), "[]")


def literal(value: Any) -> Expression:
    """Return the Python expression for a JSON value; an object becomes a dict, and an array becomes a tuple."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return Call("", tuple((f"{_text(str(key))}: ", literal(each)) for key, each in value.items()), "{}")
    if isinstance(value, list | tuple):
        return Call("", tuple(("", literal(each)) for each in value))
    return repr(value)


def _text(text: str) -> str:
    """Quote a string as ruff does: with double quotes, unless single quotes need fewer backslashes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    is_plain = text.isprintable()
    if is_plain and "\\" in text and quote not in text and not text.endswith("\\"):
        return f"r{quote}{text}{quote}"
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    if not is_plain:
        escaped = "".join(each if each.isprintable() else _escape(each) for each in escaped)
    return f"{quote}{escaped}{quote}"


def _escape(character: str) -> str:
    return repr(character)[1:-1]


def docstring(text: str, indent: str) -> list[str]:
    """Return the source lines of a docstring."""
    lines = [_escaped(line.rstrip()) for line in inspect.cleandoc(text).splitlines()]
    # A quote beside those of the docstring would be one of them.
    if lines[0].startswith('"'):
        lines[0] = f"\\{lines[0]}"
    if len(lines) == 1:
        only = f'{lines[0][:-1]}\\"' if _ends_with_quote(lines[0]) else lines[0]
        return [f'{indent}"""{only}"""']
    rest = (f"{indent}{line}" if line else "" for line in lines[1:])
    return [f'{indent}"""{lines[0]}', *rest, f'{indent}"""']


def _escaped(line: str) -> str:
    line = line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return re.sub(r"[^ -~\u00a0-\uffff]", lambda found: _escape(found[0]), line)


def _ends_with_quote(line: str) -> bool:
    backslashes = len(line) - 1 - len(line[:-1].rstrip("\\"))
    return line.endswith('"') and backslashes % 2 == 0


def imported(module: str, names: Iterable[str]) -> str:
    """Return an import statement whose names are sorted as ruff and isort sort them."""
    ordered = sorted(names, key=lambda name: (0 if name.isupper() else 1 if name[0].isupper() else 2, name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= LINE:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in ordered), ")"])
