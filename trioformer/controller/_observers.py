"""The observers of a run: those of the controller's arguments, and those that were added, as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar, final

import attrs

from ..workqueue import QueueObserver
from ._request import K
from ._results import ReconcileResult
from ._statistics import ControllerObserver

T = TypeVar("T")


@final
@attrs.frozen(eq=False)
class ControllerObservers(Generic[K]):
    """Calls several controller observers."""

    observers: Sequence[ControllerObserver[K]]

    def began(self, request: K) -> None:
        """Call ``began`` of each."""
        for each in self.observers:
            each.began(request)

    def ended(
        self, request: K, *, result: ReconcileResult, duration: float, is_terminal: bool, has_timed_out: bool
    ) -> None:
        """Call ``ended`` of each."""
        for each in self.observers:
            each.ended(request, result=result, duration=duration, is_terminal=is_terminal, has_timed_out=has_timed_out)


@final
@attrs.frozen(eq=False)
class QueueObservers(Generic[K]):
    """Calls several queue observers."""

    observers: Sequence[QueueObserver[K]]

    def added(self, key: K, *, priority: int) -> None:
        """Call ``added`` of each."""
        for each in self.observers:
            each.added(key, priority=priority)

    def delayed(self, key: K, *, delay: float) -> None:
        """Call ``delayed`` of each."""
        for each in self.observers:
            each.delayed(key, delay=delay)

    def taken(self, key: K, *, waited: float) -> None:
        """Call ``taken`` of each."""
        for each in self.observers:
            each.taken(key, waited=waited)

    def finished(self, key: K, *, duration: float) -> None:
        """Call ``finished`` of each."""
        for each in self.observers:
            each.finished(key, duration=duration)


@final
@attrs.define(eq=False)
class Observers(Generic[K]):
    """Observers of both kinds."""

    of_reconciles: list[ControllerObserver[K]] = attrs.field(factory=list)
    of_queues: list[QueueObserver[K]] = attrs.field(factory=list)

    def add(self, observer: ControllerObserver[K] | None, queue_observer: QueueObserver[K] | None) -> None:
        """Add one of each kind, or of one kind."""
        self.of_reconciles += [] if observer is None else [observer]
        self.of_queues += [] if queue_observer is None else [queue_observer]

    def discard(self, *observers: object) -> None:
        """Remove observers."""
        self.of_reconciles = _without(self.of_reconciles, observers)
        self.of_queues = _without(self.of_queues, observers)

    def for_reconciles(self) -> ControllerObserver[K] | None:
        """Return one observer that calls all that there are now; None without observers."""
        found = tuple(self.of_reconciles)
        return ControllerObservers(found) if len(found) > 1 else next(iter(found), None)

    def for_queue(self) -> QueueObserver[K] | None:
        """Return one observer that calls all that there are now; None without observers."""
        found = tuple(self.of_queues)
        return QueueObservers(found) if len(found) > 1 else next(iter(found), None)


def _without(observers: Iterable[T], others: Iterable[object]) -> list[T]:
    return [each for each in observers if not any(each is other for other in others)]
