"""The two kinds of queue: one that leaves failures to its user, and one that repeats what failed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar, final

import attrs

from ._queue import BaseQueue
from ._rate_limiters import RateLimiter, default_controller_rate_limiter

K = TypeVar("K", bound=Hashable)


@final
@attrs.define(eq=False, repr=False)
class WorkQueue(BaseQueue[K]):
    """Keys to be handled, each by one worker at a time.

    - A key that is added several times before a worker takes it is handled once.
    - A key has one worker at most.  Added meanwhile, however often, it is handled exactly once more.
    - The highest priority comes first; among equals, who came first.  A key that was added while it was being processed
      comes when that is done, at the end of the line, so that no key keeps others from their turn.
    - A delayed key comes when it is due; of several wishes for a key the earliest and the highest priority count.
    - Workers are served in the order in which they came to wait.

    Strictly by priority means that low ones wait as long as higher ones keep coming, for ever if need be; controller-
    runtime's queue does so, too.  ``oldest_every=8`` gives every eighth place to the key that has come first, whatever
    its priority: the low ones then move on, and the high ones lose an eighth at most.

    The queue is bounded by the number of different keys; adding never waits.
    An exception that leaves a :meth:`take` block is the caller's: the key is done, and comes again when somebody adds
    it.

    Args:
        name: What the queue is for, in its ``repr``, its log lines and in metrics; without one it logs nothing.
        oldest_every: Of the takes that find keys of several priorities, every how many-th goes to the key that came
            first; None for strictly by priority.
        observer: Is told what happens; without one nothing is measured.

    Ownership: it has no tasks and no timer, and nothing needs to be closed.  It belongs to one ``trio.run`` and one
    thread; another thread uses ``trio.from_thread.run_sync(queue.add, key)``.

    Source: client-go ``util/workqueue`` (``queue.go``, ``delaying_queue.go``); for priorities controller-runtime
    ``pkg/controller/priorityqueue``.
    """


@final
@attrs.define(eq=False, repr=False)
class RateLimitingQueue(BaseQueue[K]):
    """A :class:`WorkQueue` that repeats what failed, after a delay that its limiter says.

    How a :meth:`take` block is left says how it went, so the worker need not:

    - normally: the key succeeded; the limiter forgets its failures;
    - with an exception: the key failed; it comes again after the limiter's delay, with the priority that it had, and
      the exception goes on to the caller;
    - by cancellation: neither; the key goes back as it was, and its failures are still counted.

    A worker that handles its failures inside the block decides for itself, as in client-go: after
    :meth:`add_rate_limited` inside a block its end neither forgets nor adds the key.

    Args:
        limiter: What delays failures; `default_controller_rate_limiter` unless given.
        name: What the queue is for, in its ``repr``, its log lines and in metrics; without one it logs nothing.
        oldest_every: Of the takes that find keys of several priorities, every how many-th goes to the key that came
            first; None for strictly by priority.
        observer: Is told what happens; without one nothing is measured.

    Source: client-go ``util/workqueue/rate_limiting_queue.go``.
    """

    limiter: RateLimiter[K] = attrs.field(factory=default_controller_rate_limiter)
    """What delays failures."""
    _decided: set[K] = attrs.field(factory=set, init=False)  # in work, and rate-limited by the worker itself

    def add_rate_limited(self, key: K, *, priority: int | None = None) -> bool:
        """Count a failure, and ask for a key to be handled after the delay that the limiter says.

        Every call counts, also when the key is delayed already and merges.

        Args:
            key: Anything hashable.
            priority: As for :meth:`add_after`.

        Returns:
            Whether the queue took it; False when it is shut down.
        """
        if self._is_shut_down:
            return self._refuse(key)
        if key in self._processing:
            self._decided.add(key)
        return self.add_after(key, self.limiter.when(key), priority=priority)

    def forget(self, key: K) -> None:
        """Let the limiter forget a key's failures: it was given up.  What waits, waits."""
        self.limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """How many failures of a key have been counted since it last succeeded or was forgotten."""
        return self.limiter.num_requeues(key)

    def _finish(self, key: K, error: BaseException | None) -> None:
        _, priority = self._processing[key]
        is_decided = key in self._decided
        self._decided.discard(key)
        try:
            super()._finish(key, error)
        finally:
            if is_decided:
                pass
            elif error is None:
                self.limiter.forget(key)
            elif isinstance(error, Exception):
                if self._is_shut_down:
                    self._give_back(key, priority)
                else:
                    self.add_after(key, self.limiter.when(key), priority=priority)
