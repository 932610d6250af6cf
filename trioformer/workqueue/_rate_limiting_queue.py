"""The rate-limiting queue, which retries failed keys."""

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

    The outcome of a :meth:`take` block decides whether its key is retried:

    - Success: the limiter resets the failure count of the key.
    - Exception: the key is added again with the same priority, after the delay that the limiter computes.  The
      exception propagates.
    - Cancellation: the key is added again immediately, and its failure count is not reset.

    A worker can also handle a failure inside the block, as in client-go, by calling :meth:`add_rate_limited`.  In this
    case, the end of the block neither resets the failure count nor adds the key again.

    Args:
        limiter: The rate limiter that computes the delays of failed keys.  By default, the delay starts at 5 ms and
            doubles with each failure, up to 1,000 s.
        name, oldest_every, observer: The same as for :class:`WorkQueue`.

    Source: client-go ``util/workqueue/rate_limiting_queue.go``.
    """

    limiter: RateLimiter[K] = attrs.field(factory=default_priority_queue_rate_limiter)
    """The rate limiter that computes the delays of failed keys."""
    _rate_limited: set[K] = attrs.field(factory=set, init=False)  # in progress, and added again by their worker

    def add_rate_limited(
        self,
        key: K,
        *,
        priority: int | None = None,
        at_least: float = 0.0,
        limiter: RateLimiter[K] | None = None,
    ) -> bool:
        """Count a failure of a key, and add the key after the delay that the limiter computes.

        Each call counts as a failure, even if the key is already delayed.

        Args:
            key: The key, which may be any hashable value.
            priority: The priority of the key, as in :meth:`add_after`.
            at_least: The minimum delay in seconds, such as the value of a ``Retry-After`` header.
            limiter: A limiter to use instead of the queue's limiter.  In this case, the caller must call the
                ``forget()`` method of this limiter.

        Returns:
            Whether the queue accepted the key.  The queue rejects keys after its shutdown.
        """
        if self._is_shut_down:
            return self._reject(key)
        if key in self._processing:
            self._rate_limited.add(key)
        delay = (self.limiter if limiter is None else limiter).when(key)
        return self.add_after(key, max(delay, at_least), priority=priority)

    def park(self, key: K) -> None:
        """Put a key in progress aside, as in :class:`WorkQueue`, without resetting its failure count."""
        super().park(key)
        self._rate_limited.add(key)

    def forget(self, key: K) -> None:
        """Reset the failure count of a key, without removing the key from the queue."""
        self.limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return the number of failures of a key since it last succeeded or was forgotten."""
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
