"""Classify the failures of lists and watches.

The reflector, which can list again, and the resuming watch, which cannot, share one table.
An HTTP response and an ERROR event of a watch are the same error here, and so have the same class.

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
    MethodNotAllowedError,
    NotFoundError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
    UnexpectedResponseError,
)

REQUEST_ERRORS: Final = (StatusError, ConnectionFailedError, UnexpectedResponseError, DecodeError)
"""The errors with which a request to a server can fail; any other exception is an error in the program."""

MAX_RETRY_AFTER: Final = 300.0
"""Seconds; a longer ``Retry-After`` is shortened to this."""

RETRY_JITTER: Final = 0.1
"""The largest share by which a wait is lengthened at random, so that not all clients retry at the same time."""

_PERMANENT: Final = (BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, MethodNotAllowedError)


WatchErrorHandler: TypeAlias = Callable[[Exception], None]
"""Called with each failure that is retried; must return quickly.  What it raises propagates."""


class ErrorClass(enum.Enum):
    """What to do after a failure; every class but ``EXPIRED`` requires a wait before the next request."""

    RESUME = "watch again from the same resourceVersion: nothing indicates that it is no longer valid"
    EXPIRED = "the server cannot serve the resourceVersion: list again"
    PERMANENT = "the request fails again until a permission, a certificate or the server changes"
    UNKNOWN = "any other failure: the resourceVersion may or may not be valid"


def classify_error(error: Exception) -> ErrorClass:
    """Return the class of a failure; ``UNKNOWN`` for every kind of error that has no rule."""
    if isinstance(error, ConnectionFailedError):
        return ErrorClass.PERMANENT if error.permanent else ErrorClass.RESUME
    if isinstance(error, TooManyRequestsError):
        return ErrorClass.RESUME
    if isinstance(error, ExpiredError) or (isinstance(error, StatusError) and error.is_too_large_resource_version):
        return ErrorClass.EXPIRED
    if isinstance(error, _PERMANENT):
        return ErrorClass.PERMANENT
    return ErrorClass.UNKNOWN


def retry_after(error: Exception, rng: random.Random) -> float:
    """Return the seconds to wait that the server requested, at most :data:`MAX_RETRY_AFTER`, plus jitter; 0 if none."""
    requested = float(error.details.retry_after_seconds) if isinstance(error, StatusError) else 0.0
    return min(requested, MAX_RETRY_AFTER) * (1 + RETRY_JITTER * rng.random())
