"""Errors as ``Status`` objects, with the reasons, messages and details of kube-apiserver that clients read.

Source: apimachinery ``pkg/api/errors``, and responses of kube-apiserver v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...models import ResourceInfo
from ...models._internal import dumps
from ._storage import JSONObject

REASONS: Mapping[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "forbidden"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Expired", "The resourceVersion for the provided watch is too old."),
    413: ("RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
    415: ("UnsupportedMediaType", "415: Unsupported Media Type"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "an error on the server has prevented the request from succeeding"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted"),
}
"""The default reason and message for each HTTP code."""

SUCCESS: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def excerpt(text: str) -> str:
    """Return a string for quotation in an error message. A long string is truncated."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}... ({len(text)} characters)"


_LONGEST_TEXT = 4_000
_MOST_CAUSES = 50


class APIStatusError(Exception):
    """An error that is sent to the client as the Status in a response.

    Clients raise this error as :class:`~trioformer.errors.StatusError`.

    Attributes:
        status: The Status object.
        retry_after: The seconds in the ``Retry-After`` header, or None for no header.
    """

    def __init__(self, status: JSONObject, *, retry_after: int | None = None) -> None:
        super().__init__(status["message"])
        self.status = status
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        """The HTTP code."""
        code: int = self.status["code"]
        return code


def status_of(
    code: int,
    reason: str,
    message: str,
    *,
    details: JSONObject | None = None,
    metadata: JSONObject | None = None,
) -> JSONObject:
    """Return a Status.  As in kube-apiserver, an empty reason and missing details are omitted."""
    status: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": metadata or {}, "status": "Failure"}
    status["message"] = excerpt(message)
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    return {**status, "code": code}


def status_error(
    code: int,
    *,
    message: str | None = None,
    reason: str | None = None,
    details: JSONObject | None = None,
    retry_after: int | None = None,
) -> APIStatusError:
    """Return the error for an HTTP status code.  The reason and the message have defaults."""
    usual = REASONS.get(code, ("InternalError" if code >= 500 else "", f"HTTP {code}"))
    if retry_after is not None:
        details = {**(details or {}), "retryAfterSeconds": retry_after}
    status = status_of(code, usual[0] if reason is None else reason, message or usual[1], details=details)
    return APIStatusError(status, retry_after=retry_after)


NOT_AN_OBJECT = "json: cannot unmarshal string into Go value of type map[string]interface {}"
"""What Go's decoder says about a body that is not a JSON object, but a string."""


def bad_request(message: str) -> APIStatusError:
    """Return a 400 error: the request is not valid."""
    return status_error(400, message=message)


def internal_error(problem: str) -> APIStatusError:
    """Return a 500 error: the server cannot complete the request."""
    details = {"causes": [{"message": problem}]}
    return status_error(500, message=f"Internal error occurred: {problem}", details=details)


def unknown_format(media_types: str) -> APIStatusError:
    """Return a 415 error: the server does not accept the media type of the body."""
    text = "the body of the request was in an unknown format - accepted media types include"
    return status_error(415, message=f"{text}: {media_types}")


def _details(info: ResourceInfo, name: str, **more: object) -> JSONObject:
    details: JSONObject = {"name": excerpt(name)} if name else {}
    if info.group:
        details["group"] = info.group
    return {**details, "kind": info.plural, **more}


def not_found(info: ResourceInfo, name: str) -> APIStatusError:
    """Return a 404 error: the object does not exist."""
    return status_error(404, message=f'{info} "{name}" not found', details=_details(info, name))


def already_exists(info: ResourceInfo, name: str, *, is_deleting: bool = False) -> APIStatusError:
    """Return a 409 error: an object with this name exists."""
    message = f'{"object is being deleted: " if is_deleting else ""}{info} "{name}" already exists'
    return status_error(409, reason="AlreadyExists", message=message, details=_details(info, name))


def conflict(
    info: ResourceInfo, name: str, problem: str | None = None, *, subresource: str | None = None
) -> APIStatusError:
    """Return a 409 error for a conflict.

    ``problem`` describes the conflict; by default, the object has another resourceVersion.
    """
    usual = "the object has been modified; please apply your changes to the latest version and try again"
    what = f"{info}/{subresource}" if subresource else str(info)
    message = f'Operation cannot be fulfilled on {what} "{name}": {problem or usual}'
    details = _details(info, name)
    return status_error(409, message=message, details={**details, "kind": what} if subresource else details)


def precondition_failed(info: ResourceInfo, name: str, problem: str) -> APIStatusError:
    """Return a 409 error for a precondition of a delete.

    The details of this error contain the kind, whereas those of other errors contain the resource.
    """
    message = f'Operation cannot be fulfilled on {info.kind}{info.group and f".{info.group}"} "{name}": {problem}'
    return status_error(409, message=message, details={**_details(info, name), "kind": info.kind})


def forbidden(info: ResourceInfo, name: str, problem: str, causes: list[JSONObject] | None = None) -> APIStatusError:
    """Return a 403 error: admission rejects the request."""
    more = {"causes": causes} if causes else {}
    message = f'{info} "{name}" is forbidden: {problem}'
    return status_error(403, message=message, details=_details(info, name, **more))


def cause(reason: str, message: str, field: str) -> JSONObject:
    """Return a ``StatusCause`` for a field that is not valid."""
    return {"reason": reason, "message": excerpt(message), "field": excerpt(field)}


def invalid(group: str, kind: str, name: str, causes: Iterable[JSONObject]) -> APIStatusError:
    """Return a 422 error: the object or the options are well-formed but not valid."""
    causes = list(causes)
    texts = [f"{one['field']}: {one['message']}" for one in causes]
    problem = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    full_kind = f"{kind}.{group}" if group else kind
    details: JSONObject = {"name": excerpt(name)} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = excerpt(kind)
    details["causes"] = causes[:_MOST_CAUSES]
    return status_error(422, message=f'{full_kind} "{name}" is invalid: {problem}', details=details)


def invalid_options(kind: str, causes: Iterable[JSONObject]) -> APIStatusError:
    """Return a 422 error: the query parameters contradict each other."""
    return invalid("meta.k8s.io", kind, "", causes)


def too_large_resource_version(revision: int, current: int) -> APIStatusError:
    """Return a 504 error: the requested revision is in the future."""
    details: JSONObject = {"causes": [cause_without_field("ResourceVersionTooLarge", "Too large resource version")]}
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return status_error(504, message=message, details=details, retry_after=1)


def cause_without_field(reason: str, message: str) -> JSONObject:
    """Return a ``StatusCause`` without a field."""
    return {"reason": reason, "message": message}


def expired(message: str, *, continue_token: str = "") -> APIStatusError:
    """Return a 410 error: the revision is compacted.

    If there is a token, the client can use it to continue the list at the current revision.
    """
    metadata = {"continue": continue_token} if continue_token else None
    return APIStatusError(status_of(410, "Expired", message, metadata=metadata))


def deleted(info: ResourceInfo, name: str, uid: str) -> JSONObject:
    """Return the Status for a completed delete."""
    return {**SUCCESS, "details": {**_details(info, name), "uid": uid}}


def encode_status(status: JSONObject) -> bytes:
    """Encode a Status for a response body."""
    return dumps(status) + b"\n"
