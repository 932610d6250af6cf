"""The bounded buffer of a listener, which is a handler or a subscription.

The process loop notifies many listeners, and some of them may be slow.  In client-go, the buffer of a listener grows
without limit.  If buffers were bounded and the process loop waited whenever a buffer was full, one slow handler would
stop the cache for all listeners.  So each listener has an overflow policy, which is implemented by a class of queue
(``_overflow.py``).  This module contains the part that all policies share: reading, resyncs and closing.

Resyncs must not accumulate if a listener is stuck, because each resync contains all objects.  So a buffer contains at
most one unread batch with the whole cache, and remembers at most one further resync (:class:`ResyncState`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, final

import attrs
import trio

from ..._util import Slices
from ...models import KubernetesObject, key_of
from ._notifications import BatchKind, DueResync, Notification, SharedBatch, Updated
from ._overflow import BlockingQueue, CoalescingQueue, Overflow, OverflowQueue

T = TypeVar("T", bound=KubernetesObject)


class BufferState(enum.Enum):
    """The state of a buffer, which determines what happens to new notifications."""

    PAUSED = "paused"
    """Notifications are dropped, because the buffer will begin with the content of the cache when it is started."""
    OPEN = "open"
    """Notifications are queued."""
    MERGING = "merging"
    """The changes of a relist are queued one by one.  The cache already contains all of them, so no resync is read
    from it."""
    BROKEN = "broken"
    """Notifications are dropped, because the listener fell behind."""
    CLOSED = "closed"
    """Notifications are dropped, because the listener was removed or its informer stopped."""


class ResyncState(enum.Enum):
    """The resync state of a buffer, which determines whether the next resync may be queued.

    The initial list and each resync are queued as a batch with the whole cache.  A batch counts as unread until the
    listener has taken its last notification.
    """

    READY = "ready"
    """No batch of the whole cache is unread, so the next resync is queued."""
    UNREAD = "unread"
    """A batch of the whole cache is unread, and the next resync will wait until the listener has read it."""
    UNREAD_AND_DUE = "unread and due"
    """A batch of the whole cache is unread, and a resync waits for it.  Further resyncs are dropped."""
    DUE = "due"
    """A resync waits until all changes of a relist are in the buffer."""


class Arrival(Protocol):
    """An event of trio or of another event loop."""

    def set(self) -> None:
        """Wake the waiting task."""
        ...

    async def wait(self) -> object:
        """Wait until the event is set."""
        ...


@final
@attrs.frozen
class BufferStatistics:
    """Statistics about the backlog of a listener."""

    buffered: int
    """The number of notifications and batches in the buffer."""
    pending_objects: int
    """The number of objects with a merged change."""
    coalesced: int
    """The number of notifications that were merged into other notifications."""
    delivered: int
    """The number of notifications that the listener has taken."""
    high_water: int
    """The largest sum of ``buffered`` and ``pending_objects`` so far."""


@final
class ListenerBuffer(Generic[T]):
    """A bounded buffer with one consumer, to which the process loop writes without waiting.

    Invariant: the batch that is being read is older than all items of the queue.  While the state is ``OPEN``, the
    buffer has received all changes to the cache.  So a resync that is read from the cache is newer than all items,
    and is queued after them.

    Args:
        snapshot: A function that returns the objects of the cache, for a deferred resync.
        buffer_size: The largest number of pending notifications before ``overflow`` applies.
        overflow: The overflow policy, which applies when the buffer is full.
        patience: With ``overflow="block"``, the longest time without a delivered notification, in seconds.
        is_paused: Whether the buffer drops notifications until :meth:`start` is called.
    """

    def __init__(
        self,
        snapshot: Callable[[], Sequence[T]],
        *,
        buffer_size: int = 1_024,
        overflow: Overflow = "coalesce",
        patience: float = 60.0,
        is_paused: bool = False,
    ) -> None:
        if buffer_size < 1:
            raise ValueError(f"buffer_size must be at least 1, not {buffer_size}")
        if overflow == "coalesce":
            self._queue: OverflowQueue[T] = CoalescingQueue(buffer_size)
        elif overflow == "block":
            self._queue = BlockingQueue(buffer_size, patience=patience)
        else:
            raise ValueError(f"overflow must be 'coalesce' or 'block', not {overflow!r}")
        self.overflow: Overflow = overflow
        self.patience = patience
        self.state = BufferState.PAUSED if is_paused else BufferState.OPEN
        self.has_synced = False
        """Whether the listener has requested another notification after the last initial object."""
        self.broken_because: str | None = None
        """The reason why the buffer is broken, or None."""
        self._synced_or_closed = trio.Event()
        self._snapshot = snapshot
        self._resync = ResyncState.READY
        self._batch: Iterator[Notification[T]] = iter(())
        """The rest of the batch that is being read."""
        self._batch_kind: BatchKind | None = None
        """The kind of the batch that is being read, or None."""
        self._arrival: Arrival | None = None
        """An event that is set when an item arrives, or None if no task waits for one."""
        self._slices: Slices | None = None
        self._delivered = 0

    # --- the writer's side: synchronous methods, called between two checkpoints ---

    def start(self) -> None:
        """Start queueing notifications if the buffer is paused."""
        if self.state is BufferState.PAUSED:
            self.state = BufferState.OPEN

    def put_all(self, notifications: Sequence[Notification[T]]) -> None:
        """Queue notifications without waiting."""
        if self.state is not BufferState.OPEN and self.state is not BufferState.MERGING:
            return
        self._queue.put_all(notifications)
        if self._arrival is not None:
            self._arrival.set()

    def put(self, notification: Notification[T]) -> None:
        """Queue one notification without waiting."""
        self.put_all((notification,))

    def put_batch(self, batch: SharedBatch[T]) -> bool:
        """Queue a shared batch, without waiting and without copying the batch.

        Returns:
            Whether the batch was accepted.  If the batch was not accepted, the listener is behind.  The caller must
            then queue the notifications one by one, so that they are merged with the pending notifications.
        """
        if self.state is not BufferState.OPEN and self.state is not BufferState.MERGING:
            return True
        if batch.kind is BatchKind.RESYNC:
            self._put_resync(batch)
        elif not self._queue.put_batch(batch):
            return False
        elif batch.kind is BatchKind.INITIAL:
            self._resync = ResyncState.UNREAD
        if self._arrival is not None:
            self._arrival.set()
        return True

    def _put_resync(self, batch: SharedBatch[T]) -> None:
        if self._resync is not ResyncState.READY:
            if self._resync is ResyncState.UNREAD:
                self._resync = ResyncState.UNREAD_AND_DUE
        elif self.state is BufferState.MERGING:
            self._resync = ResyncState.DUE
        else:
            self._queue.put_batch(batch)
            self._resync = ResyncState.UNREAD

    def begin_merging(self) -> None:
        """Defer resyncs while the caller queues the changes of a relist one by one."""
        if self.state is BufferState.OPEN:
            self.state = BufferState.MERGING

    def end_merging(self) -> None:
        """Allow resyncs again, and queue the deferred resync if there is one."""
        if self.state is not BufferState.MERGING:
            return
        self.state = BufferState.OPEN
        if self._resync is ResyncState.DUE:
            self._resync = ResyncState.READY
            self.put_batch(SharedBatch(BatchKind.RESYNC, self._snapshot()))

    def mark_broken(self, reason: str) -> None:
        """Drop all notifications, and make :meth:`take` raise ``trio.BrokenResourceError``."""
        self.state, self.broken_because = BufferState.BROKEN, reason
        self._release()

    def close(self) -> None:
        """Drop all notifications, and make :meth:`take` raise ``trio.EndOfChannel``."""
        if self.state is not BufferState.BROKEN:
            self.state = BufferState.CLOSED
        self._release()

    def _release(self) -> None:
        self._queue.clear()
        self._batch, self._batch_kind = iter(()), None
        # A program may keep the registration of a removed handler; that must not keep objects or the cache alive.
        self._resync, self._snapshot = ResyncState.READY, tuple
        self._synced_or_closed.set()
        if self._arrival is not None:
            self._arrival.set()

    def has_room(self, count: int) -> bool:
        """Return whether ``count`` notifications fit, which is always true with ``overflow="coalesce"``."""
        return self.overflow == "coalesce" or self._queue.buffered + count <= self._queue.size

    async def wait_for_room(self) -> None:
        """Wait until the notifications fit; break the buffer if the listener takes none for ``patience`` seconds.

        Buffers with ``overflow="coalesce"`` return immediately.
        """
        queue = self._queue
        if queue.buffered > queue.size and not await queue.wait_for_room(lambda: self._delivered):
            self.mark_broken(f"it took no notification for {self.patience:g} s")

    # --- the listener's side ---

    async def take(self) -> Notification[T]:
        """Remove and return the next notification; wait for one if the buffer is empty.

        This method executes a checkpoint about once a millisecond, and whenever the buffer is empty.  With a
        checkpoint in each call, listeners would fall behind in every burst of changes.

        Raises:
            trio.BusyResourceError: Another task is waiting in this method.
            trio.EndOfChannel: The buffer is closed.
            trio.BrokenResourceError: The buffer is broken, because the listener fell behind.

        Cancellation: no notification is lost.
        """
        self._check_no_reader()
        if self._slices is None:
            self._slices = Slices()
        if self._slices.is_over():
            self._arrival = trio.Event()
            try:
                await self._slices.checkpoint()
            finally:
                self._arrival = None
        while True:
            notification = self._next()
            if notification is not None:
                return notification
            await self.wait_for_arrival()

    def take_nowait(self) -> Notification[T] | None:
        """Return the next notification, or None if there is none, for a reader in another event loop.

        The reader then calls :meth:`wait_for_arrival`, without a checkpoint in between.

        Raises:
            trio.BusyResourceError: A task is waiting for a notification.
        """
        self._check_no_reader()
        return self._next()

    def _check_no_reader(self) -> None:
        if self._arrival is not None:
            raise trio.BusyResourceError(
                "another task is reading this subscription; open one subscription for each task, or let one task read "
                "and pass the notifications on through a channel"
            )

    def take_now(self, now: float) -> Notification[T] | None:
        """Return the next notification without waiting; return None if it is time to call :meth:`take`.

        A handler's task calls this method first.  In a burst, making a coroutine and reading the clock for each
        notification would take longer than everything else in :meth:`take`.

        Args:
            now: The current time on trio's clock.
        """
        if self._arrival is not None or self._slices is None or self._slices.is_over(now):
            return None
        return self._next()

    def _next(self) -> Notification[T] | None:
        """Remove and return the next notification, or return None if the buffer is empty."""
        while True:
            if self._batch_kind is not None:
                for notification in self._batch:
                    self._delivered += 1
                    return notification
                self._finish_batch()
            item = self._queue.get()
            if item is None:
                return None
            if isinstance(item, SharedBatch):
                self._batch, self._batch_kind = item.notifications(), item.kind
            elif isinstance(item, DueResync):
                self._begin_due_resync(item)
            else:
                self._delivered += 1
                return item

    async def wait_for_arrival(self, arrival: Arrival | None = None) -> None:
        """Wait until something arrives.

        Args:
            arrival: The event to wait for, which the buffer sets.  The default is an event of trio.

        Raises:
            trio.EndOfChannel: The buffer is closed.
            trio.BrokenResourceError: The buffer is broken, because the listener fell behind.
        """
        if self.state is BufferState.BROKEN:
            raise trio.BrokenResourceError(f"this listener fell behind: {self.broken_because}")
        if self.state is BufferState.CLOSED:
            raise trio.EndOfChannel
        self._arrival = trio.Event() if arrival is None else arrival
        try:
            await self._arrival.wait()
        finally:
            self._arrival = None

    def _finish_batch(self) -> None:
        kind, self._batch_kind = self._batch_kind, None
        if kind is BatchKind.INITIAL:
            self.has_synced = True
            self._synced_or_closed.set()
        if kind is not BatchKind.RELIST:
            is_due = self._resync is ResyncState.UNREAD_AND_DUE
            self._resync = ResyncState.READY
            if is_due:
                self.put_batch(SharedBatch(BatchKind.RESYNC, self._snapshot()))

    def _begin_due_resync(self, place: DueResync) -> None:
        """Begin a deferred resync: read the cache, and skip the objects that have a pending change."""
        if self.state is BufferState.MERGING:
            self._resync = ResyncState.DUE
            return
        objects, changed = self._snapshot(), place.changed
        self._batch = (Updated(obj, obj) for obj in objects if key_of(obj) not in changed)
        self._batch_kind = BatchKind.RESYNC

    async def wait_until_synced(self) -> None:
        """Wait until the listener has handled all initial objects.

        Raises:
            trio.ClosedResourceError: The buffer was closed or broken before the listener had handled all initial
                objects.
        """
        await self._synced_or_closed.wait()
        if not self.has_synced:
            raise trio.ClosedResourceError("the handler was removed, or its informer stopped, before it synced")

    def statistics(self) -> BufferStatistics:
        """Return statistics about the backlog of the listener."""
        queue = self._queue
        return BufferStatistics(
            buffered=queue.buffered,
            pending_objects=queue.pending_objects,
            coalesced=queue.coalesced,
            delivered=self._delivered,
            high_water=queue.high_water,
        )
