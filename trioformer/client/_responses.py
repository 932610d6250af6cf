"""What the server answered: an object, a status_error, or something that no API server sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, cast

import trio

from ..errors import DecodeError, StatusError, TrioformerError, UnexpectedResponseError
from ..models import KubernetesObject
from ..models._internal import decode, make_object
from ..transport._internal import ByteStream, Response, excerpt
from ._wire_format import WireFormat, kind_in

T = TypeVar("T", bound=KubernetesObject)

LONGEST_REFUSAL: Final = 64 * 1024
"""Bytes of a streamed status_error that are read; a Status is much shorter."""
REFUSAL_PATIENCE: Final = 5.0
"""Seconds that a streamed status_error may take to arrive."""

HINT: Final = "check that the configured address is an API server's"
"""What to do about an answer that is none."""

# apimachinery pkg/api/errors, NewGenericServerResponse.
_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def check(answer: Response, *, method: str, where: str) -> None:
    """Make sure that the server did what it was asked.

    Raises:
        StatusError: It refused.
        UnexpectedResponseError: It answered as no API server does.
    """
    if not 200 <= answer.code <= 206:
        raise status_error(answer, method=method, where=where)


def object_in(answer: Response, wire_format: WireFormat[T], *, method: str, where: str) -> T:
    """Make the object that an answer holds.

    Raises:
        StatusError: The server refused.
        UnexpectedResponseError: The answer holds no object of this kind.
    """
    check(answer, method=method, where=where)
    try:
        found = kind_in(answer.body)
        kept, head = wire_format.keep(answer.body)
    except (ValueError, RecursionError) as exc:
        raise _unexpected(answer, where, f"holds no {wire_format.name}") from exc
    if found not in ("", *wire_format.names):
        raise _unexpected(answer, where, f"holds a {found}, not a {wire_format.name}")
    return make_object(wire_format.kind, kept, head)


async def streamed_status_error(stream: ByteStream, *, method: str, where: str) -> TrioformerError:
    """Read what a streamed answer that is no success says, and make the error of it.

    Raises:
        ConnectionFailedError: The answer broke off.
    """
    body = bytearray()
    # A body without end must not keep the caller from learning of the status_error.
    with trio.move_on_after(REFUSAL_PATIENCE):
        while len(body) < LONGEST_REFUSAL and (chunk := await stream.receive_some()):
            body += chunk
    return status_error(Response(stream.code, stream.headers, bytes(body)), method=method, where=where)


def status_error(answer: Response, *, method: str, where: str) -> TrioformerError:
    """Make the error of an answer that is no success.

    A Status says itself what is wrong.
    What else a client or server error holds is quoted, with the reason that client-go gives to its code, since
    authenticating proxies and the API server's own outer layers answer in plain text.
    HTML and half a JSON object come from no API server.
    """
    try:
        status: object = decode(answer.body)
    except (DecodeError, RecursionError):
        if answer.body.lstrip()[:1] in (b"{", b"[", b"<"):
            return _unexpected(answer, where, "is no Status")
        status = None
    if isinstance(status, dict):
        members = cast("dict[str, object]", status)
        if members.get("kind") == "Status":
            return StatusError.from_status(_with_retry_after(members, answer), code=answer.code, where=where)
    if answer.code < 400:
        place = answer.headers.get("location", "").partition("?")[0]
        return _unexpected(answer, where, f"redirects to {place}" if place else "is no Kubernetes object")
    reason = _REASONS.get(answer.code, "InternalError" if answer.code >= 500 else "")
    if answer.code == 409 and method == "POST":
        reason = "AlreadyExists"
    text = excerpt(answer.body, is_error=True) if answer.body else "the server gave no reason"
    made = {"reason": reason, "message": text}
    return StatusError.from_status(_with_retry_after(made, answer), code=answer.code, where=where)


def _with_retry_after(status: Mapping[str, object], answer: Response) -> Mapping[str, object]:
    """Move a ``Retry-After`` header into the details, unless they tell already; a date is ignored, as in client-go."""
    after = answer.headers.get("retry-after", "")
    details = status.get("details")
    known = cast("dict[str, object]", details) if isinstance(details, dict) else {}
    if not (after.isascii() and after.isdigit()) or known.get("retryAfterSeconds"):
        return status
    return {**status, "details": {**known, "retryAfterSeconds": int(after)}}


def _unexpected(answer: Response, where: str, problem: str) -> UnexpectedResponseError:
    return UnexpectedResponseError(
        f"{where}: the answer (HTTP {answer.code}) {problem}: {excerpt(answer.body)}; {HINT}", code=answer.code
    )
