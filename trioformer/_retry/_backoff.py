"""Exponential backoff with jitter on trio's clock, and a time limit for retries."""

from __future__ import annotations

import math
import random
from typing import Final, final

import attrs


@attrs.frozen
class BackoffPolicy:
    """How delays grow; the defaults are those of client-go's reflector (``tools/cache/reflector.go``)."""

    initial: float = attrs.field(default=0.8, validator=attrs.validators.gt(0))
    """First delay, seconds, before jitter."""
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    """What each further delay is multiplied by."""
    maximum: float = attrs.field(default=30.0, validator=attrs.validators.gt(0))
    """Where the growth stops, seconds, before jitter."""
    jitter: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    """A delay ``d`` is drawn from ``[d, d · (1 + jitter))``."""


@final
class Backoff:
    """The delays of one retry loop.

    It grows with each :meth:`next_delay` until :meth:`reset`; the caller says what counts as health, so a loop that
    fails for hours never falls back to short delays by the mere passing of time.
    """

    __slots__ = ("_base", "_random", "policy")

    def __init__(self, policy: BackoffPolicy | None = None, *, rng: random.Random | None = None) -> None:
        self.policy = policy if policy is not None else BackoffPolicy()
        self._base = self.policy.initial
        self._random = rng if rng is not None else random.Random()

    def next_delay(self, *, at_least: float = 0.0) -> float:
        """Draw the next delay in seconds, never shorter than ``at_least`` (a ``Retry-After``)."""
        delay = self._base * (1.0 + self.policy.jitter * self._random.random())
        self._base = min(self._base * self.policy.factor, self.policy.maximum)
        return max(delay, at_least)

    def reset(self) -> None:
        """Begin again at the initial delay: the other side has proved healthy."""
        self._base = self.policy.initial


CALM: Final = 60.0
"""Seconds without a failure after which the next one opens a new window."""


@final
@attrs.define(eq=False)
class RetryWindow:
    """Says whether a failure is still to be retried: for ``length`` seconds from the first of a series."""

    length: float
    """Seconds; 0 never retries."""
    _began: float = attrs.field(default=-math.inf, init=False)
    _newest: float = attrs.field(default=-math.inf, init=False)

    def allows(self, now: float) -> bool:
        """Note a failure at ``now``, and say whether it is to be retried; when it is not, the series is over."""
        if self.length <= 0:
            return False
        if now - self._newest >= CALM:
            self._began = now
        self._newest = now
        if now - self._began > self.length:
            self._newest = -math.inf
            return False
        return True
