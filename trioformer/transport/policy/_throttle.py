"""Limit the rate of requests: the interface of a rate limiter, and a token bucket on trio's clock.

Source: client-go ``util/flowcontrol`` and ``rest``.  The wait is not part of the request, and watches do not wait.
"""

from __future__ import annotations

import logging
import math
from typing import Final, Protocol, final

import attrs
import trio
from attrs import validators

from ..._retry import TokenBucket

BURST: Final = 10
"""The number of requests that may be sent without waiting after a pause (client-go's default)."""


_log: Final = logging.getLogger("trioformer.transport")

LONG_WAIT: Final = 1.0
"""The minimum wait, in seconds, that is logged at a higher level than DEBUG."""
NOTICEABLE_WAIT: Final = 0.05
"""The minimum wait, in seconds, that is logged at level DEBUG."""
LOG_PERIOD: Final = 10.0
"""Seconds between two log lines about waits of :data:`LONG_WAIT`."""


class RequestRateLimiter(Protocol):
    """A rate limiter, which decides when a request may be sent.

    Pass a rate limiter to ``open_client(rate_limiter=...)``.

    Several clients may share a limiter.
    Each attempt of a request and each page of a list waits for the limiter. Watches do not wait.
    The wait is not part of the request's duration.  To limit the waiting time, use a cancel scope.

    Source: client-go ``util/flowcontrol.RateLimiter``; cancellation replaces ``TryAccept`` and ``Stop``.
    """

    async def wait(self) -> None:
        """Wait until the request of this task may be sent.

        If this method raises an exception, the request raises the same exception and is not sent.
        A cancelled call must not use up any capacity.
        """
        ...


@final
@attrs.define(eq=False)
class WaitLog:
    """A logger for the delays that the rate limiter causes.

    Delays of 50 ms or more are logged at level DEBUG, and at most one long delay every ten seconds is logged at a
    higher level.

    Source: client-go ``rest/request.go``, ``tryThrottleWithInfo`` and ``throttledLogger``.
    """

    _logged_at: float = attrs.field(default=-math.inf, init=False)

    def record(self, seconds: float, where: str) -> None:
        """Record the wait of a request."""
        if seconds <= NOTICEABLE_WAIT:
            return
        level = logging.DEBUG
        if seconds > LONG_WAIT and trio.current_time() - self._logged_at >= LOG_PERIOD:
            self._logged_at = trio.current_time()
            level = logging.INFO
        text = "%s: waited %.3g s for this client's own rate limit, not for the server's priority and fairness"
        _log.log(level, text, where, seconds)


@final
@attrs.define(eq=False)
class TokenBucketRateLimiter:
    """A token bucket that lets requests pass at a limited rate, in the order of their arrival.

    One instance can limit several clients together.
    Only the first waiting request checks the bucket, and takes a token when it wakes up.  So a cancelled request
    does not use a token. After the process was suspended, at most ``burst`` requests pass at once.
    """

    qps: float = attrs.field(
        default=5.0, validator=[validators.gt(0), validators.lt(math.inf)], on_setattr=attrs.setters.frozen
    )
    """Requests per second."""
    burst: int = attrs.field(default=BURST, validator=validators.ge(1), on_setattr=attrs.setters.frozen)
    """The number of requests that may be sent without waiting after a pause."""
    _bucket: TokenBucket = attrs.field(init=False)
    _turns: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The waiting requests in order. The deadline of the first scope is the time when its request may pass."""

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    async def wait(self) -> None:
        """Wait until a token is available, and take it.

        Cancellation: no token is taken.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        # no checkpoint between checking the bucket and taking the token
        if not self._turns and self._bucket.delay() <= 0:
            self._bucket.take()
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        turn = trio.CancelScope()
        self._turns[turn] = None
        self._wake_first()
        try:
            with turn:
                await trio.sleep_forever()
            self._bucket.take()
        finally:
            del self._turns[turn]
            self._wake_first()

    def _wake_first(self) -> None:
        # Only the first request has a deadline, because trio runs tasks that wake together in any order.
        first = next(iter(self._turns), None)
        if first is not None:
            first.deadline = trio.current_time() + self._bucket.delay()
