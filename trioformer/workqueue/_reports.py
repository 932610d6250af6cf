"""What a queue remembers for its observer: since when keys are pending, and what has not been reported yet."""

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

    A key may become pending while the queue's state is inconsistent, and may be handed to a worker before that runs.
    The ``record_`` methods are for these moments and call nothing; the ``report_`` methods call the observer, which may
    raise, so the queue calls them last.
    """

    observer: QueueObserver[K]
    pending_since: dict[K, float] = attrs.field(factory=dict, init=False)
    """When each pending key was added."""
    waited: dict[K, float] = attrs.field(factory=dict, init=False)
    """How long those keys waited whose worker has not run since it received them."""
    unreported: deque[tuple[K, int]] = attrs.field(factory=deque, init=False)
    """The keys whose addition has not been reported, with their priorities."""

    def record_added(self, key: K, priority: int, since: float) -> None:
        """Record that a key is pending."""
        self.pending_since[key] = since
        self.unreported.append((key, priority))

    def record_taken(self, key: K, now: float) -> None:
        """Record that a worker receives a key."""
        self.waited[key] = now - self.pending_since.pop(key)

    def report_added(self) -> None:
        """Report the keys that became pending."""
        while self.unreported:
            key, priority = self.unreported.popleft()
            self.observer.added(key, priority=priority)

    def report_taken(self, key: K) -> None:
        """Report that a worker begins with a key."""
        waited = self.waited.pop(key)
        self.report_added()
        self.observer.taken(key, waited=waited)
