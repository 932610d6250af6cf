"""What a queue says of itself: counts, what is left, and whom it tells as things happen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, Protocol, TypeVar, final

import attrs

K = TypeVar("K", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


@final
@attrs.frozen
class QueueStatistics:
    """How a queue does, at one moment.

    These are the measurements of client-go's metrics (``util/workqueue/metrics.go``); the histograms, of how long keys
    waited and were processed, are for a :class:`QueueObserver` to make.
    """

    depth: int
    """Keys that wait for a worker, with those that are being processed and will be handed out once more."""
    depth_by_priority: Mapping[int, int]
    """The same by priority; a priority with no key is left out."""
    delayed: int
    """Keys that are not due yet."""
    processing: int
    """Keys that workers have taken."""
    adds: int
    """How often a key began to wait; adding one that waits already does not count, nor does a delay before it ends."""
    retries: int
    """How often a key was added with a delay."""
    longest_running: float
    """Seconds that the key that was taken first has been processed for; 0 when there is none."""
    unfinished_work: float
    """Seconds that all keys that are being processed have been so far, added up."""
    tasks_waiting: int
    """Workers that wait for a key."""
    is_shut_down: bool
    """Whether the queue refuses further keys."""


@final
@attrs.frozen
class Remaining(Generic[K]):
    """The keys that a queue still holds; false when there are none."""

    processing: tuple[K, ...]
    """Taken and not done yet."""
    ready: tuple[K, ...]
    """Waiting for a worker, in the order of their priorities."""
    delayed: tuple[K, ...]
    """Not due yet, first due first; in a queue that is shut down they never come due."""
    unfinished: tuple[K, ...]
    """Work that should have been repeated, when the queue was shut down already and could not take the key back."""

    def __bool__(self) -> bool:
        return bool(self.processing or self.ready or self.delayed or self.unfinished)


class QueueObserver(Protocol[T_contra]):
    """Is told what happens in a queue, for metrics.

    The calls come from whoever adds, takes or finishes a key, so they must be quick and must not raise: an exception
    would reach that task.  The queue is then in order all the same.
    """

    def added(self, key: T_contra, *, priority: int) -> None:
        """Note that a key began to wait for a worker (client-go's ``adds`` and ``depth``)."""
        ...

    def delayed(self, key: T_contra, *, delay: float) -> None:
        """Note that a key was added with a delay of so many seconds (``retries``)."""
        ...

    def taken(self, key: T_contra, *, waited: float) -> None:
        """Note that a worker took a key, so many seconds after it began to wait (``queue_duration``)."""
        ...

    def finished(self, key: T_contra, *, lasted: float) -> None:
        """Note that a worker is done with a key, so many seconds after it took it (``work_duration``)."""
        ...
