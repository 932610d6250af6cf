"""Find the line numbers of a class's fields and the description strings below them in the source code."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, cast, final

import attrs

from ..errors import SchemaError
from ..models import Model

__all__ = ["Source", "description_of", "problem", "source_of"]


@final
@attrs.frozen
class Source:
    """The source location of a class, and the line numbers and descriptions of its fields."""

    file: str | None = None
    """The file, or None if it is not known."""
    line: int | None = None
    """The line of the class, counted from 1."""
    lines: Mapping[str, int] = attrs.field(factory=dict)
    """The line of each field."""
    descriptions: Mapping[str, str] = attrs.field(factory=dict)
    """The string below each field that has one."""


def _find(cls: type[Any]) -> Source:
    """Read the source of a class; the result is empty if no source is available, for example in a REPL."""
    if cls.__module__.startswith(_MODELS):
        return Source()  # generated: its fields have no strings, and it takes long to parse
    try:
        file = inspect.getsourcefile(cls)
        text, first = inspect.getsourcelines(cls)
        tree = ast.parse(textwrap.dedent("".join(text)))
    except (OSError, TypeError, SyntaxError):
        return Source()
    found = tree.body[0] if tree.body else None
    if not isinstance(found, ast.ClassDef):
        return Source(file, first)
    lines: dict[str, int] = {}
    descriptions: dict[str, str] = {}
    for node, following in zip(found.body, [*found.body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        lines[node.target.id] = first + node.lineno - 1
        value = following.value if isinstance(following, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            descriptions[node.target.id] = inspect.cleandoc(value.value)
    return Source(file, first + found.lineno - 1, lines, descriptions)


_read = cast("Callable[[type[Any]], Source]", functools.cache(_find))


def source_of(cls: type[Any], field: str) -> Source:
    """Return the source of the class that defines a field, which is ``cls`` or one of its base classes."""
    for base in cls.__mro__:
        if field in inspect.get_annotations(base):
            return _read(base)
    return _read(cls)


def description_of(cls: type[Any]) -> str | None:
    """Return the class's own docstring, unless ``dataclass`` has generated it."""
    text = vars(cls).get("__doc__")
    if not isinstance(text, str) or not text.strip() or cls.__module__.startswith(_MODELS):
        return None
    return None if text.startswith(f"{cls.__name__}(") else inspect.cleandoc(text)


_MODELS = Model.__module__.rpartition(".")[0] + "."


def problem(cls: type[Any], field: str | None, text: str) -> SchemaError:
    """Return an error about a class or one of its fields."""
    found = _read(cls) if field is None else source_of(cls, field)
    line = found.line if field is None else found.lines.get(field, found.line)
    return SchemaError(text, cls=cast("type[object]", cls), field=field, file=found.file, line=line)
