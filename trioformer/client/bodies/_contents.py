"""Descriptions of unexpected response bodies, and a function that finds the Status of a failure in a body.

A successful response may contain an object with secrets, so errors and log lines never quote its body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, cast

from ..._suggestions import with_article
from ..._text import one_line
from ...errors import DecodeError
from ...models._internal import MAGIC, Head, Message, decode, kind_problem, level_decoder, open_envelope, status_of

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
"""The type of a watch event."""

WatchFrame: TypeAlias = tuple[EventType, bytes | Message, Head] | tuple[Literal["ERROR"], bytes | Message, None]
"""The type of an event, the bytes of its object, and the object's head.

The object of an ``ERROR`` event is a Status, which has no head.
"""

_SEARCHED: Final = 4096
"""The number of bytes at the beginning of a body that are searched for the text of an error."""
_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)</title", re.IGNORECASE)
_LONGEST: Final = 100
"""The maximum number of characters of a text or a title that are shown."""

_decoders: Final = {name: level_decoder((name,)) for name in ("kind", "apiVersion")}


def text_in(body: bytes, name: Literal["kind", "apiVersion"] = "kind") -> str:
    """Return a member of a JSON object if the member is a string, or otherwise an empty string.

    Raises:
        ValueError: The body is not a JSON object.
    """
    (raw,) = _decoders[name](body)
    text: object = decode(raw) if bytes(raw) else ""
    return text if isinstance(text, str) else ""


def shown_kind(kind: str) -> str:
    """Return the kind of an object with an article for an error message, such as "a Pod".

    If the name of the kind is not valid, the name is not shown.
    """
    return "an object without a valid kind" if kind_problem(kind) else with_article(kind)


def describe(body: bytes) -> str:
    """Describe a body by its size and its format, without quoting its content."""
    if not body:
        return "an empty body"
    try:
        kind = text_in(body)
    except (ValueError, RecursionError):
        what = "HTML" if _first_of(body) == b"<" else "not JSON"
    else:
        what = "JSON" if kind_problem(kind) else f"JSON of kind {kind}"
    return f"{len(body)} bytes, {what}"


def failure_in(body: bytes) -> Mapping[str, object] | None:
    """Return the Status in a body if it reports a failure, or otherwise None.

    As in client-go (``rest.Result``), a Status is a failure unless its ``status`` is "Success". The HTTP code is
    ignored.
    """
    if body.startswith(MAGIC):
        return _failure_in_message(body)
    try:
        if text_in(body) != "Status":
            return None
        status = read_status(body)
    except (ValueError, RecursionError):
        return None
    return None if status.get("status") == "Success" else status


def _failure_in_message(body: bytes) -> Mapping[str, object] | None:
    try:
        _, kind, data = open_envelope(body)
        status = status_of(data) if kind == "Status" else {"status": "Success"}
    except DecodeError:
        return None
    return None if status.get("status") == "Success" else status


def read_status(data: bytes | Message) -> Mapping[str, object]:
    """Decode a Status, in JSON or in protobuf.

    Raises:
        DecodeError: The data is not a JSON object, or is nested too deeply.
    """
    if isinstance(data, Message):
        return status_of(data.data)
    try:
        status: object = decode(data)
    except RecursionError as exc:
        raise DecodeError("the Status has too many levels") from exc
    if not isinstance(status, dict):
        raise DecodeError("the Status is not a JSON object")
    return cast("Mapping[str, object]", status)


def error_text(body: bytes) -> str:
    """Extract an error message from a body that is not JSON.

    The message is the text of the body as one line, or the title of an HTML page.
    """
    if not body:
        return "the server gave no reason"
    begin, text = _first_of(body), body[:_SEARCHED].decode("utf-8", "replace")
    if begin == b"<":
        import html  # noqa: PLC0415  # only for pages of proxies

        found = _TITLE.search(text)
        title = one_line(html.unescape(found[1]), longest=_LONGEST) if found else ""
        return f"the body is HTML, so a proxy or load balancer may have sent it{title and f': {title}'}"
    if begin in (b"{", b"["):
        return "the body begins like JSON, but is not JSON"
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not line:
        return f"{len(body)} bytes that are not text"
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _first_of(body: bytes) -> bytes:
    return body[:_SEARCHED].lstrip()[:1]
