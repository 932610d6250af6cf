"""Classify the outcomes of requests for all retries, and log failures.

The reflector and the resuming watch use the same outcomes, although only the reflector can list again.
An HTTP response and an ERROR event of a watch with the same error have the same outcome.

Source: client-go ``tools/cache/reflector.go`` and ``tools/watch/retrywatcher.go``, which have separate rules.
"""

from __future__ import annotations

import enum
import logging
import random
from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

import trio

from .._util import LogLimit
from ..errors import (
    BadRequestError,
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    LimitExceededError,
    MethodNotAllowedError,
    NotFoundError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
    UnexpectedResponseError,
)

FAILURE_LOG_PERIOD = 60.0
"""The shortest time between two log lines with the same cause, in seconds."""

_failures: trio.lowlevel.RunVar[LogLimit] = trio.lowlevel.RunVar("failures that are retried")

REQUEST_ERRORS: Final = (StatusError, ConnectionFailedError, LimitExceededError, UnexpectedResponseError, DecodeError)
"""The errors that a request to a server can raise; all other exceptions are errors in the program."""

MAX_RETRY_AFTER: Final = 300.0
"""The longest accepted ``Retry-After`` in seconds; longer values are shortened to it."""

RETRY_JITTER: Final = 0.1
"""The largest random extension of a wait, as a fraction of the wait.  It keeps clients from retrying simultaneously."""

_REJECTIONS: Final = (BadRequestError, NotFoundError, MethodNotAllowedError, InvalidError)
_DENIALS: Final = (UnauthorizedError, ForbiddenError)
"""Responses that concern the request itself, even if an authenticating proxy sends them in HTML or plain text."""


WatchErrorHandler: TypeAlias = Callable[[Exception], None]
"""A function that is called with each failure that is retried.  It must return quickly.  Its exceptions propagate."""


class Outcome(enum.Enum):
    """The outcome of a request or of the watch that it opened."""

    RECEIVED = "the list is complete"
    ENDED = "the server has ended the watch after a second or more"
    ENDED_EARLY = "the server has ended the watch within a second, after events"
    CUT_SHORT = "the connection failed inside the response to a list or a watch-list"
    CONFIRMED = "the server has the resourceVersion from which the watch resumed"
    SILENT = "the watch delivered nothing for too long"
    CHANGED = "the source selects other objects now"
    LOST = "the connection failed, or could not be made"
    OVERLOADED = "429"
    UNAVAILABLE = "410, or the server has not reached the resourceVersion"
    REJECTED = "400, 404, 405 or 422"
    DENIED = "401 or 403, or a certificate that does not verify"
    FAILED = (
        "any other response or ERROR event, a proxy's error page, something undecodable, more than a limit, "
        "a watch that ended within a second without an event, or a watch-list without its end bookmark"
    )


def outcome_of(error: Exception) -> Outcome:
    """Return the outcome of a request that failed with ``error``. An error without a rule is ``FAILED``."""
    if isinstance(error, ConnectionFailedError):
        return Outcome.DENIED if error.permanent else Outcome.LOST
    if isinstance(error, TooManyRequestsError):
        return Outcome.OVERLOADED
    if isinstance(error, ExpiredError) or (isinstance(error, StatusError) and error.is_too_large_resource_version):
        return Outcome.UNAVAILABLE
    if _is_of_a_proxy(error):
        return Outcome.FAILED
    if isinstance(error, _REJECTIONS):
        return Outcome.REJECTED
    if isinstance(error, _DENIALS):
        return Outcome.DENIED
    return Outcome.FAILED


def is_permanent(error: Exception) -> bool:
    """Return whether a request will keep failing until a permission, a certificate or the server changes."""
    return outcome_of(error) in (Outcome.REJECTED, Outcome.DENIED)


def _is_of_a_proxy(error: Exception) -> bool:
    """Return whether an error comes from a proxy, such as a 404 page while no server is running."""
    is_page = isinstance(error, StatusError) and error.is_unexpected_server_error
    return is_page and not isinstance(error, _DENIALS)


def retry_after(error: Exception | None, rng: random.Random) -> float:
    """Return the wait that the server requested, in seconds: at most :data:`MAX_RETRY_AFTER`, plus jitter.

    Return 0 if no wait was requested.
    """
    requested = error.details.retry_after_seconds if isinstance(error, StatusError) else 0
    # The number may be too large for a float.
    return min(requested, MAX_RETRY_AFTER) * (1 + RETRY_JITTER * rng.random())


def count_failure(error: Exception, name: str = "") -> int:
    """Count a failure, and return 0 if it must not be logged.

    Otherwise return the number of failures that the log line represents.

    All tasks of a run share the counts, because a server failure affects all of them at once.

    Args:
        error: The failure.
        name: The operation that failed. The default is the beginning of the error's text.
    """
    try:
        limit = _failures.get()
    except LookupError:
        _failures.set(limit := LogLimit(FAILURE_LOG_PERIOD))
    return limit.count(_cause_of(error, name))


def log_failure(logger: logging.Logger, error: Exception, prefix: str = "") -> None:
    """Log a retried failure as a warning, or count it so that the next log line with the same cause includes it."""
    if count := count_failure(error, prefix):
        times = f"; failed {count} times since this was logged" if count > 1 else ""
        logger.warning("%s%s%s", prefix, error, times)


def _cause_of(error: Exception, name: str) -> Hashable:
    """Return a key that is equal for failures with the same cause.

    If the server cannot be reached, the key is the error's text without the operation, so that all operations have the
    same key.  Other texts may contain changing numbers.
    """
    operation, _, rest = str(error).partition(": ")
    if isinstance(error, ConnectionFailedError):
        return rest or operation
    return name or operation, type(error), error.code if isinstance(error, StatusError) else 0
