"""How long a key that failed waits: client-go's rate limiters (``util/workqueue/default_rate_limiters.go``)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar, final

import attrs
from attrs import validators

from .._retry import TokenBucket

K = TypeVar("K", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """Says how long a key waits before it is handled once more."""

    def when(self, key: T_contra) -> float:
        """Count one more try, and return how many seconds it has to wait."""
        ...

    def forget(self, key: T_contra) -> None:
        """Count from the beginning: the key succeeded, or was given up."""
        ...

    def num_requeues(self, key: T_contra) -> int:
        """How many tries have been counted since the key was last forgotten."""
        ...


@final
@attrs.define(eq=False)
class ItemExponentialFailureRateLimiter:
    """Twice as long after every failure of a key: ``base_delay · 2ⁿ`` seconds, at most ``max_delay``."""

    base_delay: float = attrs.field(default=0.005, validator=validators.gt(0))
    """The delay after the first failure, seconds."""
    max_delay: float = attrs.field(default=1_000.0, validator=[validators.gt(0), validators.lt(math.inf)])
    """The longest delay, seconds."""
    _failures: dict[Hashable, int] = attrs.field(factory=dict, init=False, repr=False)
    _enough: int = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        # From so many failures on it is max_delay.  2.0 ** 1024 raises, and a key may fail more often than that.
        self._enough = max(0, math.ceil(math.log2(self.max_delay) - math.log2(self.base_delay)))

    def when(self, key: Hashable) -> float:
        """Count a failure, and return how many seconds to wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if failures >= self._enough:
            return self.max_delay
        return math.ldexp(self.base_delay, failures)

    def forget(self, key: Hashable) -> None:
        """Begin at ``base_delay`` again."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Hashable) -> int:
        """How many failures have been counted."""
        return self._failures.get(key, 0)


@final
@attrs.define(eq=False)
class ItemFastSlowRateLimiter:
    """A short delay for the first failures of a key, then a long one."""

    fast_delay: float = attrs.field(validator=validators.ge(0))
    """The short delay, seconds."""
    slow_delay: float = attrs.field(validator=validators.ge(0))
    """The long delay, seconds."""
    max_fast_attempts: int = attrs.field(validator=validators.ge(0))
    """How many failures have the short one."""
    _failures: dict[Hashable, int] = attrs.field(factory=dict, init=False, repr=False)

    def when(self, key: Hashable) -> float:
        """Count a failure, and return how many seconds to wait."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return self.fast_delay if failures <= self.max_fast_attempts else self.slow_delay

    def forget(self, key: Hashable) -> None:
        """Begin with the short delays again."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Hashable) -> int:
        """How many failures have been counted."""
        return self._failures.get(key, 0)


@final
@attrs.define(eq=False)
class BucketRateLimiter:
    """So many tries a second for all keys together, after a first burst: a token bucket on trio's clock.

    A try that finds the bucket empty is promised the next token that nobody has been promised yet.
    """

    qps: float = attrs.field(default=10.0, validator=[validators.gt(0), validators.lt(math.inf)])
    """Tries a second."""
    burst: int = attrs.field(default=100, validator=validators.ge(1))
    """Tries that need not wait, when there was none for long."""
    _bucket: TokenBucket = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._bucket = TokenBucket(self.qps, self.burst)

    def when(self, key: Hashable) -> float:
        """Take a token, and return how many seconds it takes to come."""
        return self._bucket.take()

    def forget(self, key: Hashable) -> None:
        """Nothing is kept of a key."""

    def num_requeues(self, key: Hashable) -> int:
        """Nothing is counted: 0."""
        return 0


@final
@attrs.define(eq=False, init=False)
class MaxOfRateLimiter(Generic[K]):
    """The longest of the delays that several limiters want.

    Args:
        limiters: Each counts every try.
    """

    limiters: tuple[RateLimiter[K], ...]
    """Those that are asked."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        self.limiters = limiters

    def when(self, key: K) -> float:
        """Count a try with each, and return the longest delay, seconds."""
        return max((limiter.when(key) for limiter in self.limiters), default=0.0)

    def forget(self, key: K) -> None:
        """Tell each."""
        for limiter in self.limiters:
            limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """The most that one of them has counted."""
        return max((limiter.num_requeues(key) for limiter in self.limiters), default=0)


@final
@attrs.define(eq=False)
class WithMaxWaitRateLimiter(Generic[K]):
    """What another limiter wants, but never more than ``max_delay`` seconds."""

    limiter: RateLimiter[K]
    """The other limiter."""
    max_delay: float = attrs.field(validator=validators.ge(0))
    """The longest delay, seconds."""

    def when(self, key: K) -> float:
        """Count a try, and return how many seconds to wait."""
        return min(self.limiter.when(key), self.max_delay)

    def forget(self, key: K) -> None:
        """Tell the other limiter."""
        self.limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """What the other limiter has counted."""
        return self.limiter.num_requeues(key)


def default_controller_rate_limiter() -> RateLimiter[Hashable]:
    """Make the limiter that client-go's controllers have: the longer of two delays.

    Per key 5 ms, doubled with every failure up to 1,000 s; and for all keys together 10 tries a second after a burst of
    100.
    """
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1_000.0), BucketRateLimiter(10.0, 100))


def default_item_based_rate_limiter() -> RateLimiter[Hashable]:
    """Make a limiter that knows only single keys: 1 ms, doubled with every failure up to 1,000 s."""
    return ItemExponentialFailureRateLimiter(0.001, 1_000.0)
