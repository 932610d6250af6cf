"""RateLimitingQueue: a work queue that retries keys whose work failed."""

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
    """A :class:`WorkQueue` that adds a key again when its work failed, after a delay from its limiter.

    The way a :meth:`take` block ends is the result of the work:

    - normally: it succeeded; the limiter forgets the key's failures;
    - with an exception: it failed; the key is added again after the limiter's delay, with the priority that it had, and
      the exception goes on to the caller;
    - by cancellation: neither; the key goes back to the queue, and its failures still count.

    A worker that handles failures inside the block decides for itself, as in client-go: after a call of
    :meth:`add_rate_limited` inside the block, the end of the block neither forgets nor adds the key.

    Args:
        limiter: Decides the delays of failed keys; by default 5 ms, doubled with every failure up to 1,000 s.
        name: The queue's name in its ``repr``, its log lines and in metrics; a queue without a name logs nothing.
        oldest_every: When keys of several priorities are ready, every n-th take is given the oldest key; None for
            strict priorities.
        observer: Receives what happens; without one nothing is measured.

    Source: client-go ``util/workqueue/rate_limiting_queue.go``.
    """

    limiter: RateLimiter[K] = attrs.field(factory=default_priority_queue_rate_limiter)
    """Decides the delays of failed keys."""
    _rate_limited: set[K] = attrs.field(factory=set, init=False)  # being processed, and added again by their worker

    def add_rate_limited(
        self,
        key: K,
        *,
        priority: int | None = None,
        at_least: float = 0.0,
        limiter: RateLimiter[K] | None = None,
    ) -> bool:
        """Count a failure of a key, and add the key after the limiter's delay.

        Every call counts, also when the key is delayed already.

        Args:
            key: Any hashable value.
            priority: As for :meth:`add_after`.
            at_least: Seconds that the key waits even if the limiter's delay is shorter, such as a ``Retry-After``.
            limiter: Counts this failure, and decides its delay, instead of the queue's; the caller makes it forget.

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
        """Reset a key's failures, for example when it is given up.  The queue keeps the key if it has it."""
        self.limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return how many failures of a key were counted since it last succeeded or was forgotten."""
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
