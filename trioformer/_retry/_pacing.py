"""Determine the time of the next request and the duration of watches, for all retries.

Failures are handled in two ways:

- If the connection failed, the request is repeated after 0.5 to 1 s, up to ten times in a row and eighty times a
  minute, before the delays grow.  Most outages are short, and a refused connection costs the server nothing.
- If the server responded with an error, a watch ended immediately, or the connection broke during a list, the delays
  grow from the first failure.

A watch counts as a success if it has delivered an event or lasted for some seconds.
After a success or a list, ten quick attempts are available again.
The growing delays are reset after a watch that lasted for some seconds, and after a shorter watch that delivered
events before its connection broke.  If the watch ended with an error from the server, it must have lasted for half a
minute.
A list does not reset the delays, because some servers support lists but fail every watch.

Recording a failure never sleeps; it only sets the time of the next request.
If a reader is cancelled during a wait, it waits for the remaining time when it reads again.

Sources: client-go's ``rest/with_retry.go``, which retries a watch ten times at intervals of about a second when its
connection ends or times out, and ``tools/cache/reflector.go``, which increases its delays even for refused connections.
"""

from __future__ import annotations

import enum
import math
import random
from collections.abc import Awaitable, Callable
from typing import Final, final

import attrs
import trio

from ._backoff import Backoff, BackoffPolicy, TokenBucket

MIN_WATCH_TIMEOUT: Final = 300
"""Seconds.  Each watch requests a random time between this and twice this, so that watches do not end together."""
END_GRACE: Final = 30.0
"""How much longer than its ``timeoutSeconds`` a watch may last, in seconds."""
MAX_SILENCE: Final = 90.0
"""The longest allowed silence in seconds, if the server is known to send a bookmark about once a minute."""
HEALTHY_AFTER: Final = 5.0
"""Seconds after which a watch counts as a success even without an event."""
VERY_SHORT: Final = 1.0
"""Seconds.  A watch that ends earlier counts as rejected.  One reader's requests are at least this far apart."""
PAUSE_FACTOR: Final = 0.1
"""The wait before the next watch, as a fraction of the last watch's duration."""
NO_PAUSE_AFTER: Final = 30.0
"""After a watch of at least this many seconds, the next watch starts at once, and the delays after errors are reset."""
QUICK_DELAY: Final = 0.5
"""Seconds.  After the connection failed, the next attempt follows after a random time between this and twice this."""
QUICK_TRIES_A_MINUTE: Final = 80
"""The largest number of quick attempts in a minute, even if each of them is followed by a short success."""


class Wait(enum.Enum):
    """The wait before the next request."""

    NONE = "immediately"
    PAUSE = "a tenth of the watch's duration"
    RECONNECT = "0.5 to 1 s, ten times; then as BACK_OFF"
    BACK_OFF = "a growing delay, at least Retry-After"


def watch_timeout(rng: random.Random) -> int:
    """Return a random ``timeoutSeconds`` for a watch, as client-go's reflector does."""
    return MIN_WATCH_TIMEOUT + int(rng.random() * MIN_WATCH_TIMEOUT)


@final
@attrs.define(eq=False)
class QuickTries:
    """A counter that limits the quick attempts in a row after connection failures."""

    _limit: int
    _rng: random.Random
    _used: int = attrs.field(default=0, init=False)

    def next_delay(self) -> float | None:
        """Return the seconds before the next quick attempt, or None if no quick attempts are left."""
        if self._used >= self._limit:
            return None
        self._used += 1
        return QUICK_DELAY * (1 + self._rng.random())

    def reset(self) -> None:
        """Record a success."""
        self._used = 0


