"""What a failure of a list or a watch means for whoever wants to go on from it.

One table for the reflector, which can list again, and for a resuming watch, which cannot.
An HTTP answer and an ERROR event in a running stream are the same error here, and so get the same verdict.

Source: client-go ``tools/cache/reflector.go`` and ``tools/watch/retrywatcher.go``, which each have rules of their own.
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

RETRIED: Final = (StatusError, ConnectionFailedError, UnexpectedResponseError, DecodeError)
"""What a server or the way to it can do to us; anything else is an error of the program."""

LONGEST_RETRY_AFTER: Final = 300.0
"""Seconds that a server may put us off for with ``Retry-After``; more is an error of its own."""

RETRY_JITTER: Final = 0.1
"""By what share a wait is lengthened at random, so that not all clients come back at once."""

_HOPELESS: Final = (BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, MethodNotAllowedError)


WatchErrorHandler: TypeAlias = Callable[[Exception], None]
"""Called with each failure that is retried; must be quick."""


class ErrorClass(enum.Enum):
    """What to do after a failure; waiting comes first in any case but one (an expired version)."""

    RESUME = "watch again from the same resourceVersion: nothing says that it is not good any more"
    EXPIRED = "the resourceVersion cannot be had: list again"
    PERMANENT = "the answer stays the same until somebody changes a permission, a certificate or the server"
    UNKNOWN = "anything else: whether the resourceVersion is still good is not known"


def classify_error(error: Exception) -> ErrorClass:
    """Judge a failure; total, so that a kind of error that is new here counts as ``UNKNOWN``."""
    if isinstance(error, ConnectionFailedError):
        return ErrorClass.PERMANENT if error.permanent else ErrorClass.RESUME
    if isinstance(error, TooManyRequestsError):
        return ErrorClass.RESUME
    if isinstance(error, ExpiredError) or (isinstance(error, StatusError) and error.is_too_large_resource_version):
        return ErrorClass.EXPIRED
    if isinstance(error, _HOPELESS):
        return ErrorClass.PERMANENT
    return ErrorClass.UNKNOWN


def retry_after(error: Exception, rng: random.Random) -> float:
    """Seconds that the server asked to be left alone for, a little more at random, and not without end; 0 if none."""
    asked = float(error.details.retry_after_seconds) if isinstance(error, StatusError) else 0.0
    return min(asked, LONGEST_RETRY_AFTER) * (1 + RETRY_JITTER * rng.random())
