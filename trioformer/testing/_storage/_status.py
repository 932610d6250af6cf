"""What the embedded server refuses with: the ``Status`` objects of a real one, word for word where clients look.

Source: apimachinery ``pkg/api/errors``, and answers of kube-apiserver v1.36.
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
"""The reason and the usual sentence for a code that a test asks for."""

SUCCESS: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class RefusedError(Exception):
    """A request is answered with a Status.

    Attributes:
        status: The Status object.
        retry_after: Seconds for the ``Retry-After`` header, or None.
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
    """Build a Status; the reason is left out when empty, the details when None, as the real server does."""
    status: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": metadata or {}, "status": "Failure"}
    status["message"] = message
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    return {**status, "code": code}


def refusal(
    code: int,
    *,
    message: str | None = None,
    reason: str | None = None,
    details: JSONObject | None = None,
    retry_after: int | None = None,
) -> RefusedError:
    """Build the usual refusal for a code."""
    usual = REASONS.get(code, ("InternalError" if code >= 500 else "", f"HTTP {code}"))
    if retry_after is not None:
        details = {**(details or {}), "retryAfterSeconds": retry_after}
    status = status_of(code, usual[0] if reason is None else reason, message or usual[1], details=details)
    return RefusedError(status, retry_after=retry_after)


def bad_request(message: str) -> RefusedError:
    """400: the request itself is wrong."""
    return refusal(400, message=message)


def _details(info: ResourceInfo, name: str, **more: object) -> JSONObject:
    details: JSONObject = {"name": name} if name else {}
    if info.group:
        details["group"] = info.group
    return {**details, "kind": info.plural, **more}


def not_found(info: ResourceInfo, name: str) -> RefusedError:
    """404: no such object."""
    return refusal(404, message=f'{info} "{name}" not found', details=_details(info, name))


def already_exists(info: ResourceInfo, name: str) -> RefusedError:
    """409 on create."""
    message = f'{info} "{name}" already exists'
    return refusal(409, reason="AlreadyExists", message=message, details=_details(info, name))


def conflict(info: ResourceInfo, name: str, problem: str | None = None) -> RefusedError:
    """409: somebody else wrote first, or a precondition does not hold."""
    usual = "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {info} "{name}": {problem or usual}'
    return refusal(409, message=message, details=_details(info, name))


def precondition_failed(info: ResourceInfo, name: str, problem: str) -> RefusedError:
    """409 from the preconditions of a delete; it names the kind where others name the resource."""
    message = f'Operation cannot be fulfilled on {info.kind} "{name}": {problem}'
    return refusal(409, message=message, details={**_details(info, name), "kind": info.kind})


def forbidden(info: ResourceInfo, name: str, problem: str, causes: list[JSONObject] | None = None) -> RefusedError:
    """403: admission says no."""
    more = {"causes": causes} if causes else {}
    message = f'{info} "{name}" is forbidden: {problem}'
    return refusal(403, message=message, details=_details(info, name, **more))


def cause(reason: str, message: str, field: str) -> JSONObject:
    """One field that is wrong."""
    return {"reason": reason, "message": message, "field": field}


def invalid(group: str, kind: str, name: str, causes: Iterable[JSONObject]) -> RefusedError:
    """422: the object or the options are well-formed and wrong."""
    causes = list(causes)
    texts = [f"{one['field']}: {one['message']}" for one in causes]
    problem = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    full_kind = f"{kind}.{group}" if group else kind
    details: JSONObject = {"name": name} if name else {}
    if group:
        details["group"] = group
    details |= {"kind": kind, "causes": causes}
    return refusal(422, message=f'{full_kind} "{name}" is invalid: {problem}', details=details)


def invalid_options(kind: str, causes: Iterable[JSONObject]) -> RefusedError:
    """422: the query parameters contradict each other."""
    return invalid("meta.k8s.io", kind, "", causes)


def too_large_resource_version(revision: int, current: int) -> RefusedError:
    """504: the client knows a newer revision than this server."""
    details: JSONObject = {"causes": [cause_without_field("ResourceVersionTooLarge", "Too large resource version")]}
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return refusal(504, message=message, details=details, retry_after=1)


def cause_without_field(reason: str, message: str) -> JSONObject:
    """A cause that no single field is to blame for."""
    return {"reason": reason, "message": message}


def expired(message: str, *, continue_token: str = "") -> RefusedError:
    """410: the history is forgotten; the token, if any, continues the list inconsistently."""
    metadata = {"continue": continue_token} if continue_token else None
    return RefusedError(status_of(410, "Expired", message, metadata=metadata))


def deleted(info: ResourceInfo, name: str, uid: str) -> JSONObject:
    """Build the answer to a delete that is already done."""
    return {**SUCCESS, "details": {**_details(info, name), "uid": uid}}


def encode_status(status: JSONObject) -> bytes:
    """Encode a Status for a response body."""
    return dumps(status) + b"\n"
