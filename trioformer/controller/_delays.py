"""How long a failed request waits.

A limiter counts the failures of each object.  Two kinds of errors say something else:

- ``Retry-After``: the server says when it accepts the next request, so the request is not retried before.
- A lost connection says nothing about the object, and a retry costs the server nothing while it cannot be reached.  Its
  delays grow to 25 s only, and are counted separately, for ``max_retries`` as well.  With the object's own delays,
  which double, the next retry after an outage could be as far away as the outage was long, and one more error, such as
  a 403 of a server that is starting, would double that again.  The same holds for a key in quarantine: that another
  object was corrected or deleted may add no request.
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
"""Seconds between two retries while the server cannot be reached, or an object is in quarantine, at most.

With the time until the connection is made again, each request is retried within half a minute of an outage's end.
"""
JITTER: Final = 0.2
"""The share by which these delays are shortened at random, at most."""


class Failure(NamedTuple):
    """What an error says about the next attempt."""

    counts: bool
    """Whether it counts for the object."""
    at_least: float
    """Seconds that the server wants to have passed before."""


@final
@attrs.define(eq=False)
class RetryDelays(Generic[K]):
    """Adds the failed requests of a run to its queue again.

    Args:
        queue: The queue, whose limiter counts the failures.
        external: Counts failures that say nothing about the object; None to let the queue's limiter count them, too.
    """

    _queue: RateLimitingQueue[K]
    _external: RateLimiter[K] | None
    _rng: random.Random = attrs.field(factory=random.Random, init=False)

    def classify(self, error: Exception) -> Failure:
        """Return what an error says about the next attempt."""
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
    """Make the limiter of failures that say nothing about the object."""
    return ItemExponentialFailureRateLimiter(max_delay=LONGEST_EXTERNAL, jitter=JITTER)


def is_external(error: TrioformerError | None) -> bool:
    """Whether retries cost nothing, and something else than the object decides when one succeeds.

    The server could not be reached, directly or by a proxy in front of it; or the cache cannot take an object, whose
    correction or deletion adds no request if it belongs to another object.
    """
    if isinstance(error, QuarantinedError):
        return True
    if isinstance(error, StatusError):
        return error.is_unexpected_server_error and error.code in (502, 503, 504)
    return error is not None and outcome_of(error) is Outcome.LOST


def request_errors(error: BaseException) -> list[TrioformerError | None]:
    """Return the library's error behind each error in nested groups: itself, or the first that it was raised from."""
    return _request_errors(error, set())


def _request_errors(error: BaseException, seen: set[int]) -> list[TrioformerError | None]:
    # ``raise group.exceptions[0] from group`` makes a cycle.
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, TrioformerError):
            return [cause]
        seen.add(id(cause))
        if isinstance(cause, BaseExceptionGroup):
            return [found for each in cause.exceptions for found in _request_errors(each, seen)]
        cause = cause.__cause__
    return [None]
