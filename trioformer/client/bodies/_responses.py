"""Conversion of responses to objects and errors.

If the server rejects a request, a StatusError is raised. If a response cannot come from an API server, an
UnexpectedResponseError is raised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeVar, cast

import attrs

from ..._suggestions import with_article
from ..._text import one_line
from ...errors import (
    ConnectionFailedError,
    DecodeError,
    StatusError,
    TrioformerError,
    UnexpectedResponseError,
)
from ...errors._internal import UNEXPECTED_SERVER_RESPONSE, details_in
from ...models import KubernetesObject, Model, ResourceInfo, Unstructured, resource_of, unstructured_kind
from ...models._internal import MAGIC, TOO_DEEP, Head, decode, kind_problem, level_decoder, make_object, scan_head
from ...transport._internal import ByteStream, Response, request_id_in
from ._contents import describe, error_text, failure_in, shown_kind, text_in
from ._wire_format import WireFormat

M = TypeVar("M", bound=Model)
T = TypeVar("T", bound=KubernetesObject)

MAX_STATUS: Final = 64 * 1024
"""The maximum number of bytes that are read from a streamed error response. A Status is much shorter."""

_WRITTEN: Final = "the server reports success, so read the object before you try again"
"""The advice that is added to an error after a write."""

_metadata_of: Final = level_decoder(("metadata",))
_DIGITS: Final = re.compile(r"[0-9]{1,9}")

REASONS: Final[Mapping[int, str]] = {
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
"""The reasons by code, as in apimachinery's ``NewGenericServerResponse``."""


def check(response: Response, *, method: str, where: str) -> None:
    """Raise an error if the HTTP code of a response does not indicate success."""
    if not 200 <= response.code <= 206:
        raise status_error(response, method=method, where=where)


def raise_failure(response: Response | ByteStream, body: bytes, *, where: str) -> None:
    """Raise an error if the body is the Status of a failure, even if the HTTP code indicates success."""
    if (status := failure_in(body)) is not None:
        raise _error_of(status, response, where=where)


def add_origin(error: StatusError, response: Response | ByteStream) -> StatusError:
    """Add a note about the origin of the response to an error, and return the error.

    The note names the server and the place where the server is configured. After a 401 or 403, it also names the kind
    of credential. The note is not part of the error's message. The message must stay short, because programs store it
    in the status of objects.
    """
    note = f"server: {response.server}"
    if error.code in (401, 403):
        note += f"; credential: {response.credential}"
    error.add_note(one_line(note))
    return error


def object_in(response: Response, wire_format: WireFormat[T], *, method: str, where: str) -> T:
    """Return the object in a response.

    Raises:
        StatusError: The server rejected the request.
        UnexpectedResponseError: The response is not an object of this kind.
        DecodeError: The response is an object of this kind, but cannot be decoded or is nested too deeply.
    """
    check(response, method=method, where=where)
    found = None
    try:
        found = wire_format.kind_of(response.body)
        if found == "Status":
            raise_failure(response, response.body, where=where)
        data, head = wire_format.scan_single(response.body)
    except (ValueError, RecursionError) as exc:
        is_ours = found in wire_format.names
        raise undecodable(exc, response, where, wire_format.name, is_ours=is_ours, method=method) from exc
    if found not in ("", *wire_format.names):
        problem = f"{shown_kind(found)}, not {with_article(wire_format.name)}"
        raise unexpected_response(response, where, problem, method=method)
    return make_object(wire_format.kind, data, head)


def object_of_another_kind(body: bytes, found: str, resource: ResourceInfo, head: Head) -> Unstructured:
    """Return the object in a response as an Unstructured object of its own kind."""
    # No server has a resource of this name: an API of this kind must not address the objects that it belongs to.
    plural = f"{found.lower()}-of-{resource.plural}"[:63].rstrip("-")
    kind = unstructured_kind(text_in(body, "apiVersion"), found, plural=plural, namespaced=resource.namespaced)
    return make_object(kind, body, head)


def created_in(response: Response, wire_format: WireFormat[T], sent: T, *, where: str) -> T:
    """Return the object in the response to a create request, or the sent object if the response is a Status.

    A create request for a custom kind may create an object of another kind in the same API group. That object is
    returned if the sent object is Unstructured. Otherwise, the sent object is returned.
    """
    check(response, method="POST", where=where)
    try:
        found = wire_format.kind_of(response.body)
    except (ValueError, RecursionError):
        found = ""  # object_in() raises the error
    if found == "Status":
        raise_failure(response, response.body, where=where)
        return sent
    if found not in ("", *wire_format.names) and not wire_format.is_builtin:
        return made_by(response, sent, resource_of(wire_format.kind), found, where)
    if found:  # a review is not stored and may lack metadata
        response = _with_metadata(response)
    return object_in(response, wire_format, method="POST", where=where)


def made_by(response: Response, sent: M, resource: ResourceInfo, found: str, where: str) -> M:
    """Return the created object of another kind, such as the Project that a ProjectRequest creates.

    A typed class cannot represent an object of another kind. So if the sent object is typed, it is returned, as after a
    Status response.
    """
    problem = f"{shown_kind(found)}, not {with_article(resource.kind)}"
    try:
        response = _with_metadata(response)
        head = scan_head(response.body)
        is_same_group = text_in(response.body, "apiVersion").rpartition("/")[0] == resource.group
        if is_same_group and not kind_problem(found):
            if not isinstance(sent, Unstructured):
                return sent
            return cast("M", object_of_another_kind(response.body, found, resource, head))
    except ValueError as exc:
        raise unexpected_response(response, where, problem, method="POST") from exc
    raise unexpected_response(response, where, problem, method="POST")


