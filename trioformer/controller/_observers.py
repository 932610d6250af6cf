"""The observers of a controller, which are passed by the user or attached by metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, final

import attrs

from .._suggestions import check_observer, describe
from ..workqueue import QueueObserver
from ._request import K
from ._statistics import ControllerObserver


@final
@attrs.frozen(eq=False)
class QueueObservers(Generic[K]):
    """A queue observer that calls several queue observers."""

    observers: Sequence[QueueObserver[K]]

    def added(self, key: K, *, priority: int) -> None:
        """Call ``added()`` on all observers."""
        for each in self.observers:
            each.added(key, priority=priority)

    def delayed(self, key: K, *, delay: float) -> None:
        """Call ``delayed()`` on all observers."""
        for each in self.observers:
            each.delayed(key, delay=delay)

    def taken(self, key: K, *, waited: float) -> None:
        """Call ``taken()`` on all observers."""
        for each in self.observers:
            each.taken(key, waited=waited)

    def finished(self, key: K, *, duration: float) -> None:
        """Call ``finished()`` on all observers."""
        for each in self.observers:
            each.finished(key, duration=duration)


@final
@attrs.define(eq=False)
class Observers(Generic[K]):
    """The reconcile observers and queue observers of a controller."""

    of_reconciles: list[ControllerObserver[K]] = attrs.field(factory=list)
    of_queues: list[QueueObserver[K]] = attrs.field(factory=list)

    def add(self, observer: object) -> None:
        """Add an observer, which may implement one protocol or both.

        Raises:
            TypeError: The observer implements neither protocol, or one of its methods is async.
        """
        if not isinstance(observer, ControllerObserver | QueueObserver):
            what = "began() and ended(), or added(), delayed(), taken() and finished()"
            raise TypeError(f"observer= requires an object with {what}, not {describe(observer)}")
        if isinstance(observer, ControllerObserver):
            check_observer(observer, ControllerObserver)
            self.of_reconciles.append(observer)
        if isinstance(observer, QueueObserver):
            check_observer(observer, QueueObserver)
            self.of_queues.append(observer)

    def discard(self, observer: object) -> None:
        """Remove an observer."""
        self.of_reconciles = [each for each in self.of_reconciles if each is not observer]
        self.of_queues = [each for each in self.of_queues if each is not observer]

    def for_queue(self) -> QueueObserver[K] | None:
        """Return a single observer that calls all current queue observers, or None if there are none."""
        found = tuple(self.of_queues)
        return QueueObservers(found) if len(found) > 1 else next(iter(found), None)
