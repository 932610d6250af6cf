"""The exceptions that trioformer defines.

::

    TrioformerError
    ├── ConfigError                     a kubeconfig or in-cluster file is wrong: ``problems`` name files and keys
    ├── SelectorError                   a label or field selector does not parse (also a ValueError)
    ├── DecodeError                     bytes are not JSON, or not that of the type (also a ValueError)
    ├── ConnectionFailedError           no complete response: refused, reset, TLS, timeout, early end
    │   ├── ExecPluginError             a credential plugin has failed, or may not run: nothing was sent
    │   └── ProxyError                  the proxy gave no connection: the server has not received the request
    ├── LimitExceededError              more than the client's Limits, or too slow: names the limit
    ├── UnexpectedResponseError         a success or redirect that no API server sends: HTML, incomplete JSON
    ├── StatusError                     HTTP 4xx and 5xx: code, reason, message, details
    │   ├── BadRequestError             400
    │   ├── UnauthorizedError           401
    │   ├── ForbiddenError              403
    │   ├── NotFoundError               404
    │   │   └── NotInCacheError         raised by ``lister[key]``; no server was asked
    │   ├── MethodNotAllowedError       405
    │   ├── NotAcceptableError          406
    │   ├── ConflictError               409: the object has changed since it was read
    │   │   └── AlreadyExistsError      409 on create
    │   ├── ExpiredError                410: the resourceVersion or continue token is too old
    │   ├── RequestTooLargeError        413
    │   ├── UnsupportedMediaTypeError   415
    │   ├── InvalidError                422: details.causes name the fields
    │   ├── TooManyRequestsError        429: details.retry_after_seconds
    │   └── ServerError                 5xx
    │       ├── InternalServerError     500
    │       ├── ServiceUnavailableError 503
    │       └── ServerTimeoutError      504
    ├── CacheNotSyncedError             a lister was used before its cache had synced
    ├── QuarantinedError                the newest state of an object cannot be taken: names the key, and why
    ├── CacheSyncError                  caches have not synced in time: names each, and why
    ├── IndexerError                    an index is unknown or exists already, or its function failed
    ├── LeadershipLostError             a lease could not be kept, and the leader code was cancelled
    ├── TransformError                  an informer's transform failed, or changed the identity of an object
    └── HandlerOverflowError            a handler with overflow="raise" or "block" fell behind

An object that is used after it is closed, or by two tasks at a time, raises trio's own errors
(``trio.ClosedResourceError``, ``trio.BusyResourceError``, …) or ``RuntimeError``.
The text of an error is one line that names the object, and says what to do where that is known.
It never contains a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from . import _status, _text
from ._status import StatusCause, StatusDetails

__all__ = [
    "AlreadyExistsError",
    "BadRequestError",
    "CacheNotSyncedError",
    "CacheSyncError",
    "ConfigError",
    "ConfigProblem",
    "ConflictError",
    "ConnectionFailedError",
    "DecodeError",
    "ExecPluginError",
    "ExpiredError",
    "ForbiddenError",
    "HandlerOverflowError",
    "IndexerError",
    "InternalServerError",
    "InvalidError",
    "LeadershipLostError",
    "LimitExceededError",
    "MethodNotAllowedError",
    "NotAcceptableError",
    "NotFoundError",
    "NotInCacheError",
    "NotSynced",
    "ProxyError",
    "QuarantinedError",
    "RequestTooLargeError",
    "SelectorError",
    "ServerError",
    "ServerTimeoutError",
    "ServiceUnavailableError",
    "StatusCause",
    "StatusDetails",
    "StatusError",
    "TooManyRequestsError",
    "TransformError",
    "TrioformerError",
    "UnauthorizedError",
    "UnexpectedResponseError",
    "UnsupportedMediaTypeError",
]


UNEXPECTED_SERVER_RESPONSE: Final = "UnexpectedServerResponse"
"""The reason of the cause in an error whose response was not a Status (``meta/v1 CauseType``)."""

_MAX_MESSAGE: Final = 3_000
"""Characters of a server's message in the text of an error."""


