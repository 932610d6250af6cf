"""Exponential backoff with jitter, and a rate limit with bursts, on trio's clock."""

from __future__ import annotations

import math
import random
from typing import Final, final

import attrs
import trio

from .._surroundings import new_generator

QUICK_TRIES: Final = 10
"""The default number of quick attempts in a row after the connection failed."""
EPSILON: Final = 1e-9
"""The tolerated rounding error of a token, so that a token is available after ``1 / rate`` seconds."""


@attrs.frozen
class BackoffPolicy:
    """The parameters of growing delays. The defaults are those in client-go's ``tools/cache/reflector.go``."""

    initial: float = attrs.field(default=0.8, validator=attrs.validators.gt(0))
    """The first delay in seconds, before jitter."""
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    """The factor by which the delay grows after each failure."""
    maximum: float = attrs.field(default=30.0, validator=attrs.validators.gt(0))
    """The longest delay in seconds, before jitter."""
    jitter: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    """A delay ``d`` is drawn from ``[d, d · (1 + jitter))``."""
    quick_tries: int = attrs.field(default=QUICK_TRIES, validator=attrs.validators.ge(0))
    """The number of quick attempts in a row after the connection has failed, 0.5 to 1 s apart; 0 disables them.

    Informers, resuming watches and ``wait_for`` make these attempts before the delays above apply.  client-go also
    repeats a watch ten times when its connection ends or times out (``rest/with_retry.go``).
    """


@final
@attrs.define(eq=False)
class Backoff:
    """The delays of one retry loop.

    The delays grow with each call to :meth:`next_delay` until :meth:`reset` is called.
    The caller decides when to call :meth:`reset`. Time without a retry does not shorten the delays.
    """

    policy: BackoffPolicy = attrs.field(factory=BackoffPolicy)
    """How the delays grow."""
    _random: random.Random = attrs.field(factory=new_generator, kw_only=True, alias="rng")
    _base: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._base = self.policy.initial

    def next_delay(self, *, at_least: float = 0.0) -> float:
        """Return the next random delay in seconds. It is never shorter than ``at_least``, such as a ``Retry-After``."""
        delay = self._base * (1.0 + self.policy.jitter * self._random.random())
        self._base = min(self._base * self.policy.factor, self.policy.maximum)
        return max(delay, at_least)

    def reset(self) -> None:
        """Start again at the initial delay."""
        self._base = self.policy.initial


@final
@attrs.define(eq=False)
class TokenBucket:
    """A token bucket that counts and reserves tokens but never waits.

    The bucket works like ``golang.org/x/time/rate``, but on trio's clock and with a constant rate and burst.
    """

    rate: float
    """The number of tokens that are added per second."""
    burst: int
    """The number of tokens in a full bucket."""
    _tokens: float = attrs.field(init=False)  # negative when tokens that are not available yet have been reserved
    _counted_at: float = attrs.field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self._tokens = self.burst

    def delay(self) -> float:
        """Return the seconds until an unreserved token is available, or 0 if one is available now."""
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
