"""RateLimitingQueue: a work queue that retries failed keys."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar, final

import attrs

from ._rate_limiters import RateLimiter, default_priority_queue_rate_limiter
from ._work_queue import WorkQueue

K = TypeVar("K", bound=Hashable)


@final
@attrs.define(eq=False, repr=False)
class RateLimitingQueue(WorkQueue[K]):
    """A :class:`WorkQueue` that retries a failed key after a delay.

    The end of a :meth:`take` block decides:

    - Success: the limiter forgets the key's failures.
    - An exception: the key is added again with its priority after the limiter's delay.  The exception propagates.
    - Cancellation: the key goes back to the queue.  Its failures still count.

    A worker can also handle failures inside the block, as in client-go: after it has called :meth:`add_rate_limited`,
    the end of the block neither forgets nor adds the key.

    Args:
        limiter: The delays of failed keys; by default 5 ms, doubled with every failure up to 1,000 s.
        name, oldest_every, observer: As for :class:`WorkQueue`.

    Source: client-go ``util/workqueue/rate_limiting_queue.go``.
    """

    limiter: RateLimiter[K] = attrs.field(factory=default_priority_queue_rate_limiter)
    """The delays of failed keys."""
    _rate_limited: set[K] = attrs.field(factory=set, init=False)  # in progress, and added again by their worker

    def add_rate_limited(
        self,
        key: K,
        *,
        priority: int | None = None,
        at_least: float = 0.0,
        limiter: RateLimiter[K] | None = None,
    ) -> bool:
        """Count a failure of a key, and add the key after the limiter's delay.

        Every call counts, even if the key is delayed already.

        Args:
            key: Any hashable value.
            priority: As for :meth:`add_after`.
            at_least: The minimum delay in seconds, such as a ``Retry-After``.
            limiter: Used instead of the queue's limiter.  The caller must call its ``forget()``.

        Returns:
            Whether the queue accepted the key; False when it is shut down.
        """
        if self._is_shut_down:
            return self._reject(key)
        if key in self._processing:
            self._rate_limited.add(key)
        delay = (self.limiter if limiter is None else limiter).when(key)
        return self.add_after(key, max(delay, at_least), priority=priority)

    def forget(self, key: K) -> None:
        """Reset a key's failures, for example when it is dropped.  This does not remove the key."""
        self.limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return the number of failures since the key last succeeded or was forgotten."""
        return self.limiter.num_requeues(key)

    def _finish(self, key: K, error: BaseException | None) -> None:
        _, priority = self._processing[key]
        is_decided = key in self._rate_limited
        self._rate_limited.discard(key)
        try:
            super()._finish(key, error)
        finally:
            if is_decided:
                pass
            elif error is None:
                self.limiter.forget(key)
            elif isinstance(error, Exception):
                if self._is_shut_down:
                    self._put_back(key, priority)
                else:
                    self.add_after(key, self.limiter.when(key), priority=priority)