class TrioformerError(Exception):
    """The base of trioformer's exceptions.

    The text is always a single line of at most 4,000 printable characters, whatever a server or a tenant wrote into it:
    control characters, terminal escapes, line ends and bidirectional controls are escaped or replaced.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_text.one_line(message))

    @property
    def message(self) -> str:
        """The text, one line."""
        return str(self.args[0])

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Callable[..., TrioformerError], tuple[type[TrioformerError], str, dict[str, object]]]:
        return _rebuild, (type(self), self.message, dict(self.__dict__))


def _rebuild(cls: type[TrioformerError], message: str, state: dict[str, object]) -> TrioformerError:
    """Copy or unpickle an error; its constructor's arguments are not known."""
    error = cls.__new__(cls)
    error.args = (message,)
    error.__dict__.update(state)
    return error


def _add_request_id(error: TrioformerError, request_id: str) -> None:
    if request_id:
        error.add_note(f"request ID (in the server's audit log): {request_id}")


@attrs.frozen
class ConfigProblem:
    """One thing that is wrong with a configuration; ``str()`` is a line with file, key and message."""

    message: str
    """What is wrong, without a secret."""
    file: str | None = None
    """The file; None when it is not in a single file."""
    key: str | None = None
    """The key in it, such as ``users[dev].user.token``, or None."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.key, self.message) if part)


class ConfigError(TrioformerError):
    """The configuration is missing, invalid or not supported.

    Attributes:
        file: The file with the problem; None when it is not in a single file.
        key: The key in it, such as ``users[dev].user.token``; None when there are several problems.
        problems: All problems that were found, each a :class:`ConfigProblem`; the text has the first twenty.
    """

    def __init__(self, message: str, *, file: str | None = None, key: str | None = None) -> None:
        self.problems: tuple[ConfigProblem, ...] = (ConfigProblem(message, file, key),)
        super().__init__(str(self.problems[0]))
        self.file = file
        self.key = key


class SelectorError(TrioformerError, ValueError):
    """A label or field selector does not follow the grammar."""


class DecodeError(TrioformerError, ValueError):
    """Bytes are not the JSON that a type requires.

    Objects are decoded when an attribute is first read, so reading an attribute may raise this.
    It is not an ``AttributeError``, which ``hasattr`` would hide.
    """


class ConnectionFailedError(TrioformerError):
    """No complete response arrived: connection refused or reset, timeout, failure of TLS, or a stream that ended early.

    Attributes:
        refused: Whether nothing listens at the address; the server has not received the request.
        permanent: Whether a retry cannot succeed, as with a certificate that does not verify.
    """

    def __init__(self, message: str, *, refused: bool = False, permanent: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.permanent = permanent


class ExecPluginError(ConnectionFailedError):
    """A credential plugin has given no credential, so the request was not sent.

    It is retried like every other failure of a connection: the user may log in meanwhile.
    It is ``permanent`` if the plugin is not installed, is not allowed, is of another version, or needs a terminal.
    """


class ProxyError(ConnectionFailedError):
    """The proxy did not connect to the server, which has not received the request.

    The text names the proxy, without its credentials, and the setting that it comes from.

    Attributes:
        refused: Whether nothing listens at the address of the proxy.
        permanent: Whether a retry cannot succeed: the proxy rejects the credentials of its URL or connections to this
            server, its certificate does not verify, or it is no proxy of this type.
    """


class LimitExceededError(TrioformerError):
    """The server exceeded a limit of :class:`~trioformer.transport.Limits`; ``limit`` is the name of the field."""

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class UnexpectedResponseError(TrioformerError):
    """The response is a success or a redirect, but not one that a Kubernetes API server sends, such as a login page.

    Every response of code 400 and above is a :class:`StatusError`.

    Attributes:
        code: The HTTP status code of the response.
        request_id: The server's ID of the request, as for :class:`StatusError`.
    """

    def __init__(self, message: str, *, code: int, request_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id
        _add_request_id(self, request_id)


class StatusError(TrioformerError):
    """The API server rejected the request: a ``Status`` with its code, reason, message and details.

    The reason determines the class, and the code where the reason is unknown (apimachinery ``pkg/api/errors``).
    A response of code 400 and above without a ``Status`` has the reason of its code: a proxy's 503 is a
    :class:`ServiceUnavailableError`; see :attr:`is_unexpected_server_error`.

    Attributes:
        code: The HTTP code, such as 404.
        reason: The machine-readable reason, such as ``NotFound``; may be empty.
        status_message: The server's message, as one printable line of at most 4,000 characters.
        details: The details; all empty when the server sent none.
        request_id: The ID by which the server's audit log names the request (``Audit-Id``); empty if it sent none.
            It is a note of the exception, and so in tracebacks, but not in the text, which stays the same when an error
            repeats: programs write texts into the status of objects, and compare them.
    """

    hint: str = ""
    """What to do; appended to the text."""

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
        self.code = code
        reason = _text.one_line(reason, longest=_status.MAX_NAME)
        self.reason: str = reason
        self.status_message: str = _text.one_line(message)
        self.details: StatusDetails = details if details is not None else StatusDetails()
        self.request_id: str = request_id
        # Shorter than the whole text may be, so that the reason and the hint are not cut off.
        text = _text.one_line(message, longest=_MAX_MESSAGE) or reason or "the server gave no reason"
        text = f"{where}: {text}" if where else text
        super().__init__(
            f"{text} (HTTP {code}{', ' + reason if reason else ''}){'; ' + self.hint if self.hint else ''}"
        )
        _add_request_id(self, request_id)

    @classmethod
    def from_status(
        cls, status: Mapping[str, object], *, code: int = 0, where: str = "", request_id: str = ""
    ) -> StatusError:
        """Make an error of the matching subclass from a decoded ``Status`` object.

        Args:
            status: The object; fields that are missing or of a wrong type read as empty.
            code: The code of an object that has none, or one that is not that of an error; without either, the reason
                decides.
            where: The operation, such as ``list pods``; the text begins with it.
            request_id: The server's ID of the request.
        """
        code = _status.error_code_in(status, code=code)
        reason = _status.text_in(status, "reason")
        kind = _BY_REASON.get(reason) or _BY_CODE.get(code or 500) or (ServerError if code >= 500 else StatusError)
        code = code or next((each for each, known in _BY_CODE.items() if issubclass(kind, known)), 500)
        return kind(
            _status.text_in(status, "message"),
            code=code,
            reason=reason,
            details=_status.details_in(status),
            where=where,
            request_id=request_id,
        )

    @property
    def is_unexpected_server_error(self) -> bool:
        """Whether the response was not a ``Status`` but plain text, HTML or nothing (``IsUnexpectedServerError``).

        A proxy or load balancer may have sent it.
        So check this before you delete something because a :class:`NotFoundError` says that an object is gone.
        """
        return any(cause.reason == UNEXPECTED_SERVER_RESPONSE for cause in self.details.causes)

    @property
    def is_too_large_resource_version(self) -> bool:
        """Whether the server's watch cache has not reached the requested resourceVersion yet.

        Servers say so in one of three ways: by the reason of a cause (since 1.19), by the message of a cause (1.17 and
        1.18), or by the message of the Status (before).
        """
        causes = self.details.causes
        if any(cause.reason == "ResourceVersionTooLarge" for cause in causes):
            return True
        if self.reason == "Timeout" and any(cause.message == "Too large resource version" for cause in causes):
            return True
        return "Too large resource version" in self.status_message


class BadRequestError(StatusError):
    """400: the request itself is wrong."""


class UnauthorizedError(StatusError):
    """401: the request is not authenticated."""

    hint = "check the token or client certificate in the kubeconfig"


class ForbiddenError(StatusError):
    """403: the user is authenticated but not allowed to do this."""

    hint = "give the user a role that allows it"


class NotFoundError(StatusError):
    """404: no such object, or no such resource on this server."""


class NotInCacheError(NotFoundError):
    """An informer's cache has no object under this key; no server was asked.

    A :class:`NotFoundError`, so that code which reads from either handles both.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, code=404, reason="NotFound")
        self.args = (self.status_message,)


