"""The statistics of a queue, its remaining keys, and its observer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, Protocol, TypeVar, final, runtime_checkable

import attrs

K = TypeVar("K", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


@final
@attrs.frozen
class QueueStatistics:
    """Statistics about a queue at one point in time.

    The values correspond to client-go's metrics (``util/workqueue/metrics.go``).  For histograms of waiting times and
    processing times, use a :class:`QueueObserver`.
    """

    depth: int
    """The number of pending keys, including keys in progress that will be processed again."""
    depth_by_priority: Mapping[int, int]
    """The number of pending keys for each priority."""
    delayed: int
    """The number of delayed keys."""
    parked: int
    """The number of keys that a controller has put aside, because its caches do not show its own writes yet, or because
    of ``paused_by`` or ``min_interval``."""
    processing: int
    """The number of keys in progress."""
    adds: int
    """The number of times that a key became pending."""
    retries: int
    """The number of times that a key was added with a delay."""
    longest_running: float
    """The longest time that a key has been in progress, in seconds; 0 if no key is in progress."""
    unfinished_work: float
    """The sum of the times that keys have been in progress, in seconds."""
    tasks_waiting: int
    """The number of waiting workers."""
    is_shut_down: bool
    """Whether the queue is shut down."""


@final
@attrs.frozen
class Remaining(Generic[K]):
    """The keys that remain in a queue. An instance is false if no keys remain."""

    processing: tuple[K, ...]
    """The keys in progress."""
    ready: tuple[K, ...]
    """The ready keys, in the order in which they would be processed."""
    delayed: tuple[K, ...]
    """The delayed keys, in the order in which they become due, and the keys that were put aside.  After a shutdown,
    they never become due."""
    unfinished: tuple[K, ...]
    """The keys that were not processed, or not processed again, because of the shutdown."""

    def __bool__(self) -> bool:
        return bool(self.processing or self.ready or self.delayed or self.unfinished)


@runtime_checkable
class QueueObserver(Protocol[T_contra]):
    """The protocol of observers, which receive the events of a queue, for example for metrics.

    The methods are called in the task that adds, takes or finishes a key.  The methods must be fast.  If a method
    raises an exception, the exception propagates into this task, but the queue stays consistent.
    """

    def added(self, key: T_contra, *, priority: int) -> None:
        """Record that a key became pending (client-go's metrics ``adds`` and ``depth``)."""
        ...

    def delayed(self, key: T_contra, *, delay: float) -> None:
        """Record that a key was added with a delay in seconds (client-go's metric ``retries``)."""
        ...

    def taken(self, key: T_contra, *, waited: float) -> None:
        """Record that a worker took a key that was pending for ``waited`` seconds (``queue_duration``)."""
        ...

    def finished(self, key: T_contra, *, duration: float) -> None:
        """Record that a worker has finished a key after ``duration`` seconds (``work_duration``)."""
        ...
