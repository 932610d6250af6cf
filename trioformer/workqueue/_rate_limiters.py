"""Delays of failed keys: client-go's rate limiters (``util/workqueue/default_rate_limiters.go``)."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar, final

import attrs
from attrs import validators

from .._retry import TokenBucket

K = TypeVar("K", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """Decides how long a failed key waits until it is processed again."""

    def when(self, key: T_contra) -> float:
        """Count one more failure of a key, and return how many seconds the key waits."""
        ...

    def forget(self, key: T_contra) -> None:
        """Reset a key's failures: it succeeded, or was given up."""
        ...

    def num_requeues(self, key: T_contra) -> int:
        """Return how many failures were counted since the key was last forgotten."""
        ...


@final
@attrs.define(eq=False)
class ItemExponentialFailureRateLimiter:
    """Doubles the delay with every failure of a key: ``base_delay · 2ⁿ`` seconds, at most ``max_delay``.

    With ``jitter``, keys that failed at the same time are not all retried at the same time.  It only shortens a delay,
    so no retry is later than without it.
    """

    base_delay: float = attrs.field(default=0.005, validator=validators.gt(0))
    """The delay after the first failure, seconds."""
    max_delay: float = attrs.field(default=1_000.0, validator=[validators.gt(0), validators.lt(math.inf)])
    """The longest delay, seconds."""
    jitter: float = attrs.field(default=0.0, validator=[validators.ge(0), validators.lt(1)])
    """The share by which each delay is shortened at random, at most: ``d`` is drawn from ``(d · (1 - jitter), d]``."""
    _random: random.Random = attrs.field(factory=random.Random, kw_only=True, alias="rng", repr=False)
    _failures: dict[Hashable, int] = attrs.field(factory=dict, init=False, repr=False)
    _doublings: int = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        # After so many doublings the delay is max_delay.  2.0 ** 1024 raises, and a key may fail more often than that.
        self._doublings = max(0, math.ceil(math.log2(self.max_delay) - math.log2(self.base_delay)))

    def when(self, key: Hashable) -> float:
        """Count a failure of a key, and return how many seconds the key waits."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self.max_delay if failures >= self._doublings else math.ldexp(self.base_delay, failures)
        return delay * (1 - self.jitter * self._random.random()) if self.jitter else delay

    def forget(self, key: Hashable) -> None:
        """Reset a key to ``base_delay``."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Hashable) -> int:
        """Return how many failures of a key were counted."""
        return self._failures.get(key, 0)


@final
@attrs.define(eq=False)
class BucketRateLimiter:
    """Limits the retries of all keys together to a rate, after a burst: a token bucket on trio's clock.

    When the bucket is empty, a retry reserves the next token that is not reserved.
    """

    qps: float = attrs.field(
        default=10.0, validator=[validators.gt(0), validators.lt(math.inf)], on_setattr=attrs.setters.frozen
    )
    """Retries per second; cannot be changed."""
    burst: int = attrs.field(default=100, validator=validators.ge(1), on_setattr=attrs.setters.frozen)
    """Retries that need not wait when the bucket is full; cannot be changed."""
    _bucket: TokenBucket = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    def when(self, key: Hashable) -> float:
        """Reserve a token, and return how many seconds it takes until it is there."""
        return self._bucket.take()

    def forget(self, key: Hashable) -> None:
        """Do nothing: the bucket does not know keys."""

    def num_requeues(self, key: Hashable) -> int:
        """Return 0: the bucket does not count failures."""
        return 0


@final
@attrs.define(eq=False, init=False)
class MaxOfRateLimiter(Generic[K]):
    """Returns the longest of the delays of several limiters.

    Args:
        limiters: The limiters; each counts every failure.
    """

    limiters: tuple[RateLimiter[K], ...]
    """The limiters."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        self.limiters = limiters

    def when(self, key: K) -> float:
        """Count a failure with each limiter, and return the longest delay, seconds."""
        return max((limiter.when(key) for limiter in self.limiters), default=0.0)

    def forget(self, key: K) -> None:
        """Reset a key in each limiter."""
        for limiter in self.limiters:
            limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return the largest of the limiters' counts."""
        return max((limiter.num_requeues(key) for limiter in self.limiters), default=0)


JITTER: Final = 0.2
"""The jitter of the default limiter, so that keys that failed together are not all retried at the same time."""


def default_priority_queue_rate_limiter() -> RateLimiter[Hashable]:
    """Make the limiter of queues and controllers that are given none: 5 ms, doubled with every failure up to 1,000 s.

    Each key waits for its own failures only.
    A delay is shorter by up to a fifth, at random.

    Source: controller-runtime ``pkg/controller/priorityqueue``, which has no jitter.
    """
    return ItemExponentialFailureRateLimiter(0.005, 1_000.0, JITTER)


def default_controller_rate_limiter() -> RateLimiter[Hashable]:
    """Make client-go's ``DefaultTypedControllerRateLimiter``: the longer of two delays.

    Each key waits 5 ms, doubled with every failure up to 1,000 s; all keys together are limited to 10 retries per
    second after a burst of 100.

    Retries reserve places in that rate: when 2,000 keys fail during an outage of a minute, the last of them is retried
    minutes after its end, and so is a key that has failed once.
    """
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1_000.0), BucketRateLimiter(10.0, 100))