@final
@attrs.define(eq=False)
class Pacing:
    """A timer for a sequence of requests and the waits between them.

    Args:
        policy: The parameters of the growing delays. The default, None, uses the default policy.
        rng: The source of random numbers for the waits.
    """

    _policy: BackoffPolicy | None
    rng: random.Random
    resume_at: float = attrs.field(default=-math.inf, init=False)
    """The earliest time at which the next request may be sent, on trio's clock."""
    wait: Wait = attrs.field(default=Wait.NONE, init=False)
    """The kind of the last wait that was set."""
    is_accepted: bool = attrs.field(default=False, init=False)
    """Whether the server has accepted the current watch."""
    _backoff: Backoff = attrs.field(init=False)
    _budget: TokenBucket = attrs.field(init=False)
    _quick_tries: QuickTries = attrs.field(init=False)
    _requested_at: float = attrs.field(default=-math.inf, init=False)
    _has_delivered: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        policy = self._policy or BackoffPolicy()
        self._backoff = Backoff(policy, rng=self.rng)
        self._quick_tries = QuickTries(policy.quick_tries, self.rng)
        self._budget = TokenBucket(QUICK_TRIES_A_MINUTE / 60, QUICK_TRIES_A_MINUTE)

    @property
    def is_waiting(self) -> bool:
        """Whether the next request must still wait."""
        return self.resume_at > trio.current_time()

    @property
    def duration(self) -> float:
        """Seconds since the last request."""
        return trio.current_time() - self._requested_at

    @property
    def is_very_short(self) -> bool:
        """Whether the current watch is shorter than :data:`VERY_SHORT`."""
        return self.duration < VERY_SHORT

    def record_request(self) -> None:
        """Record the start of a request. A proxy may delay the response, so its time is not used."""
        self._requested_at = trio.current_time()
        self.is_accepted = self._has_delivered = False

    def record_accepted(self) -> None:
        """Record that the server has accepted the watch."""
        self.is_accepted = True

    def record_delivery(self) -> None:
        """Record that the watch has delivered events."""
        self._has_delivered = True

    def record_list(self) -> None:
        """Record that a list was received completely, which shows that the server can be reached."""
        self._quick_tries.reset()

    def set_wait(self, wait: Wait, at_least: float = 0.0) -> Wait:
        """Set the time of the next request.

        Args:
            wait: The kind of wait.  After a watch of less than a second, a pause becomes a growing delay. After a
                longer watch that broke, a reconnect becomes a pause.
            at_least: The minimum of the growing delay in seconds, from a ``Retry-After``.

        Returns:
            The kind of wait that was set.
        """
        self.wait, duration = wait, self.duration
        is_success = self.is_accepted and (self._has_delivered or duration >= HEALTHY_AFTER)
        if is_success:
            self._quick_tries.reset()
        healthy_after = NO_PAUSE_AFTER if wait is Wait.BACK_OFF else HEALTHY_AFTER
        if is_success and (duration >= healthy_after or (wait is Wait.RECONNECT and not self._budget.delay())):
            self._backoff.reset()
        is_short = duration < VERY_SHORT
        if wait is Wait.RECONNECT and self.is_accepted and not is_short:
            wait = Wait.PAUSE
        elif wait is Wait.PAUSE and is_short:
            wait = Wait.BACK_OFF
        delay = 0.0
        if wait is Wait.BACK_OFF:
            delay = self._backoff.next_delay(at_least=at_least)
        elif wait is Wait.PAUSE:
            delay = min(self._backoff.policy.initial, duration * PAUSE_FACTOR) if duration < NO_PAUSE_AFTER else 0.0
        elif wait is Wait.RECONNECT:
            delay = self._next_reconnect_delay()
        self.is_accepted = self._has_delivered = False
        self.resume_at = trio.current_time() + delay
        return wait

    def _next_reconnect_delay(self) -> float:
        if self._budget.delay() > 0 or (delay := self._quick_tries.next_delay()) is None:
            return self._backoff.next_delay()
        self._budget.take()
        return delay

    async def sleep(self, wait_to_retry: Callable[[float], Awaitable[None]], until: float = math.inf) -> None:
        """Sleep until the next request may be sent.

        Args:
            wait_to_retry: An async function that waits until a given time, and then for its turn among the other
                retries. It is called after the connection failed.
            until: The latest time to sleep until.
        """
        until = min(until, self.resume_at)
        await (wait_to_retry(until) if self.wait is Wait.RECONNECT else trio.sleep_until(until))

    def limit_rate(self) -> None:
        """Limit requests to one a second, even if a reader is repeatedly cancelled and restarted."""
        self.resume_at = max(self.resume_at, self._requested_at + VERY_SHORT)