def _with_metadata(response: Response) -> Response:
    """Add empty metadata to the JSON object in a response if the object has no metadata."""
    try:
        (metadata,) = _metadata_of(response.body)
    except (ValueError, RecursionError):
        return response  # object_in() raises the error
    if bytes(metadata):
        return response
    _, _, members = response.body.partition(b"{")
    return attrs.evolve(response, body=b'{"metadata":{},' + members)


def undecodable(
    error: ValueError | RecursionError, response: Response, where: str, expected: str, *, is_ours: bool, method: str
) -> DecodeError | UnexpectedResponseError:
    """Return the error for an object that cannot be decoded.

    After a write, the error also states that the server reported success. If the object is not of the requested kind
    (``is_ours`` is false), the error suggests checking the server's address.
    """
    hint = "" if method == "GET" else f"; {_WRITTEN}"
    if isinstance(error, RecursionError) and response.body.lstrip().startswith(b"{"):
        # Even its kind is unknown.
        return DecodeError(f"{where}: {response.server}: cannot decode {with_article(expected)}: {TOO_DEEP}{hint}")
    if is_ours and isinstance(error, DecodeError):
        return DecodeError(f"{where}: {response.server}: {error}{hint}")
    return unexpected_response(response, where, f"not {with_article(expected)}", method=method)


async def streamed_status_error(stream: ByteStream, *, method: str, where: str) -> TrioformerError:
    """Read the body of an unsuccessful streamed response, and return the error for it."""
    body = await stream.read_short(MAX_STATUS)
    response = Response(stream.code, stream.headers, body, stream.server, stream.credential, stream.history)
    return status_error(response, method=method, where=where)


async def drain(stream: ByteStream) -> bytes:
    """Read and return a short body, so that its connection can be reused.

    If the body ends early, an empty body is returned.
    """
    with suppress(ConnectionFailedError):
        return await stream.read_short(MAX_STATUS)
    return b""


def status_error(response: Response, *, method: str, where: str) -> TrioformerError:
    """Return the error for an unsuccessful response.

    If the body is a Status, the error has the code, reason and message of the Status. With any other body, the HTTP
    code determines the error class, as in client-go. Such responses come from authenticating proxies, the outer layers
    of the API server and load balancers. ``StatusError.is_unexpected_server_error`` is true for these errors.
    """
    if (failure := failure_in(response.body)) is not None and response.body.startswith(MAGIC):
        return _error_of(failure, response, where=where)
    try:
        status: object = decode(response.body)
        is_json = True
    except (DecodeError, RecursionError):
        status, is_json = None, False
    if isinstance(status, dict):
        members = cast("dict[str, object]", status)
        if members.get("kind") == "Status":
            return _error_of(members, response, where=where)
    if response.code < 400:
        problem = "a redirect, which is not followed" if "location" in response.headers else "not a Kubernetes object"
        return unexpected_response(response, where, problem)
    reason = REASONS.get(response.code, "InternalError" if response.code >= 500 else "")
    if response.code == 409 and method == "POST":
        reason = "AlreadyExists"
    what = f"the body is {len(response.body)} bytes of JSON, but not a Status"
    text = what if is_json else one_line(error_text(response.body))
    cause = {"reason": UNEXPECTED_SERVER_RESPONSE, "message": text}
    made = {"reason": reason, "message": text, "details": {"causes": [cause]}}
    return _error_of(made, response, where=where)


def _error_of(status: Mapping[str, object], response: Response | ByteStream, *, where: str) -> StatusError:
    error = StatusError.from_status(
        _with_retry_after(status, response),
        code=response.code,
        where=where,
        request_id=request_id_in(response.headers),
    )
    if response.history:  # not part of the message, which must stay the same when the error repeats
        error.add_note(response.history)
    return add_origin(error, response)


def _with_retry_after(status: Mapping[str, object], response: Response | ByteStream) -> Mapping[str, object]:
    """Add the seconds of a ``Retry-After`` header to the details of the Status, and return the Status.

    The Status is returned unchanged if its details already have a value, or if the header is a date or a huge number.
    """
    after = response.headers.get("retry-after", "")
    details = status.get("details")
    known = cast("dict[str, object]", details) if isinstance(details, dict) else {}
    if not _DIGITS.fullmatch(after) or details_in(status).retry_after_seconds:
        return status
    return {**status, "details": {**known, "retryAfterSeconds": int(after)}}


def unexpected_response(
    response: Response, where: str, problem: str, *, method: str = "GET"
) -> UnexpectedResponseError:
    """Return the error for a response that cannot come from an API server.

    ``problem`` says what is wrong with the response, for example "not a Status". Pass ``method`` if the HTTP code
    indicates success. After a write, the error then advises reading the object before trying again.
    """
    hint = f"check that {response.server} is an API server"
    if method != "GET":
        hint = f"{_WRITTEN}, and {hint}"
    return UnexpectedResponseError(
        f"unexpected response (HTTP {response.code}) to {where}: {problem}: {describe(response.body)}; {hint}",
        code=response.code,
        request_id=request_id_in(response.headers),
    )
