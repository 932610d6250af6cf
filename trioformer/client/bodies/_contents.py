"""What the body of an unexpected response is, in words; and the Status of a failure in one.

A body of success may be an object, so no text quotes it: not an error's, nor a log's.
What is named, a page's title or a kind, is short, and a kind only if it is the name of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from ..._text import one_line
from ...errors import DecodeError
from ...models._internal import decode, kind_problem, level_decoder

_SEARCHED: Final = 4096
"""Bytes in which the title of an HTML page is searched."""
_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)</title", re.IGNORECASE)
_MAX_TITLE: Final = 100
"""Characters of a title that are shown."""
MAX_STATUS: Final = 256 * 1024
"""Bytes of a Status that is decoded; it takes a millisecond."""
_DECIDING: Final = ("status", "reason", "code")
_MAX_DECIDING: Final = 100
"""Bytes of a member that decides about the class of an error."""

_decider_of: Final = level_decoder(_DECIDING)
_kind_of: Final = level_decoder(("kind",))


def kind_in(body: bytes) -> str:
    """Return the ``kind`` of a JSON object; empty if it has none.

    Raises:
        ValueError: It is not a JSON object.
    """
    (raw,) = _kind_of(body)
    kind: object = decode(raw) if bytes(raw) else ""
    return kind if isinstance(kind, str) else ""


def shown_kind(kind: str) -> str:
    """Return the kind of an object for an error, with its article; not a text that is no name of a kind."""
    if kind_problem(kind):
        return "an object of no valid kind"
    return f"a {kind}"


def describe(body: bytes) -> str:
    """Describe a body without a quotation: its size, and an HTML page's title or the kind of JSON."""
    if not body:
        return "an empty body"
    return f"{len(body)} bytes, {_content_of(body)}"


def _content_of(body: bytes) -> str:
    try:
        kind = kind_in(body)
    except (ValueError, RecursionError):
        return excerpt(body)
    return f"JSON of kind {kind}" if not kind_problem(kind) else "JSON"


def failure_in(body: bytes) -> Mapping[str, object] | None:
    """Return the Status of a failure in a body; None if it is anything else, also if it is a Status of success.

    As in client-go (``rest.Result``), every Status that does not say "Success" is a failure, whatever the HTTP code.
    """
    try:
        if kind_in(body) != "Status":
            return None
        status = read_status(body)
    except (ValueError, RecursionError):
        return None
    return None if status.get("status") == "Success" else status


def read_status(data: bytes) -> Mapping[str, object]:
    """Decode a Status; of one that is too long to be decoded in one piece, only what decides about its error.

    Raises:
        DecodeError: It is not a JSON object, or has too many levels.
    """
    if len(data) <= MAX_STATUS:
        status: object = decode(data)
        if not isinstance(status, dict):
            raise DecodeError("the Status is not a JSON object")
        return cast("Mapping[str, object]", status)
    try:
        raws = zip(_DECIDING, _decider_of(data), strict=True)
    except (ValueError, RecursionError) as exc:
        raise DecodeError("the Status is not a JSON object, or has too many levels") from exc
    deciding = {name: decode(raw) for name, raw in raws if 0 < len(memoryview(raw)) <= _MAX_DECIDING}
    return {**deciding, "message": f"the Status has {len(data)} bytes and is not shown"}


def excerpt(data: bytes, *, longest: int = 100, is_error: bool = False) -> str:
    """Describe unexpected bytes for an error, or show the beginning of a text that is one: a line of printable text.

    Only the text of an error is shown, which ``is_error`` says.
    Anything else may be an object, such as a Secret, or a page with private content.
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
