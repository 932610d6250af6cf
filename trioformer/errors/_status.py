"""The errors that a server reports with a ``Status``: one class for each reason.

The details are read from unchecked JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, cast

import attrs

from .._text import one_line
from ._base import TrioformerError, add_request_id

__all__ = [
    "AlreadyExistsError",
    "ApplyConflictError",
    "BadRequestError",
    "ConflictError",
    "ExpiredError",
    "FieldConflict",
    "ForbiddenError",
    "InternalServerError",
    "InvalidError",
    "MethodNotAllowedError",
    "NotFoundError",
    "NotInCacheError",
    "ServerError",
    "ServerTimeoutError",
    "ServiceUnavailableError",
    "StatusCause",
    "StatusDetails",
    "StatusError",
    "TooManyRequestsError",
    "UnauthorizedError",
]

FIELD_MANAGER_CONFLICT: Final = "FieldManagerConflict"
"""The reason of each cause of an error of server-side apply (``meta/v1 CauseType``)."""
UNEXPECTED_SERVER_RESPONSE: Final = "UnexpectedServerResponse"
"""The reason of the cause if the response of an error was not a Status (``meta/v1 CauseType``)."""

_MAX_MESSAGE: Final = 3_000
"""The maximum length of a server's message in the text of an error, in characters."""
MAX_CAUSES: Final = 500
"""The maximum number of causes to read; a server lists one for each invalid field."""
MAX_MESSAGE: Final = 1_000
"""The maximum length of the message of a cause, in characters."""
MAX_NAME: Final = 500
"""The maximum length of a name or a reason, in characters; Kubernetes allows 253."""
MAX_RETRY_AFTER: Final = 999_999_999
"""The maximum of ``retryAfterSeconds``; larger values are reduced to it."""


@attrs.frozen
class StatusCause:
    """One cause in a ``Status``, usually an invalid field."""

    reason: str = ""
    """A machine-readable reason, such as ``FieldValueRequired`` or ``ResourceVersionTooLarge``."""
    message: str = ""
    """A description for users, as one line of at most 1,000 characters."""
    field: str = ""
    """The field's path, such as ``spec.containers[0].name``."""


@attrs.frozen
class StatusDetails:
    """The details of a ``Status`` (API conventions, "Response Status Kind"). Each text is one printable line."""

    name: str = ""
    """The object's name."""
    group: str = ""
    """The object's API group."""
    kind: str = ""
    """The object's resource or kind, as the server spells it."""
    uid: str = ""
    """The object's uid."""
    causes: tuple[StatusCause, ...] = ()
    """The causes, at most 500."""
    retry_after_seconds: int = 0
    """The time to wait before a retry; 0 if the server does not set it."""


def text_in(members: Mapping[str, object], name: str) -> str:
    """Return the unchanged text of a field, or an empty string."""
    value = members.get(name)
    return value if isinstance(value, str) else ""


def name_in(members: Mapping[str, object], name: str) -> str:
    """Return the name in a field as one short line."""
    return one_line(text_in(members, name), longest=MAX_NAME)


def details_in(status: Mapping[str, object]) -> StatusDetails:
    """Read the details of a ``Status``. Missing values and values of a wrong type become empty."""
    raw = status.get("details")
    if not isinstance(raw, Mapping):
        return StatusDetails()
    details = cast("Mapping[str, object]", raw)
    listed = details.get("causes")
    after = details.get("retryAfterSeconds")
    return StatusDetails(
        name=name_in(details, "name"),
        group=name_in(details, "group"),
        kind=name_in(details, "kind"),
        uid=name_in(details, "uid"),
        causes=_causes(cast("Iterable[object]", listed)) if isinstance(listed, list | tuple) else (),
        retry_after_seconds=min(after, MAX_RETRY_AFTER) if type(after) is int and after > 0 else 0,
    )


def _causes(listed: Iterable[object]) -> tuple[StatusCause, ...]:
    causes = (cast("Mapping[str, object]", each) for each in listed if isinstance(each, Mapping))
    return tuple(_cause(each) for each in islice(causes, MAX_CAUSES))


def _cause(cause: Mapping[str, object]) -> StatusCause:
    field = name_in(cause, "field")
    message = text_in(cause, "message")
    if field == "patch":
        message = _without_patch(f"patch: {message}").removeprefix("patch: ")
    return StatusCause(name_in(cause, "reason"), one_line(message, longest=MAX_MESSAGE), field)


