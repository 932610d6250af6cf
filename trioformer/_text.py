"""Text that a server or a tenant wrote, made harmless for terminals, logs and reports.

A terminal obeys escape sequences, a log is read line by line, and both show a text in another order after a
bidirectional control.  A lone surrogate cannot be written to either, and a megabyte is read by nobody.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 4_000
"""Characters of a text; enough for every message of a server that people are meant to read."""


MAX_NAME: Final = 253
"""Characters of a name in a text, as many as Kubernetes allows."""


def one_line(text: str, *, longest: int = LONGEST) -> str:
    r"""Return a text as one line of printable characters.

    White space and line ends become single spaces, every other character that is not printable its escape, such as
    ``\x1b``.
    A longer text is cut, and ends with the number of its characters; its line is not changed by another call.

    Args:
        text: The text.
        longest: The most characters of the line; at least 40.
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


def quoted(text: str, *, longest: int = MAX_NAME) -> str:
    """Return a text in quotes, with escapes; only the beginning of a long one."""
    return repr(text) if len(text) <= longest else f"{text[:longest]!r}…"


def _escaped(line: str) -> str:
    # repr() escapes what is not printable, fifty times as fast as a loop; but backslashes and quotes as well.
    has_both_quotes = "'" in line and '"' in line
    escaped = repr(line)[1:-1].replace("\\\\", "\\")
    return escaped.replace("\\'", "'") if has_both_quotes else escaped
