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
    """Computes the delay of a failed key."""

    def when(self, key: T_contra) -> float:
        """Count a failure of a key, and return its delay in seconds."""
        ...

    def forget(self, key: T_contra) -> None:
        """Reset a key's failures, because it succeeded or was dropped."""
        ...

    def num_requeues(self, key: T_contra) -> int:
        """Return the number of failures since the key was last forgotten."""
        ...


@final
@attrs.define(eq=False)
class ItemExponentialFailureRateLimiter:
    """Doubles the delay with every failure of a key: ``base_delay · 2ⁿ`` seconds, at most ``max_delay``.

    ``jitter`` spreads the retries of keys that failed at the same time.  It only shortens delays.
    """

    base_delay: float = attrs.field(default=0.005, validator=validators.gt(0))
    """The delay after the first failure, seconds."""
    max_delay: float = attrs.field(default=1_000.0, validator=[validators.gt(0), validators.lt(math.inf)])
    """The longest delay, seconds."""
    jitter: float = attrs.field(default=0.0, validator=[validators.ge(0), validators.lt(1)])
    """Random share of each delay: a delay ``d`` becomes a value in ``(d · (1 - jitter), d]``."""
    _random: random.Random = attrs.field(factory=random.Random, kw_only=True, alias="rng", repr=False)
    _failures: dict[Hashable, int] = attrs.field(factory=dict, init=False, repr=False)
    _doublings: int = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        # After this many doublings the delay is max_delay.  2.0 ** 1024 would raise OverflowError.
        self._doublings = max(0, math.ceil(math.log2(self.max_delay) - math.log2(self.base_delay)))

    def when(self, key: Hashable) -> float:
        """Count a failure of a key, and return its delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self.max_delay if failures >= self._doublings else math.ldexp(self.base_delay, failures)
        return delay * (1 - self.jitter * self._random.random()) if self.jitter else delay

    def forget(self, key: Hashable) -> None:
        """Reset a key to ``base_delay``."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Hashable) -> int:
        """Return the number of failures of a key."""
        return self._failures.get(key, 0)


@final
@attrs.define(eq=False)
class BucketRateLimiter:
    """Limits the rate of all keys' retries: a token bucket on trio's clock.

    When the bucket is empty, a retry reserves the next free token.
    """

    qps: float = attrs.field(
        default=10.0, validator=[validators.gt(0), validators.lt(math.inf)], on_setattr=attrs.setters.frozen
    )
    """Retries per second; cannot be changed."""
    burst: int = attrs.field(default=100, validator=validators.ge(1), on_setattr=attrs.setters.frozen)
    """Retries without a delay when the bucket is full; cannot be changed."""
    _bucket: TokenBucket = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    def when(self, key: Hashable) -> float:
        """Reserve a token, and return the delay until it is available, seconds."""
        return self._bucket.take()

    def forget(self, key: Hashable) -> None:
        """Do nothing: the bucket does not track keys."""

    def num_requeues(self, key: Hashable) -> int:
        """Return 0: the bucket does not track keys."""
        return 0


@final
@attrs.define(eq=False, init=False)
class MaxOfRateLimiter(Generic[K]):
    """Combines several limiters, and returns the longest delay.

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
        """Return the largest count of the limiters."""
        return max((limiter.num_requeues(key) for limiter in self.limiters), default=0)


JITTER: Final = 0.2
"""The jitter of the default limiter."""


def default_priority_queue_rate_limiter() -> RateLimiter[Hashable]:
    """Return the default limiter of queues and controllers: 5 ms, doubled with every failure up to 1,000 s.

    A delay depends only on the failures of its key.  Jitter shortens it by up to a fifth.

    Source: controller-runtime ``pkg/controller/priorityqueue``, which has no jitter.
    """
    return ItemExponentialFailureRateLimiter(0.005, 1_000.0, JITTER)


def default_controller_rate_limiter() -> RateLimiter[Hashable]:
    """Return client-go's ``DefaultTypedControllerRateLimiter``: the longer of two delays.

    Each key waits 5 ms, doubled with every failure up to 1,000 s.  All keys together are limited to 10 retries per
    second after a burst of 100.

    Retries reserve tokens in advance: if 2,000 keys fail during an outage of a minute, the last retry is minutes after
    its end, even for a key that has failed once.
    """
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1_000.0), BucketRateLimiter(10.0, 100))
