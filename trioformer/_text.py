"""Convert text from a server or a tenant so that it is harmless in terminals, logs and reports.

Terminals obey escape sequences, and logs are read line by line. After a bidirectional control character, text is
displayed in a different order.  A lone surrogate cannot be written to a terminal or a log, and a megabyte of text is
too long to read.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from typing import Final

LONGEST: Final = 4_000
"""The maximum number of characters of a text, which is enough for any readable message from a server."""


MAX_NAME: Final = 253
"""The maximum number of characters of a name in a text, which is as many as Kubernetes allows."""


def one_line(text: str, *, longest: int = LONGEST) -> str:
    r"""Return a text as one line of printable characters.

    White space and line ends become single spaces, and other unprintable characters become escapes such as ``\x1b``.
    A longer text is truncated, and its original length is appended. Calling the function again does not change
    the result.

    Args:
        text: The text.
        longest: The maximum length of the line in characters, at least 40.
    """
    if len(text) <= longest and text.isascii() and text.isprintable() and "  " not in text and text == text.strip():
        return text
    line = " ".join(text[: 2 * longest].split())
    is_cut = len(text) > 2 * longest or len(line) > longest
    if not line.isprintable():
        line = _escaped(line[:longest])
    if is_cut or len(line) > longest:
        end = f"… ({len(text)} characters)"
        line = line[: longest - len(end)] + end
    return line


# C0 except tabs and line ends, DEL, C1, lone surrogates, and characters that change the direction of text.
_CONTROL: Final = (
    r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_CONTROLS: Final = re.compile(_CONTROL)
_CONTROLS_BUT_COLORS: Final = re.compile(rf"(?!\x1b\[[0-9;:]*m)(?:{_CONTROL})")


def for_terminal(text: str, *, keeps_colors: bool = False) -> str:
    r"""Return a text with escaped control characters, such as ``\u001b``. Line ends and tabs are kept.

    Args:
        text: The text.
        keeps_colors: Whether to keep the escape sequences that set colors.
    """
    pattern = _CONTROLS_BUT_COLORS if keeps_colors else _CONTROLS
    return pattern.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def quoted(text: str, *, longest: int = MAX_NAME) -> str:
    """Return a text in quotes, with escapes. Only the beginning of a long text is returned."""
    return repr(text) if len(text) <= longest else f"{text[:longest]!r}…"


def some_of(names: Collection[str], *, most: int = 5) -> str:
    """Join the first few names, and append the number of remaining names."""
    named = ", ".join(islice(names, most))
    return named if len(names) <= most else f"{named} and {len(names) - most} more"


def describe_error(error: BaseException) -> str:
    """Describe an error in one line. For an exception group, describe the first exceptions in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(describe_error, error.exceptions[:3]))
    text = one_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def error_names(error: BaseException) -> str:
    """Return the name of an error's class. For an exception group, return the names of all classes in it."""
    if isinstance(error, BaseExceptionGroup):
        return ", ".join(sorted({error_names(each) for each in error.exceptions}))
    return type(error).__name__


def suppressed_lines(count: int) -> str:
    """Return the end of a log line that stands for this number of suppressed lines, too."""
    return f" ({count} suppressed since the last such line)" if count > 0 else ""


def _escaped(line: str) -> str:
    # repr() escapes unprintable characters fifty times as fast as a loop, but also backslashes and quotes.
    has_both_quotes = "'" in line and '"' in line
    escaped = repr(line)[1:-1].replace("\\\\", "\\")
    return escaped.replace("\\'", "'") if has_both_quotes else escaped