class MethodNotAllowedError(StatusError):
    """405: the resource does not support this verb."""


class NotAcceptableError(StatusError):
    """406: the server cannot respond in the requested format."""


class ConflictError(StatusError):
    """409: the object has changed since it was read; read it again and repeat the change."""


class AlreadyExistsError(ConflictError):
    """409 on create: the name is taken."""


class ExpiredError(StatusError):
    """410: the resourceVersion or continue token is no longer served; list again."""


class RequestTooLargeError(StatusError):
    """413: the request's body is larger than the server's limit."""


class UnsupportedMediaTypeError(StatusError):
    """415: the server does not accept this content type."""


class InvalidError(StatusError):
    """422: the object is not valid; ``details.causes`` name the fields."""


class TooManyRequestsError(StatusError):
    """429: the server limits requests; ``details.retry_after_seconds`` says how long to wait."""


class ServerError(StatusError):
    """5xx: the server failed."""


class InternalServerError(ServerError):
    """500: an internal error of the server."""


class ServiceUnavailableError(ServerError):
    """503: the server, or an aggregated one behind it, is not ready."""


class ServerTimeoutError(ServerError):
    """504 or reason Timeout: the server did not finish in time."""


_BY_REASON: dict[str, type[StatusError]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "MethodNotAllowed": MethodNotAllowedError,
    "NotAcceptable": NotAcceptableError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Expired": ExpiredError,
    "Gone": ExpiredError,
    "RequestEntityTooLarge": RequestTooLargeError,
    "UnsupportedMediaType": UnsupportedMediaTypeError,
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
    406: NotAcceptableError,
    409: ConflictError,
    410: ExpiredError,
    413: RequestTooLargeError,
    415: UnsupportedMediaTypeError,
    422: InvalidError,
    429: TooManyRequestsError,
    500: InternalServerError,
    503: ServiceUnavailableError,
    504: ServerTimeoutError,
}


