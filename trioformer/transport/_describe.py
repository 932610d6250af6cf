"""What unexpected bytes are, in words.

The body of a success may be an object, so no text quotes it: not an error's, nor a log's.
Only the title of a page is named, which tells a login page from that of a load balancer.
"""

from __future__ import annotations

import re
from typing import Final

from .._text import one_line

_SEARCHED: Final = 4096
"""Bytes in which the title of an HTML page is searched."""
_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)</title", re.IGNORECASE)
_MAX_TITLE: Final = 100
"""Characters of a title that are shown."""


def excerpt(data: bytes, *, longest: int = 100, is_error: bool = False) -> str:
    """Describe unexpected bytes for an error, or show the beginning of a text that is one: a line of printable text.

    Only the text of an error is shown, which ``is_error`` says.
    Anything else may be an object, such as a Secret, or a page for somebody who is logged in.
    """
    if not is_error:
        return _description(data)
    text = data[: 4 * longest].decode("utf-8", "replace")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not line:
        return "nothing" if not data else f"{len(data)} bytes that are not text"
    return line if len(line) <= longest else f"{line[:longest]}…"


def _description(data: bytes) -> str:
    begin = data[:_SEARCHED].lstrip()[:1]
    if not begin:
        return "white space" if data else "nothing"
    if begin in (b"{", b"["):
        return "something that begins like JSON"
    title = html_title(data)
    if title is None:
        return "something that is not JSON"
    return f"HTML titled {title!r}" if title else "HTML"


def html_title(data: bytes) -> str | None:
    """Return the title of an HTML page as one line, empty if it has none; None if it is not a page."""
    if data[:_SEARCHED].lstrip()[:1] != b"<":
        return None
    found = _TITLE.search(data[:_SEARCHED].decode("utf-8", "replace"))
    if not found:
        return ""
    import html  # noqa: PLC0415  # only for pages of proxies

    return one_line(html.unescape(found[1]), longest=_MAX_TITLE)
