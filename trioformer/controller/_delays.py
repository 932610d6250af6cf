"""The delays before failed requests are retried.

A rate limiter counts the failures of each request and computes its delay, with two exceptions:

- The value of a ``Retry-After`` header is a minimum delay.
- A lost connection is not a failure of the object.  So lost connections are counted separately, do not count for
  ``max_retries``, and have delays of at most 25 s.  Otherwise, the delay of the first retry after an outage could be
  as long as the outage.  A `QuarantinedError` is treated in the same way, because the correction of the bad object may
  not add the request again.
"""

from __future__ import annotations

import random
from typing import Final, Generic, NamedTuple, final

import attrs

from .._retry import Outcome, outcome_of, retry_after
from .._surroundings import new_generator
from ..errors import QuarantinedError, StatusError, TrioformerError
from ..workqueue import ItemExponentialFailureRateLimiter, RateLimiter, RateLimitingQueue
from ._request import K

LONGEST_EXTERNAL: Final = 25.0
"""The longest delay after an external failure, in seconds.  With jitter, requests are retried within 30 s after an
outage."""
JITTER: Final = 0.2
"""The jitter of the delays after external failures."""


class Failure(NamedTuple):
    """The parameters for retrying a request after an error."""

    counts: bool
    """Whether the error counts as a failure of the object."""
    at_least: float
    """The minimum delay in seconds."""


@final
@attrs.define(eq=False)
class RetryDelays(Generic[K]):
    """A part of the controller that adds failed requests to the queue again.

    Args:
        queue: The queue, with a limiter that counts failures.
        external: The limiter for external failures, such as lost connections.  If None, the queue's limiter is used.
    """

    _queue: RateLimitingQueue[K]
    _external: RateLimiter[K] | None
    _rng: random.Random = attrs.field(factory=new_generator, init=False)

    def classify(self, error: Exception) -> Failure:
        """Return how to retry a request after this error."""
        errors = request_errors(error)
        counts = self._external is None or not all(map(is_external, errors))
        return Failure(counts, max((retry_after(each, self._rng) for each in errors), default=0.0))

    def add(self, request: K, failure: Failure) -> bool:
        """Count a failure, and add the request after its delay.

        Returns:
            Whether the queue accepted the request.  The queue does not accept requests after its shutdown.
        """
        limiter = None if failure.counts else self._external
        return self._queue.add_rate_limited(request, limiter=limiter, at_least=failure.at_least)

    def forget(self, request: K) -> None:
        """Reset the count of external failures of a request."""
        if self._external is not None:
            self._external.forget(request)


def external_limiter() -> ItemExponentialFailureRateLimiter:
    """Return a new limiter for external failures."""
    return ItemExponentialFailureRateLimiter(max_delay=LONGEST_EXTERNAL, jitter=JITTER)


def is_external(error: TrioformerError | None) -> bool:
    """Return whether an error is an external failure, which the object did not cause.

    A failure is external if the server could not be reached, directly or through a proxy, or if an object that was
    read from the cache is in quarantine.
    """
    if isinstance(error, QuarantinedError):
        return True
    if isinstance(error, StatusError):
        return error.is_unexpected_server_error and error.code in (502, 503, 504)
    return error is not None and outcome_of(error) is Outcome.LOST


def request_errors(error: BaseException) -> list[TrioformerError | None]:
    """Return the library's error that caused each error in nested groups, or None if there is none."""
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
