"""So many a second, and a burst after a pause: the token bucket of ``golang.org/x/time/rate`` on trio's clock."""

from __future__ import annotations

import math
from typing import final

import attrs
import trio


@final
@attrs.define(eq=False)
class TokenBucket:
    """Counts what may be done now, and promises what may be done later; it waits for nothing itself."""

    rate: float
    """Tokens a second."""
    burst: int
    """Tokens that it holds when none was taken for long."""
    _tokens: float = attrs.field(init=False)  # below 0 when some have been promised
    _counted_at: float = attrs.field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self._tokens = self.burst

    def delay(self) -> float:
        """Seconds until there is a token that nobody has been promised; 0 when there is one."""
        self._count()
        return max(0.0, (1 - self._tokens) / self.rate)

    def take(self) -> float:
        """Take a token, and return how many seconds it takes to come; nobody else is promised it."""
        delay = self.delay()
        self._tokens -= 1
        return delay

    def _count(self) -> None:
        now = trio.current_time()
        passed = max(0.0, now - self._counted_at)
        self._tokens = min(float(self.burst), self._tokens + passed * self.rate)
        self._counted_at = now