class CacheNotSyncedError(TrioformerError):
    """A lister was used before its cache had synced.

    With an empty result instead, a controller would take all objects for deleted.
    """


@attrs.frozen
class NotSynced:
    """An informer or a handler that has not synced."""

    name: str
    """Which, such as ``Pod in namespace default``."""
    phase: str
    """Its phase, such as ``listing`` or ``failed``."""
    error: Exception | None
    """Why it has not synced, if known."""
    since: float
    """When it was started, on trio's clock; infinity if it was not started."""


class CacheSyncError(TrioformerError):
    """Caches have not synced in time, or cannot sync any more.

    Attributes:
        not_synced: The informers and handlers that have not synced.
    """

    def __init__(self, message: str, *, not_synced: tuple[NotSynced, ...]) -> None:
        super().__init__(message)
        self.not_synced = not_synced


class QuarantinedError(TrioformerError):
    """An object exists, and the cache cannot take its newest state; raised by reading its key from a lister.

    Attributes:
        key: The object's key.
        reason: Why, such as ``undecodable`` or ``transform failed``.
        since: Since when, on trio's clock.
    """

    def __init__(self, message: str, *, key: str, reason: str, since: float) -> None:
        super().__init__(message)
        self.key = key
        self.reason = reason
        self.since = since


class IndexerError(TrioformerError):
    """An index is unknown or exists already, or its function failed; the store is unchanged.

    Attributes:
        index: The name of the index whose function failed; otherwise empty.
    """

    def __init__(self, message: str, index: str = "") -> None:
        super().__init__(message)
        self.index = index


class LeadershipLostError(TrioformerError):
    """The lease was not renewed in time, or another candidate holds it, and the leader code was cancelled."""


class TransformError(TrioformerError):
    """An informer's transform failed on an object, or returned another object than it was given.

    Attributes:
        key: The object's key.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class HandlerOverflowError(TrioformerError):
    """A handler without coalescing fell behind by more notifications than its buffer holds."""
