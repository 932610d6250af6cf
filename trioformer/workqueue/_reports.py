"""The data for an observer of a queue: the times when keys became pending, and the pending reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar, final

import attrs

from ._statistics import QueueObserver

K = TypeVar("K", bound=Hashable)


@final
@attrs.define(eq=False)
class Reports(Generic[K]):
    """The reports to an observer of a queue.

    The ``record_`` methods do not call the observer, so they are safe while the state of the queue is inconsistent.
    The ``report_`` methods call the observer, which may raise an exception.  So the queue calls them last.
    """

    observer: QueueObserver[K]
    pending_since: dict[K, float] = attrs.field(factory=dict, init=False)
    """The time when each key became pending."""
    waited: dict[K, float] = attrs.field(factory=dict, init=False)
    """The waiting time of each key that was given to a worker, until the worker runs."""
    unreported: deque[tuple[K, int]] = attrs.field(factory=deque, init=False)
    """The added keys that have not been reported yet, with their priorities."""

    def record_added(self, key: K, priority: int, since: float) -> None:
        """Record that a key became pending."""
        self.pending_since[key] = since
        self.unreported.append((key, priority))

    def record_taken(self, key: K, now: float) -> None:
        """Record that a key was given to a worker."""
        self.waited[key] = now - self.pending_since.pop(key)

    def report_added(self) -> None:
        """Report the added keys to the observer."""
        while self.unreported:
            key, priority = self.unreported.popleft()
            self.observer.added(key, priority=priority)

    def report_taken(self, key: K) -> None:
        """Report to the observer that a worker begins to process a key."""
        waited = self.waited.pop(key)
        self.report_added()
        self.observer.taken(key, waited=waited)
