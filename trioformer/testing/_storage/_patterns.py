r"""Patterns in schemas: regular expressions in Go's syntax, which are matched with Python's ``re``.

Only a few constructs must be translated: ``$`` and ``\z``, classes such as ``[[:alpha:]]``, and ``\Q…\E``.
Patterns with Unicode classes such as ``\p{L}`` are not checked, because Python does not support them.
"""

from __future__ import annotations

import functools
import re
from typing import Final

_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN: Final = re.compile(
    r"\\Q(.*?)(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\$|\(\?[^)]{0,3}", re.DOTALL
)
_CLASS: Final = re.compile(r"\[:(\^?)(\w+):\]")
_MULTILINE: Final = re.compile(r"\(\?[a-zA-Z]*m")
_PROBLEMS: Final = {
    "unterminated character set": "missing closing ]",
    "missing )": "missing closing )",
    "unbalanced parenthesis": "unexpected )",
    "nothing to repeat": "missing argument to repetition operator",
}
"""Go's messages for Python's errors.  Patterns with other errors may compile in Go."""
_UNKNOWN_TO_GO: Final = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?#")


class PatternError(ValueError):
    """An error for a pattern that Go cannot compile, with Go's message."""


def go_problem(pattern: str) -> str:
    """Return the reason why Go cannot compile a pattern, or an empty string if no reason is known."""
    try:
        compiled(pattern)
    except PatternError as exc:
        return str(exc)
    return ""


@functools.lru_cache(1_024)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a compiled pattern, or None if Python does not support it.

    Raises:
        PatternError: Go cannot compile the pattern.
    """
    if r"\p" in pattern or r"\P" in pattern or r"\C" in pattern:
        return None
    translated = _TOKEN.sub(_translated, pattern)
    if _MULTILINE.search(pattern):
        translated = translated.replace(r"\Z", "$")
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError) as exc:
        for problem, text in _PROBLEMS.items():
            if problem in str(exc):
                raise PatternError(f"error parsing regexp: {text}: `{pattern}`") from exc
        return None


def _translated(found: re.Match[str]) -> str:
    token = found[0]
    if found[1] is not None:
        return re.escape(found[1])
    if token == "$":
        return r"\Z"  # Python's ``$`` also matches before a newline at the end
    if token == r"\z":
        return r"\Z"
    if token.startswith("["):
        return "[" + _CLASS.sub(_class, token[1:-1]).replace("[", r"\[").replace(r"\\[", r"\[") + "]"
    if token.startswith(_UNKNOWN_TO_GO):
        end = 4 if token.startswith("(?<") else 3
        raise PatternError(f"error parsing regexp: invalid or unsupported Perl syntax: `{token[:end]}`")
    if token[0] == "\\" and token[1] in "123456789Z":
        raise PatternError(f"error parsing regexp: invalid escape sequence: `{token}`")
    return token


def _class(found: re.Match[str]) -> str:
    characters = _CLASSES.get(found[2])
    if characters is None or found[1]:
        raise PatternError(f"error parsing regexp: invalid character class range: `{found[0]}`")
    return characters
