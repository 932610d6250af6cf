"""When the next watch may start, and how long a watch may last, for resuming watches and reflectors.

The next watch starts after a backoff, or after a watch that lasted for at least a second.
The backoff is reset only after a watch that lasted for at least 30 s.
A server that ends each watch immediately, with or without an error, is therefore never sent requests in a tight loop.
A proxy that cuts every watch short costs a tenth of the time, not most of it.

A failure sets the time before which nothing is sent, instead of sleeping.
A reader that is cancelled during a backoff waits for the rest of it when it reads again.
"""

from __future__ import annotations

import math
import random
from typing import Final, final

import attrs
import trio

from ._backoff import Backoff, BackoffPolicy

MIN_WATCH_TIMEOUT: Final = 300
"""Seconds.  Each watch requests a random time between this and its double, so that not all end at the same time."""
END_GRACE: Final = 30.0
"""Seconds by which a watch may exceed its ``timeoutSeconds``."""
MAX_SILENCE: Final = 90.0
"""Seconds for which a server that is known to send bookmarks, about one a minute, may send nothing."""
HEALTHY_AFTER: Final = 30.0
"""Seconds that a watch must last for the backoff to be reset."""
VERY_SHORT: Final = 1.0
"""Seconds.  A watch that ends sooner counts as rejected.  Also the least time between two requests."""
PAUSE_FACTOR: Final = 0.1
"""The share of a short watch's duration to wait before the next watch."""


def watch_timeout(rng: random.Random) -> int:
    """Draw the ``timeoutSeconds`` of a watch, as client-go's reflector does."""
    return MIN_WATCH_TIMEOUT + int(rng.random() * MIN_WATCH_TIMEOUT)


@final
@attrs.define(eq=False)
class Pacing:
    """Times a sequence of watches and the waits between them.

    Args:
        policy: How the waits grow; None for the default.
        rng: Randomness of the waits.
    """

    _policy: BackoffPolicy | None
    _rng: random.Random
    _backoff: Backoff = attrs.field(init=False)
    resume_at: float = attrs.field(default=-math.inf, init=False)
    """The earliest time at which the next watch may start, on trio's clock."""
    _requested_at: float = attrs.field(default=-math.inf, init=False)
    _is_accepted: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._backoff = Backoff(self._policy or BackoffPolicy(), rng=self._rng)

    @property
    def is_waiting(self) -> bool:
        """Whether the next watch must not start yet."""
        return self.resume_at > trio.current_time()

    @property
    def duration(self) -> float:
        """Seconds since the last request."""
        return trio.current_time() - self._requested_at

    @property
    def is_accepted(self) -> bool:
        """Whether the server has accepted the current watch."""
        return self._is_accepted

    @property
    def is_very_short(self) -> bool:
        """Whether the current watch is shorter than :data:`VERY_SHORT`."""
        return self.duration < VERY_SHORT

    def record_request(self) -> None:
        """Record that a request is about to be sent; before it is, since a proxy may hold back the response headers.

        Lists are recorded too: the duration of a failed list must not count as that of a watch.
        """
        self._requested_at = trio.current_time()
        self._is_accepted = False

    def record_accepted(self) -> None:
        """Record that the server has accepted the watch."""
        self._is_accepted = True

    def record_end(self) -> None:
        """Record that the watch is over, and reset the backoff if it was accepted and lasted long enough."""
        if self._is_accepted and self.duration >= HEALTHY_AFTER:
            self._backoff.reset()
        self._is_accepted = False

    def pause(self) -> None:
        """Let the next watch start immediately or after a short pause; after a very short watch, back off."""
        duration = self.duration
        if duration < VERY_SHORT:
            self.back_off()
        elif duration < HEALTHY_AFTER:
            self.resume_at = trio.current_time() + min(self._backoff.policy.initial, duration * PAUSE_FACTOR)
        else:
            self._backoff.reset()
            self.resume_at = trio.current_time()

    def back_off(self, at_least: float = 0.0) -> None:
        """Let the next watch start after a delay that grows with each failure, and after ``at_least`` seconds."""
        self.record_end()
        self.resume_at = trio.current_time() + self._backoff.next_delay(at_least=at_least)

    def limit_rate(self) -> None:
        """Allow one request a second at most, however often a reader is cancelled and reads again."""
        self.resume_at = max(self.resume_at, self._requested_at + VERY_SHORT)
