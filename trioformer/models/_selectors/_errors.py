"""Error messages for both grammars: one line with the selector, the position, and the problem."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping

from ..._suggestions import describe
from ...errors import SelectorError

_repr = reprlib.Repr()
_repr.maxstring = 200  # an error shows only both ends of a selector that names a thousand objects


def shown(text: str) -> str:
    """Quote a part of a selector for an error message; shorten a very long part in the middle."""
    return _repr.repr(text)


def syntax_error(kind: str, text: str, position: int, problem: str) -> SelectorError:
    """Return the error for a ``kind`` ("label" or "field") selector with a problem at ``position``, counted from 0."""
    return SelectorError(f"{kind} selector {shown(text)}, position {position}: {problem}")


def check_mapping(selector: object, kind: str) -> None:
    """Check that a value that is neither a string nor a parsed ``kind`` selector is a mapping.

    Raises:
        TypeError: The value is not a mapping.
    """
    if not isinstance(selector, Mapping):
        has_labels = hasattr(selector, "match_labels")  # the type of fields such as spec.selector of a Deployment
        hint = "; its match_labels are a mapping" if has_labels else ""
        example = "'app=web' or {'app': 'web'}" if kind == "label" else "'spec.nodeName=a' or {'spec.nodeName': 'a'}"
        raise TypeError(f"a {kind} selector must look like {example}, not {describe(selector)}{hint}")
