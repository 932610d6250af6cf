"""Rate limiters, which compute the delays of failed keys (client-go ``util/workqueue/default_rate_limiters.go``)."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar, final

import attrs
from attrs import validators

from .._retry import TokenBucket
from .._surroundings import new_generator

K = TypeVar("K", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """The protocol of rate limiters, which compute the delay before a failed key is retried."""

    def when(self, key: T_contra) -> float:
        """Count a failure of a key, and return its delay in seconds."""
        ...

    def forget(self, key: T_contra) -> None:
        """Reset the failure count of a key that has succeeded or was dropped."""
        ...

    def num_requeues(self, key: T_contra) -> int:
        """Return the number of failures since the key was last forgotten."""
        ...


@final
@attrs.define(eq=False)
class ItemExponentialFailureRateLimiter:
    """A rate limiter that doubles the delay with each failure of a key, up to ``max_delay``.

    After ``n`` earlier failures, the delay is ``base_delay · 2ⁿ`` seconds.  ``jitter`` spreads the retries of keys
    that failed at the same time, by shortening their delays.
    """

    base_delay: float = attrs.field(default=0.005, validator=validators.gt(0))
    """The delay after the first failure, in seconds."""
    max_delay: float = attrs.field(default=1_000.0, validator=[validators.gt(0), validators.lt(math.inf)])
    """The longest delay, in seconds."""
    jitter: float = attrs.field(default=0.0, validator=[validators.ge(0), validators.lt(1)])
    """The random share of each delay.  A delay ``d`` becomes a random value between ``d · (1 - jitter)`` and ``d``."""
    _random: random.Random = attrs.field(factory=new_generator, kw_only=True, alias="rng", repr=False)
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
        """Reset the failure count of a key."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Hashable) -> int:
        """Return the number of failures of a key."""
        return self._failures.get(key, 0)


@final
@attrs.define(eq=False)
class BucketRateLimiter:
    """A rate limiter that limits the total rate of retries, with a token bucket on trio's clock.

    If the bucket is empty, a retry reserves the next token.
    """

    qps: float = attrs.field(
        default=10.0, validator=[validators.gt(0), validators.lt(math.inf)], on_setattr=attrs.setters.frozen
    )
    """The number of retries per second, which cannot be changed later."""
    burst: int = attrs.field(default=100, validator=validators.ge(1), on_setattr=attrs.setters.frozen)
    """The number of retries without a delay if the bucket is full, which cannot be changed later."""
    _bucket: TokenBucket = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    def when(self, key: Hashable) -> float:
        """Reserve a token, and return the time in seconds until it is available."""
        return self._bucket.take()

    def forget(self, key: Hashable) -> None:
        """Do nothing, because the bucket does not count failures of keys."""

    def num_requeues(self, key: Hashable) -> int:
        """Return 0, because the bucket does not count failures of keys."""
        return 0


@final
@attrs.define(eq=False, init=False)
class MaxOfRateLimiter(Generic[K]):
    """A rate limiter that combines several limiters and uses the longest of their delays.

    Args:
        limiters: The limiters to combine.  Each limiter counts all failures.
    """

    limiters: tuple[RateLimiter[K], ...]
    """The combined limiters."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        self.limiters = limiters

    def when(self, key: K) -> float:
        """Count a failure of a key with each limiter, and return the longest delay in seconds."""
        return max((limiter.when(key) for limiter in self.limiters), default=0.0)

    def forget(self, key: K) -> None:
        """Reset the failure count of a key in each limiter."""
        for limiter in self.limiters:
            limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return the largest number of failures that a limiter has counted for a key."""
        return max((limiter.num_requeues(key) for limiter in self.limiters), default=0)


JITTER: Final = 0.2
"""The jitter of the default limiter."""


def default_priority_queue_rate_limiter() -> RateLimiter[Hashable]:
    """Return the default limiter of queues and controllers, with delays from 5 ms to 1,000 s.

    The delay doubles with each failure of the key, and jitter shortens the delay by up to a fifth.

    Source: controller-runtime ``pkg/controller/priorityqueue``, which has no jitter.
    """
    return ItemExponentialFailureRateLimiter(0.005, 1_000.0, JITTER)


def default_controller_rate_limiter() -> RateLimiter[Hashable]:
    """Return a limiter that uses the longer of two delays, as client-go's ``DefaultTypedControllerRateLimiter`` does.

    One delay depends on the key: it starts at 5 ms and doubles with each failure, up to 1,000 s.  The other delay
    limits the total rate of retries to 10 per second, after a burst of 100.

    Each retry reserves its token in advance.  So if 2,000 keys fail during an outage of one minute, the last key is
    retried minutes after the outage, even if it has failed only once.
    """
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1_000.0), BucketRateLimiter(10.0, 100))
