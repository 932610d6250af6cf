"""What the errors of both grammars look like: one line with the selector, the position, and what is wrong there."""

from __future__ import annotations

import reprlib

from ...errors import SelectorError

_repr = reprlib.Repr()
_repr.maxstring = 200  # of a selector that names a thousand objects, an error shows both ends


def shown(text: str) -> str:
    """Quote a piece of a selector; of a very long one both ends."""
    return _repr.repr(text)


def syntax_error(kind: str, text: str, position: int, problem: str) -> SelectorError:
    """Make the error for a ``kind`` ("label" or "field") selector that goes wrong at ``position``, counted from 0."""
    return SelectorError(f"{kind} selector {shown(text)}, position {position}: {problem}")
