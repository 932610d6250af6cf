"""The format of errors of both grammars: one line with the selector, the position, and the problem."""

from __future__ import annotations

import reprlib

from ...errors import SelectorError

_repr = reprlib.Repr()
_repr.maxstring = 200  # an error shows only both ends of a selector that names a thousand objects


def shown(text: str) -> str:
    """Quote a part of a selector; only both ends of a very long one."""
    return _repr.repr(text)


def syntax_error(kind: str, text: str, position: int, problem: str) -> SelectorError:
    """Make the error for a ``kind`` ("label" or "field") selector with a problem at ``position``, counted from 0."""
    return SelectorError(f"{kind} selector {shown(text)}, position {position}: {problem}")
