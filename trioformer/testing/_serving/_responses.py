"""Answers of the embedded server that are complete before their first byte is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import attrs

from ...models._internal import dumps
from .._storage._status import RefusedError, encode_status
from .._storage._storage import JSONObject

JSON_TYPE = "application/json"


@final
@attrs.frozen(kw_only=True)
class Response:
    """A response."""

    code: int = 200
    """The HTTP code."""
    chunks: Iterable[bytes]
    """The body; one piece is sent with its length, several are sent chunked."""
    content_type: str = JSON_TYPE
    """The media type."""
    headers: tuple[tuple[str, str], ...] = ()
    """Other headers."""


def json_answer(obj: JSONObject, *, code: int = 200, content_type: str = JSON_TYPE) -> Response:
    """Answer with a JSON object."""
    return Response(code=code, chunks=[dumps(obj) + b"\n"], content_type=content_type)


def text_answer(text: str, *, code: int = 200) -> Response:
    """Answer with a text."""
    return Response(code=code, chunks=[text.encode()], content_type="text/plain; charset=utf-8")


def refused_answer(refused: RefusedError) -> Response:
    """Answer with a Status."""
    headers = () if refused.retry_after is None else (("retry-after", str(refused.retry_after)),)
    return Response(code=refused.code, chunks=[encode_status(refused.status)], headers=headers)
