"""Delays of failed requests.

A limiter counts the failures of each object, with two exceptions:

- ``Retry-After`` is a minimum delay.
- A lost connection is not a failure of the object, and retries cost little while the server cannot be reached.  So
  these failures are counted separately, also for ``max_retries``, and their delays grow only to 25 s.  Otherwise the
  first retry after an outage could come as late as the outage was long.  A key in quarantine is treated likewise,
  because the correction or deletion of the object that causes the quarantine may not add the request.
"""

from __future__ import annotations

import random
from typing import Final, Generic, NamedTuple, final

import attrs

from .._retry import Outcome, outcome_of, retry_after
from ..errors import QuarantinedError, StatusError, TrioformerError
from ..workqueue import ItemExponentialFailureRateLimiter, RateLimiter, RateLimitingQueue
from ._request import K

LONGEST_EXTERNAL: Final = 25.0
"""The longest delay after an external failure, seconds: each request is retried within 30 s of the end of an outage."""
JITTER: Final = 0.2
"""The jitter of these delays."""


class Failure(NamedTuple):
    """How to retry after an error."""

    counts: bool
    """Whether it counts as a failure of the object."""
    at_least: float
    """The minimum delay in seconds."""


@final
@attrs.define(eq=False)
class RetryDelays(Generic[K]):
    """Adds failed requests to the queue again.

    Args:
        queue: The queue, whose limiter counts the failures.
        external: Counts external failures, such as lost connections; None for the queue's limiter.
    """

    _queue: RateLimitingQueue[K]
    _external: RateLimiter[K] | None
    _rng: random.Random = attrs.field(factory=random.Random, init=False)

    def classify(self, error: Exception) -> Failure:
        """Return how to retry after an error."""
        errors = request_errors(error)
        counts = self._external is None or not all(map(is_external, errors))
        return Failure(counts, max((retry_after(each, self._rng) for each in errors), default=0.0))

    def add(self, request: K, failure: Failure) -> bool:
        """Count a failure, and add the request after its delay.

        Returns:
            Whether the queue accepted the request; False when it is shut down.
        """
        limiter = None if failure.counts else self._external
        return self._queue.add_rate_limited(request, limiter=limiter, at_least=failure.at_least)

    def forget(self, request: K) -> None:
        """Reset the failures of a request that is not retried."""
        if self._external is not None:
            self._external.forget(request)


def external_limiter() -> ItemExponentialFailureRateLimiter:
    """Return the limiter of external failures."""
    return ItemExponentialFailureRateLimiter(max_delay=LONGEST_EXTERNAL, jitter=JITTER)


def is_external(error: TrioformerError | None) -> bool:
    """Return whether the cause of a failure is external to the object.

    The server could not be reached, directly or through a proxy; or an object in the cache is in quarantine.
    """
    if isinstance(error, QuarantinedError):
        return True
    if isinstance(error, StatusError):
        return error.is_unexpected_server_error and error.code in (502, 503, 504)
    return error is not None and outcome_of(error) is Outcome.LOST


def request_errors(error: BaseException) -> list[TrioformerError | None]:
    """Return the library's error behind each error in nested groups: itself, or the first in its chain of causes."""
    return _request_errors(error, set())


def _request_errors(error: BaseException, seen: set[int]) -> list[TrioformerError | None]:
    # ``raise group.exceptions[0] from group`` creates a cycle.
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, TrioformerError):
            return [cause]
        seen.add(id(cause))
        if isinstance(cause, BaseExceptionGroup):
            return [found for each in cause.exceptions for found in _request_errors(each, seen)]
        cause = cause.__cause__
    return [None]
