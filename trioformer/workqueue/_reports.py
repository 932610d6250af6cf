"""Data for a queue's observer: when keys became pending, and reports that have not been made."""

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
    """Calls an observer.

    The ``record_`` methods do not call the observer, so they are safe while the queue's state is inconsistent.
    The ``report_`` methods call the observer, which may raise, so the queue calls them last.
    """

    observer: QueueObserver[K]
    pending_since: dict[K, float] = attrs.field(factory=dict, init=False)
    """The time when each key became pending."""
    waited: dict[K, float] = attrs.field(factory=dict, init=False)
    """The waiting time of keys that were handed to a worker that has not run yet."""
    unreported: deque[tuple[K, int]] = attrs.field(factory=deque, init=False)
    """Added keys that have not been reported, with their priorities."""

    def record_added(self, key: K, priority: int, since: float) -> None:
        """Record that a key is pending."""
        self.pending_since[key] = since
        self.unreported.append((key, priority))

    def record_taken(self, key: K, now: float) -> None:
        """Record that a key is handed to a worker."""
        self.waited[key] = now - self.pending_since.pop(key)

    def report_added(self) -> None:
        """Report the keys that became pending."""
        while self.unreported:
            key, priority = self.unreported.popleft()
            self.observer.added(key, priority=priority)

    def report_taken(self, key: K) -> None:
        """Report that a worker starts to process a key."""
        waited = self.waited.pop(key)
        self.report_added()
        self.observer.taken(key, waited=waited)