def _without_patch(message: str) -> str:
    """Return the message of a ``Status`` without the patch in it, if any. The patch may contain a Secret."""
    text, quotes, rest = message.partition('patch: Invalid value: "')
    if not quotes:
        return message
    _, end, problem = rest.partition('}": ')  # quotes inside the patch are escaped
    return f'{text}{quotes}…": {problem}' if end else f'{text}{quotes}…"'


def error_code_in(status: Mapping[str, object], *, code: int) -> int:
    """Return the error code of the ``Status`` or of the response, or 0 if neither is an error code.

    A successful response may contain the Status of a failure, with any code.
    """
    own = status.get("code")
    if type(own) is int and 400 <= own <= 599:
        return own
    return code if code >= 400 else 0


class StatusError(TrioformerError):
    """The API server rejected the request with a ``Status``, which has a code, a reason, a message and details.

    The reason determines the class of the error. If the reason is unknown, the code determines the class instead
    (apimachinery ``pkg/api/errors``). If a response with code 400 or above has no ``Status``, the reason is derived
    from the code. For example, a proxy's 503 is a :class:`ServiceUnavailableError`; see
    :attr:`is_unexpected_server_error`.

    Attributes:
        code: The HTTP code, such as 404.
        reason: The machine-readable reason, such as ``NotFound``. It may be empty.
        status_message: The server's message, as one printable line of at most 4,000 characters.  If the message quotes
            a patch, ``…`` replaces the patch, because it may contain a Secret.
        details: The details of the ``Status``. All fields are empty if the server sent no details.
        request_id: The ID of the request in the server's audit log (``Audit-Id``). It is empty if the server did not
            send an ID. The ID is also a note on the exception, so tracebacks show it.  The text does not contain the
            ID, because programs store the text in the status of objects, and the text must stay the same if the same
            error occurs again.  Another note names the server and its configuration. After a 401 or 403, it also names
            the kind of credential, without secrets.
    """

    hint: str = ""
    """Advice; appended to the text."""

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        details: StatusDetails | None = None,
        where: str = "",
        request_id: str = "",
    ) -> None:
        message = _without_patch(message)
        self.code = code
        reason = one_line(reason, longest=MAX_NAME)
        self.reason: str = reason
        self.status_message: str = one_line(message)
        self.details: StatusDetails = details if details is not None else StatusDetails()
        self.request_id: str = request_id
        hint = self._hint_about(message)
        # Shorter than the limit of the whole text, so that the reason and the hint are not cut off.
        text = one_line(message, longest=_MAX_MESSAGE) or reason or "the server gave no reason"
        text = f"{where}: {text}" if where else text
        super().__init__(f"{text} (HTTP {code}{', ' + reason if reason else ''}){'; ' + hint if hint else ''}")
        add_request_id(self, request_id)

    @classmethod
    def from_status(
        cls, status: Mapping[str, object], *, code: int = 0, where: str = "", request_id: str = ""
    ) -> StatusError:
        """Return an error of the matching subclass for a decoded ``Status`` object.

        Args:
            status: The decoded ``Status``. Fields that are missing or have a wrong type are treated as empty.
            code: The code to use if the object does not contain an error code. If this code is not an error code
                either, the reason determines the code.
            where: The operation, such as ``list pods``. The text of the error begins with the operation.
            request_id: The server's ID of the request.
        """
        code = error_code_in(status, code=code)
        reason = text_in(status, "reason")
        kind = _BY_REASON.get(reason) or _BY_CODE.get(code or 500) or (ServerError if code >= 500 else StatusError)
        details = details_in(status)
        if kind is ConflictError and any(cause.reason == FIELD_MANAGER_CONFLICT for cause in details.causes):
            kind = ApplyConflictError
        code = code or next((each for each, known in _BY_CODE.items() if issubclass(kind, known)), 500)
        return kind(
            text_in(status, "message"),
            code=code,
            reason=reason,
            details=details,
            where=where,
            request_id=request_id,
        )

    def _hint_about(self, message: str) -> str:
        """Return advice for an error that has this message."""
        return self.hint

    @property
    def is_unexpected_server_error(self) -> bool:
        """Whether the response was plain text, HTML or empty instead of a ``Status`` (``IsUnexpectedServerError``).

        In this case, the response may be from a proxy or load balancer. Check this property before you conclude from a
        :class:`NotFoundError` that an object is gone.
        """
        return any(cause.reason == UNEXPECTED_SERVER_RESPONSE for cause in self.details.causes)

    @property
    def is_too_large_resource_version(self) -> bool:
        """Whether the server's watch cache has not yet reached the requested resourceVersion.

        Servers report this with the reason of a cause (1.19 or newer), the message of a cause (1.17 and 1.18), or the
        message of the Status (older versions).
        """
        causes = self.details.causes
        if any(cause.reason == "ResourceVersionTooLarge" for cause in causes):
            return True
        if self.reason == "Timeout" and any(cause.message == "Too large resource version" for cause in causes):
            return True
        return "Too large resource version" in self.status_message


