"""Responses of the embedded server that are not streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import attrs

from ...models._internal import dumps
from .._storage._status import APIStatusError, encode_status
from .._storage._storage import JSONObject

JSON_TYPE = "application/json"


@final
@attrs.frozen(kw_only=True)
class Response:
    """One response."""

    code: int = 200
    """The HTTP code."""
    chunks: Iterable[bytes]
    """The body. A single piece is sent with a Content-Length, and several pieces are sent as chunks."""
    content_type: str = JSON_TYPE
    """The media type."""
    encoding: str = JSON_TYPE
    """The media type to which the body, which is JSON, is converted when it is sent."""
    headers: tuple[tuple[str, str], ...] = ()
    """Other headers."""


def json_response(
    obj: JSONObject, *, code: int = 200, content_type: str = JSON_TYPE, encoding: str = JSON_TYPE
) -> Response:
    """Return a response with a JSON object."""
    return Response(code=code, chunks=[dumps(obj) + b"\n"], content_type=content_type, encoding=encoding)


def text_response(text: str, *, code: int = 200) -> Response:
    """Return a response with plain text."""
    return Response(code=code, chunks=[text.encode()], content_type="text/plain; charset=utf-8")


def not_found_page() -> Response:
    """Return the response for a path that does not belong to any API."""
    return text_response("404 page not found\n", code=404)


def error_response(error: APIStatusError, *, encoding: str = JSON_TYPE) -> Response:
    """Return a response with the Status of an error."""
    headers = () if error.retry_after is None else (("retry-after", str(error.retry_after)),)
    return Response(code=error.code, chunks=[encode_status(error.status)], headers=headers, encoding=encoding)
