"""A rate limit with a burst: the token bucket of ``golang.org/x/time/rate`` on trio's clock."""

from __future__ import annotations

import math
from typing import Final, final

import attrs
import trio

EPSILON: Final = 1e-9
"""The share of a token by which rounding may be wrong: after ``1 / rate`` seconds there is a token."""


@final
@attrs.define(eq=False)
class TokenBucket:
    """Counts tokens, and reserves tokens that are not available yet; never waits itself.

    Its rate and burst do not change.
    """

    rate: float
    """Tokens a second."""
    burst: int
    """The number of tokens in a full bucket."""
    _tokens: float = attrs.field(init=False)  # negative when tokens that are not available yet have been reserved
    _counted_at: float = attrs.field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self._tokens = self.burst

    def delay(self) -> float:
        """Return the seconds until a token is available that is not reserved; 0 if there is one now."""
        self._count()
        missing = 1 - self._tokens
        return missing / self.rate if missing > EPSILON else 0.0

    def take(self) -> float:
        """Reserve a token, and return the seconds until it is available."""
        delay = self.delay()
        self._tokens -= 1
        return delay

    def _count(self) -> None:
        now = trio.current_time()
        passed = max(0.0, now - self._counted_at)
        self._tokens = min(float(self.burst), self._tokens + passed * self.rate)
        self._counted_at = now
