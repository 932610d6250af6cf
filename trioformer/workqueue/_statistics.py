"""Counts of a queue, the keys that it still holds, and the observer of what happens in it."""

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
    """Pending keys: those that wait for a worker, and those that are processed and will be handed out once more."""
    depth_by_priority: Mapping[int, int]
    """The same by priority; priorities without a key are left out."""
    delayed: int
    """Keys that are not due yet."""
    processing: int
    """Keys that workers have taken."""
    adds: int
    """How often a key became pending; adding a pending key does not count, nor does a delay before it ends."""
    retries: int
    """How often a key was added with a delay."""
    longest_running: float
    """Seconds since the oldest of the keys that are being processed was taken; 0 when no key is processed."""
    unfinished_work: float
    """Seconds since the keys that are being processed were taken, summed over all of them."""
    tasks_waiting: int
    """Workers that wait for a key."""
    is_shut_down: bool
    """Whether the queue rejects further keys."""


@final
@attrs.frozen
class Remaining(Generic[K]):
    """The keys that a queue still holds; false when it is empty."""

    processing: tuple[K, ...]
    """Taken and not done."""
    ready: tuple[K, ...]
    """Waiting for a worker, in the order of their priorities."""
    delayed: tuple[K, ...]
    """Not due, the earliest first; in a queue that is shut down they never become due."""
    unfinished: tuple[K, ...]
    """Keys that would have been processed, for the first time or again, but for the queue's shutdown."""

    def __bool__(self) -> bool:
        return bool(self.processing or self.ready or self.delayed or self.unfinished)


@runtime_checkable
class QueueObserver(Protocol[T_contra]):
    """Receives what happens in a queue, for metrics.

    The task that adds, takes or finishes a key makes the calls, so they must be quick and must not raise: an exception
    would reach that task.  The queue stays consistent even then.
    """

    def added(self, key: T_contra, *, priority: int) -> None:
        """Record that a key became pending (client-go's ``adds`` and ``depth``)."""
        ...

    def delayed(self, key: T_contra, *, delay: float) -> None:
        """Record that a key was added with a delay in seconds (``retries``)."""
        ...

    def taken(self, key: T_contra, *, waited: float) -> None:
        """Record that a worker took a key, and for how many seconds the key was pending (``queue_duration``)."""
        ...

    def finished(self, key: T_contra, *, duration: float) -> None:
        """Record that a worker is done with a key, and how many seconds that took (``work_duration``)."""
        ...
