"""How a request can end, for everything that retries: one classification of errors.

The reflector, which can list again, and the resuming watch, which cannot, share it.
An HTTP response and an ERROR event of a watch are the same error here, and so have the same outcome.

Source: client-go ``tools/cache/reflector.go`` and ``tools/watch/retrywatcher.go``, each of which has its own rules.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from typing import Final, TypeAlias

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

REQUEST_ERRORS: Final = (StatusError, ConnectionFailedError, LimitExceededError, UnexpectedResponseError, DecodeError)
"""The errors with which a request to a server can fail; any other exception is an error in the program."""

MAX_RETRY_AFTER: Final = 300.0
"""Seconds; a longer ``Retry-After`` is shortened to this."""

RETRY_JITTER: Final = 0.1
"""The largest share by which a wait is lengthened at random, so that not all clients retry at the same time."""

_REJECTIONS: Final = (BadRequestError, InvalidError)
_DENIALS: Final = (UnauthorizedError, ForbiddenError, NotFoundError, MethodNotAllowedError)
_OF_AUTHENTICATORS: Final = (UnauthorizedError, ForbiddenError)
"""What the authenticating proxies before an API server respond in HTML or plain text, and mean."""


WatchErrorHandler: TypeAlias = Callable[[Exception], None]
"""Called with each failure that is retried; must return quickly.  What it raises propagates."""


class Outcome(enum.Enum):
    """How a request ended, or the watch that it opened."""

    LISTS = "the server streams its lists, or has no watch-list"
    WATCH_LISTS = "the server has watch-lists, or its version is not known"
    RECEIVED = "the list is complete"
    ENDED = "the server has ended the watch after a second or more"
    ENDED_EARLY = "the server has ended the watch within a second, after events"
    ENDED_EMPTY = "the server has ended the watch within a second, without an event"
    CUT_SHORT = "a watch-list ended or broke before its end bookmark"
    NO_END = "the end bookmark of a watch-list did not arrive in time"
    CONFIRMED = "the server has the resourceVersion from which the watch resumed"
    SILENT = "the watch received nothing for too long"
    LOST = "the connection failed, or could not be made"
    OVERLOADED = "429"
    EXPIRED = "410: the server does not have the resourceVersion any more"
    TOO_LARGE = "the server has not reached the resourceVersion"
    REJECTED = "400 or 422"
    DENIED = "401, 403, 404 or 405, or a certificate that does not verify"
    INTERNAL = "500 as an event, within internal_error_retry"
    FAILED = "any other response or ERROR event, a proxy's error page, something undecodable, or more than a limit"


def outcome_of(error: Exception) -> Outcome:
    """Return the outcome of a request that failed with ``error``; ``FAILED`` for every error that has no rule."""
    if isinstance(error, ConnectionFailedError):
        return Outcome.DENIED if error.permanent else Outcome.LOST
    if isinstance(error, TooManyRequestsError):
        return Outcome.OVERLOADED
    if isinstance(error, ExpiredError):
        return Outcome.EXPIRED
    if isinstance(error, StatusError) and error.is_too_large_resource_version:
        return Outcome.TOO_LARGE
    if _is_of_a_proxy(error):
        return Outcome.FAILED
    if isinstance(error, _REJECTIONS):
        return Outcome.REJECTED
    if isinstance(error, _DENIALS):
        return Outcome.DENIED
    return Outcome.FAILED


def is_permanent(error: Exception) -> bool:
    """Whether a request fails again until a permission, a certificate or the server changes."""
    return outcome_of(error) in (Outcome.REJECTED, Outcome.DENIED)


def _is_of_a_proxy(error: Exception) -> bool:
    """Whether an error page, such as the 404 of a proxy that has lost its server, says nothing about the request."""
    is_page = isinstance(error, StatusError) and error.is_unexpected_server_error
    return is_page and not isinstance(error, _OF_AUTHENTICATORS)


def retry_after(error: Exception | None, rng: random.Random) -> float:
    """Return the seconds to wait that the server requested, at most :data:`MAX_RETRY_AFTER`, plus jitter; 0 if none."""
    requested = error.details.retry_after_seconds if isinstance(error, StatusError) else 0
    # The number may have too many digits for a float.
    return min(requested, MAX_RETRY_AFTER) * (1 + RETRY_JITTER * rng.random())
