"""A queue's statistics, its remaining keys, and its observer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, Protocol, TypeVar, final, runtime_checkable

import attrs

K = TypeVar("K", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


@final
@attrs.frozen
class QueueStatistics:
    """The state of a queue at one moment.

    These are the values of client-go's metrics (``util/workqueue/metrics.go``); for the histograms of waiting and
    processing times see :class:`QueueObserver`.
    """

    depth: int
    """Pending keys, including keys in progress that will be processed once more."""
    depth_by_priority: Mapping[int, int]
    """Pending keys by priority."""
    delayed: int
    """Delayed keys."""
    processing: int
    """Keys in progress."""
    adds: int
    """How often a key became pending."""
    retries: int
    """How often a key was added with a delay."""
    longest_running: float
    """The longest time that a key has been in progress, seconds; 0 without keys in progress."""
    unfinished_work: float
    """The sum of the times that keys have been in progress, seconds."""
    tasks_waiting: int
    """Waiting workers."""
    is_shut_down: bool
    """Whether the queue is shut down."""


@final
@attrs.frozen
class Remaining(Generic[K]):
    """The keys in a queue; false if there are none."""

    processing: tuple[K, ...]
    """In progress."""
    ready: tuple[K, ...]
    """Ready, in order."""
    delayed: tuple[K, ...]
    """Delayed, the earliest first.  After a shutdown they never become due."""
    unfinished: tuple[K, ...]
    """Not processed, or not processed again, because of the shutdown."""

    def __bool__(self) -> bool:
        return bool(self.processing or self.ready or self.delayed or self.unfinished)


@runtime_checkable
class QueueObserver(Protocol[T_contra]):
    """Receives a queue's events, for metrics.

    The methods are called in the task that adds, takes or finishes a key.  They must be quick and must not raise: an
    exception propagates to that task.  The queue stays consistent.
    """

    def added(self, key: T_contra, *, priority: int) -> None:
        """Record that a key became pending (client-go's ``adds`` and ``depth``)."""
        ...

    def delayed(self, key: T_contra, *, delay: float) -> None:
        """Record that a key was added with a delay in seconds (``retries``)."""
        ...

    def taken(self, key: T_contra, *, waited: float) -> None:
        """Record that a worker took a key, which was pending for ``waited`` seconds (``queue_duration``)."""
        ...

    def finished(self, key: T_contra, *, duration: float) -> None:
        """Record that a worker has processed a key for ``duration`` seconds (``work_duration``)."""
        ...
