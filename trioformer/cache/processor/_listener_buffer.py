"""The bounded buffer of one listener, a handler or a subscription.

The problem: the process loop notifies many listeners, and each may be fast or slow.
client-go gives every listener a buffer that grows without limit.  A bounded buffer whose writer waits would let one
slow handler stop the cache for all listeners.  So each listener chooses an overflow policy, which is a class of queue
(``_overflow.py``), and this module has what is the same for all: the listener's side, the resyncs, and the end.

Resyncs must not accumulate for a listener that is stuck: each holds a state of every object.  So at most one batch of
the whole cache is unread, and one more resync is remembered (:class:`ResyncState`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, final

import attrs
import trio

from ..._util import Slices
from ...models import KubernetesObject, key_of
from ._notifications import BatchKind, DueResync, Notification, SharedBatch, Updated
from ._overflow import BlockingQueue, CoalescingQueue, Overflow, OverflowQueue

T = TypeVar("T", bound=KubernetesObject)


class BufferState(enum.Enum):
    """What a buffer does with what is put into it."""

    PAUSED = "paused"
    """Drops it: when it is started, it begins with the content of the cache."""
    OPEN = "open"
    """Queues it."""
    MERGING = "merging"
    """Queues it: the changes of a relist, one by one.  The cache has all of them already, so no resync is read."""
    BROKEN = "broken"
    """Drops it: the listener fell behind."""
    CLOSED = "closed"
    """Drops it: the listener was removed, or its informer stopped."""


class ResyncState(enum.Enum):
    """Whether the next resync may be queued.

    A batch of the whole cache is the initial list or a resync; it is unread until the listener has taken all of it.
    """

    READY = "ready"
    """No batch of the whole cache is unread: the next resync is queued."""
    UNREAD = "unread"
    """One is unread; the next resync waits until it has been read."""
    UNREAD_AND_DUE = "unread and due"
    """One is unread, and a resync waits for it.  Further ones are the same one."""
    DUE = "due"
    """A resync waits until the changes of a relist have been put."""


@final
@attrs.frozen
class BufferStatistics:
    """How far a listener is behind."""

    buffered: int
    """Notifications and batches in the buffer."""
    pending_objects: int
    """Objects with a pending merged change."""
    coalesced: int
    """How many notifications have been merged into another so far."""
    delivered: int
    """How many notifications the listener has taken."""
    high_water: int
    """The largest sum of buffered notifications and batches, and pending objects so far."""


@final
class ListenerBuffer(Generic[T]):
    """A bounded buffer with one consumer; the process loop writes to it without waiting.

    Invariant: a batch that is being read is older than every item of the queue.  While the state is ``OPEN``, all
    changes of the cache were put; so a resync that is read from the cache is newer than every item, and has its place
    behind them.

    Args:
        snapshot: Returns the objects of the cache, for a resync that was deferred.
        buffer_size: How many notifications fit before ``overflow`` applies.
        overflow: What happens when the buffer is full.
        patience: For ``"block"``, how many seconds the listener may take no notification.
        is_paused: Whether it drops what is put until it is started.
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
        """Whether the listener came back for more after the last initial object."""
        self.broken_because: str | None = None
        """Why the buffer broke; None if it did not."""
        self._synced_or_closed = trio.Event()
        self._snapshot = snapshot
        self._resync = ResyncState.READY
        self._batch: Iterator[Notification[T]] = iter(())
        """What is left of the batch that is being read."""
        self._batch_kind: BatchKind | None = None
        """Its kind; None if no batch is being read."""
        self._arrival: trio.Event | None = None
        """Set when something arrives; None unless a task is in :meth:`take`."""
        self._slices: Slices | None = None
        self._delivered = 0

    # --- the writer's side: synchronous methods, called between two checkpoints of the process loop ---

    def start(self) -> None:
        """Queue what is put from now on; no effect unless it was paused."""
        if self.state is BufferState.PAUSED:
            self.state = BufferState.OPEN

    def put_all(self, notifications: Sequence[Notification[T]]) -> None:
        """Queue notifications; never waits."""
        if self.state is not BufferState.OPEN and self.state is not BufferState.MERGING:
            return
        self._queue.put_all(notifications)
        if self._arrival is not None:
            self._arrival.set()

    def put(self, notification: Notification[T]) -> None:
        """Queue one notification; never waits."""
        self.put_all((notification,))

    def put_batch(self, batch: SharedBatch[T]) -> bool:
        """Queue a shared batch; never waits and never copies it.

        Returns:
            Whether the batch was accepted.  If not, the listener is behind, and the caller puts the notifications one
            by one, which merges them with the pending ones.
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
        """Read no resync from the cache: it has all changes of a relist, and the caller puts them one by one."""
        if self.state is BufferState.OPEN:
            self.state = BufferState.MERGING

    def end_merging(self) -> None:
        """Allow resyncs again; one that is due gets its place now."""
        if self.state is not BufferState.MERGING:
            return
        self.state = BufferState.OPEN
        if self._resync is ResyncState.DUE:
            self._resync = ResyncState.READY
            self.put_batch(SharedBatch(BatchKind.RESYNC, self._snapshot()))

    def mark_broken(self, reason: str) -> None:
        """Break the buffer: unread notifications are dropped, and the listener gets ``trio.BrokenResourceError``."""
        self.state, self.broken_because = BufferState.BROKEN, reason
        self._release()

    def close(self) -> None:
        """Close the buffer: unread notifications are dropped, and the listener gets ``trio.EndOfChannel``."""
        if self.state is not BufferState.BROKEN:
            self.state = BufferState.CLOSED
        self._release()

    def _release(self) -> None:
        self._queue.clear()
        self._batch, self._batch_kind = iter(()), None
        # A program that keeps the registration of a removed handler must keep neither objects nor the cache alive.
        self._resync, self._snapshot = ResyncState.READY, tuple
        self._synced_or_closed.set()
        if self._arrival is not None:
            self._arrival.set()

    async def wait_for_room(self) -> None:
        """Wait until the process loop may go on; break the buffer if the listener takes nothing for its patience.

        Only buffers with ``overflow="block"`` make it wait.
        """
        queue = self._queue
        if queue.buffered > queue.size and not await queue.wait_for_room(lambda: self._delivered):
            self.mark_broken(f"it took no notification for {self.patience:g} s")

    # --- the listener's side ---

    async def take(self) -> Notification[T]:
        """Take the next notification; wait for one if the buffer is empty.

        A checkpoint once a millisecond, and whenever nothing is ready: with a checkpoint for each notification a burst
        of changes would outrun every listener.

        Raises:
            trio.BusyResourceError: Another task is in this method.
            trio.EndOfChannel: The buffer was closed.
            trio.BrokenResourceError: The listener fell too far behind for its ``overflow``.

        Cancellation: nothing is lost.
        """
        if self._arrival is not None:
            raise trio.BusyResourceError(
                "another task is reading this subscription; open a subscription for each task, or pass what one task "
                "reads on through a channel"
            )
        if self._slices is None:
            self._slices = Slices()
        if self._slices.is_over():
            self._arrival = trio.Event()
            try:
                await self._slices.checkpoint()
            finally:
                self._arrival = None
        while True:
            for notification in self._batch:
                self._delivered += 1
                return notification
            if self._batch_kind is not None:
                self._finish_batch()
            item = self._queue.get()
            if item is None:
                await self._wait_for_arrival()
            elif isinstance(item, SharedBatch):
                self._batch, self._batch_kind = item.notifications(), item.kind
            elif isinstance(item, DueResync):
                self._begin_due_resync(item)
            else:
                self._delivered += 1
                return item

    async def _wait_for_arrival(self) -> None:
        if self.state is BufferState.BROKEN:
            raise trio.BrokenResourceError(f"this listener fell behind: {self.broken_because}")
        if self.state is BufferState.CLOSED:
            raise trio.EndOfChannel
        self._arrival = trio.Event()
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
        """Begin to read a resync that found no room: from the cache, without the objects that change later."""
        if self.state is BufferState.MERGING:
            self._resync = ResyncState.DUE
            return
        objects, changed = self._snapshot(), place.changed
        self._batch = (Updated(obj, obj) for obj in objects if key_of(obj) not in changed)
        self._batch_kind = BatchKind.RESYNC

    async def wait_until_synced(self) -> None:
        """Wait until the listener has processed every initial object.

        Raises:
            trio.ClosedResourceError: The buffer was closed before.
        """
        await self._synced_or_closed.wait()
        if not self.has_synced:
            raise trio.ClosedResourceError("the handler was removed, or its informer stopped, before it had synced")

    def statistics(self) -> BufferStatistics:
        """How far the listener is behind."""
        queue = self._queue
        return BufferStatistics(
            buffered=queue.buffered,
            pending_objects=queue.pending_objects,
            coalesced=queue.coalesced,
            delivered=self._delivered,
            high_water=queue.high_water,
        )