class BadRequestError(StatusError):
    """400: the request is not valid."""


class UnauthorizedError(StatusError):
    """401: the request is not authenticated."""

    hint = "check the credential of the configuration: token, token file, plugin or client certificate"


class ForbiddenError(StatusError):
    """403: the user is authenticated, but does not have permission for the request."""

    hint = "give the user a role that allows it"

    def _hint_about(self, message: str) -> str:
        # apiserver, admission/plugin/webhook/errors/statuserror.go: a role changes nothing
        if message.startswith("admission webhook "):
            return ""
        # apiserver, filters/impersonation.go: the authenticated user, not the impersonated one
        is_impersonating = " cannot impersonate resource " in message
        return "give the user a role with the verb impersonate" if is_impersonating else self.hint


class NotFoundError(StatusError):
    """404: the object does not exist, or the server does not have this resource."""


class NotInCacheError(NotFoundError, KeyError):
    """An informer's cache does not contain an object with this key. No request was sent.

    This is a subclass of :class:`NotFoundError`, so the same code can handle reads from a cache and from a server, and
    of ``KeyError``, so that a mapping can be built on a cache.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, code=404, reason="NotFound")
        self.args: tuple[str] = (self.status_message,)


class MethodNotAllowedError(StatusError):
    """405: the resource does not support this verb."""


class ConflictError(StatusError):
    """409: the object has changed since it was read. Read the object again, and repeat the change."""


class AlreadyExistsError(ConflictError):
    """409: the object to create already exists."""


@attrs.frozen
class FieldConflict:
    """A field that another manager owns, with a value that differs from the applied value."""

    manager: str
    """The other manager."""
    field: str
    """The field's path, such as ``.spec.replicas`` or ``.spec.containers[name="web"].image``."""
    subresource: str = ""
    """The subresource that set it, such as ``status``; empty for the object itself."""
    message: str = ""
    """The server's text."""


class ApplyConflictError(ConflictError):
    """409: other managers own some of the applied fields, with different values.

    Applying the same fields again would also fail, so :func:`~trioformer.client.retry_on_conflict` does not retry this
    error.
    """

    hint = "leave the fields out, apply their values, or take them with force=True"

    @property
    def conflicts(self) -> tuple[FieldConflict, ...]:
        """The conflicting fields and their managers. At most 500 are included."""
        return tuple(_field_conflict(cause) for cause in self.details.causes if cause.reason == FIELD_MANAGER_CONFLICT)


# apimachinery, util/managedfields/internal/conflict.go: the manager is a string of Go
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_CONFLICT: Final = re.compile(rf"conflict with {_QUOTED}(?: with subresource {_QUOTED})?")
_ESCAPED: Final = re.compile(r'\\(["\\])')


def _field_conflict(cause: StatusCause) -> FieldConflict:
    found = _CONFLICT.match(cause.message)
    manager, subresource = (_ESCAPED.sub(r"\1", text or "") for text in found.groups()) if found else ("", "")
    return FieldConflict(manager, cause.field, subresource, cause.message)


class ExpiredError(StatusError):
    """410: the resourceVersion or continue token is too old. List again."""


class InvalidError(StatusError):
    """422: the object is not valid. The causes in ``details.causes`` name the fields."""


class TooManyRequestsError(StatusError):
    """429: the server limits requests. Wait for ``details.retry_after_seconds`` before the next request."""


class ServerError(StatusError):
    """5xx: the server failed."""


class InternalServerError(ServerError):
    """500: the server had an internal error."""


class ServiceUnavailableError(ServerError):
    """503: the server is not ready, or an aggregated server is not ready."""


class ServerTimeoutError(ServerError):
    """504, or the reason ``Timeout``: the server did not finish in time."""


_BY_REASON: dict[str, type[StatusError]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "MethodNotAllowed": MethodNotAllowedError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Expired": ExpiredError,
    "Gone": ExpiredError,
    "Invalid": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "InternalError": InternalServerError,
    "ServiceUnavailable": ServiceUnavailableError,
    "Timeout": ServerTimeoutError,
    "ServerTimeout": ServerTimeoutError,
}

_BY_CODE: dict[int, type[StatusError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: TooManyRequestsError,
    500: InternalServerError,
    503: ServiceUnavailableError,
    504: ServerTimeoutError,
}
