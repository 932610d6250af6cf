"""What the body of an unexpected response is, in words; and the Status of a failure in one.

A body of success may be an object, so no text quotes it: not an error's, nor a log's.
What is named, a page's title or a kind, is short, and a kind only if it is the name of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from .._text import one_line
from ..errors import DecodeError
from ..models._internal import decode, kind_problem, level_decoder
from ..transport._internal import excerpt

_MAX_LOCATION: Final = 200
"""Characters of the address of a redirect that are shown."""

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


def shown_location(location: str) -> str:
    """Return the address of a redirect without what may be secret: user, password, query and fragment."""
    address = re.split(r"[?#;]", location, maxsplit=1)[0]
    scheme, slashes, rest = address.replace("\\", "/").partition("//")
    if not slashes:
        return "" if "@" in address else one_line(address, longest=_MAX_LOCATION)
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2]
    return "" if "@" in scheme + path else one_line(f"{scheme}//{host}{slash}{path}", longest=_MAX_LOCATION)


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
