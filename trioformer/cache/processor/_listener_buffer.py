"""The bounded buffer of one listener, a handler or a subscription.

The problem: the process loop notifies many listeners, and each may be fast or slow.
client-go gives every listener a buffer that grows without limit.  A bounded buffer whose writer waits would let one
slow handler stop the cache for all listeners.  So the writer never waits in this module; the listener chooses what
happens when its buffer is full:

- ``coalesce``: the pending notifications of one object are merged into one change, from the state that the listener
  received last to the current state.  The bound is one entry for each object.  While an entry is pending, all later
  notifications are merged too, until the listener has caught up; otherwise it would receive states out of order.
- ``block``: notifications that do not fit wait in a backlog of at most one batch, and the process loop pops no further
  batch until the backlog is empty (:meth:`ListenerBuffer.wait_for_backlog`), or the listener has taken nothing for
  ``patience`` seconds.
- ``raise``: the buffer breaks; the listener gets ``trio.BrokenResourceError``.

The initial list, the differences of a relist and a resync are each one shared, immutable batch and take one place in
the buffer, however many objects they hold.  A second batch is not queued behind an unread one: the differences of a
relist are merged one by one, and a resync is deferred until the listener has caught up, and then read from the cache.
"""

from __future__ import annotations

import enum
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, Literal, TypeAlias, TypeVar, final

import attrs
import trio

from ..._util import Slices
from ...models import KubernetesObject, key_of
from ._notifications import Added, Deleted, Notification, Updated, object_of

T = TypeVar("T", bound=KubernetesObject)

Overflow: TypeAlias = Literal["coalesce", "block", "raise"]
"""What happens when a listener's buffer is full."""


class BatchKind(enum.Enum):
    """The origin of a batch."""

    INITIAL = "initial"
    RELIST = "relist"
    RESYNC = "resync"


@final
@attrs.frozen
class SharedBatch(Generic[T]):
    """Notifications that all listeners share: the objects of an initial list or a resync, or a relist's differences."""

    kind: BatchKind
    objects: Sequence[T] = ()
    changes: Sequence[Notification[T]] = ()

    def __len__(self) -> int:
        return len(self.objects) + len(self.changes)

    def notifications(self) -> Iterator[Notification[T]]:
        """Create the notifications one by one, as they are taken."""
        if self.kind is BatchKind.INITIAL:
            return (Added(obj, is_initial=True) for obj in self.objects)
        if self.kind is BatchKind.RESYNC:
            return (Updated(obj, obj) for obj in self.objects)
        return iter(self.changes)


@final
@attrs.frozen
class BufferStatistics:
    """How far a listener is behind."""

    buffered: int
    """Notifications and batches in the buffer and its backlog."""
    pending_objects: int
    """Objects with a pending merged change."""
    coalesced: int
    """How many notifications have been merged into another so far."""
    delivered: int
    """How many notifications the listener has taken."""
    high_water: int
    """The largest sum of buffered notifications and pending objects so far."""


@attrs.define(eq=False)
class _Pending(Generic[T]):
    """The merged change of one object: the state that the listener received last, its deletion, the current state."""

    before: T | None
    tombstone: Deleted[T] | None
    after: T | None

    def notifications(self) -> Iterator[Notification[T]]:
        if self.before is not None and self.tombstone is not None:
            yield self.tombstone
            if self.after is not None:
                yield Added(self.after)
        elif self.after is not None:
            yield Added(self.after) if self.before is None else Updated(self.before, self.after)


@final
@attrs.define(eq=False, repr=False, init=False)
class ListenerBuffer(Generic[T]):
    """A bounded buffer with one consumer; the process loop writes to it without waiting.

    Args:
        snapshot: Returns the objects of the cache, for a deferred resync.
        buffer_size: How many notifications fit before ``overflow`` applies.
        overflow: What happens when the buffer is full.
        patience: For ``"block"``, how many seconds the listener may take no notification.
    """

    overflow: Overflow
    patience: float
    has_synced: bool
    """Whether the listener came back for more after the last initial object."""
    broken_because: str | None
    """Why the buffer broke; None if it did not."""
    _synced_or_closed: trio.Event
    _snapshot: Callable[[], Sequence[T]]
    _send: trio.MemorySendChannel[Notification[T] | SharedBatch[T]]
    _receive: trio.MemoryReceiveChannel[Notification[T] | SharedBatch[T]]
    _pending: OrderedDict[str, _Pending[T]]
    _backlog: deque[Notification[T] | SharedBatch[T]]
    _current: Iterator[Notification[T]]
    _current_kind: BatchKind | None
    _batches_waiting: int
    _is_resync_deferred: bool
    _holds_resync: bool
    _backlog_shrunk: trio.Event | None
    _slices: Slices | None
    _closed: bool
    _coalesced: int
    _delivered: int
    _high_water: int

    def __init__(
        self,
        snapshot: Callable[[], Sequence[T]],
        *,
        buffer_size: int = 1_024,
        overflow: Overflow = "coalesce",
        patience: float = 60.0,
    ) -> None:
        if buffer_size < 1:
            raise ValueError(f"buffer_size must be at least 1, not {buffer_size}")
        if overflow not in ("coalesce", "block", "raise"):
            raise ValueError(f"overflow must be 'coalesce', 'block' or 'raise', not {overflow!r}")
        self.overflow = overflow
        self.patience = patience
        self.has_synced = False
        self._synced_or_closed = trio.Event()
        self._snapshot = snapshot
        self._send, self._receive = trio.open_memory_channel(buffer_size)
        self._pending = OrderedDict()
        self._backlog = deque()
        self._current = iter(())
        self._current_kind = None
        self._batches_waiting = 0
        self._is_resync_deferred = False
        self._holds_resync = False
        self._backlog_shrunk = None
        self._slices = None
        self.broken_because = None
        self._closed = False
        self._coalesced = self._delivered = self._high_water = 0

    # --- the writer's side: synchronous methods, called between two checkpoints of the process loop ---

    def put(self, notification: Notification[T]) -> None:
        """Queue one notification; never waits."""
        if self._closed or self.broken_because is not None:
            return
        if self._pending:
            self._merge(notification)
        elif self._backlog:
            self._backlog.append(notification)
        else:
            try:
                self._send.send_nowait(notification)
            except trio.WouldBlock:
                self._overflow(notification)
        # high_water is not updated here: this runs for every event and every listener

    def put_batch(self, batch: SharedBatch[T]) -> bool:
        """Queue a shared batch; never waits and never copies it.

        Returns:
            Whether the batch was accepted.  If not, the listener is behind, and the caller puts the notifications one
            by one, which merges them with the pending ones.
        """
        if self._closed or self.broken_because is not None:
            return True
        if batch.kind is BatchKind.RESYNC and (self._is_behind or self._current_kind is not None or self._holds_resync):
            self._is_resync_deferred = True
            return True
        if self._backlog:
            self._backlog.append(batch)
            return True
        if self.overflow == "coalesce" and self._is_behind:
            return False
        try:
            self._send.send_nowait(batch)
        except trio.WouldBlock:
            if self.overflow == "coalesce":
                return False
            self._overflow(batch)
        else:
            self._batches_waiting += 1
        return True

    def hold_resync(self) -> None:
        """Defer every resync: the cache is newer than the changes that are being put one by one."""
        self._holds_resync = True

    def release_resync(self) -> None:
        """Allow resyncs again; a deferred one is queued now if no other notification would wake the listener."""
        self._holds_resync = False
        if self._is_resync_deferred and not self._is_behind and self._current_kind is None:
            self._is_resync_deferred = False
            self.put_batch(SharedBatch(BatchKind.RESYNC, self._snapshot()))

    @property
    def _is_behind(self) -> bool:
        return bool(self._pending or self._batches_waiting or self._backlog)

    def _overflow(self, item: Notification[T] | SharedBatch[T]) -> None:
        if self.overflow == "block":
            self._backlog.append(item)
        elif self.overflow == "raise":
            self.mark_broken(f"its buffer of {self._send.statistics().max_buffer_size} notifications is full")
        elif not isinstance(item, SharedBatch):
            self._merge(item)

    def _merge(self, notification: Notification[T]) -> None:
        key = key_of(object_of(notification))
        entry = self._pending.get(key)
        if entry is None:
            self._pending[key] = _pending_from(notification)
            self._high_water = max(
                self._high_water, len(self._pending) + self._receive.statistics().current_buffer_used
            )
            return
        self._coalesced += 1
        if not isinstance(notification, Deleted):
            entry.after = notification.new if isinstance(notification, Updated) else notification.object
        elif entry.before is None:
            del self._pending[key]  # the listener does not know the object
        else:
            entry.tombstone, entry.after = entry.tombstone or notification, None

    def mark_broken(self, reason: str) -> None:
        """Break the buffer: unread notifications are dropped, and the listener gets ``trio.BrokenResourceError``."""
        self.broken_because = reason
        self._release()

    def close(self) -> None:
        """Close the buffer: unread notifications are dropped, and the listener gets ``trio.EndOfChannel``."""
        self._closed = True
        self._release()

    def _release(self) -> None:
        self._pending.clear()
        self._backlog.clear()
        self._current, self._current_kind = iter(()), None
        # A program that keeps the registration of a removed handler must keep neither objects nor the cache alive.
        self._batches_waiting, self._is_resync_deferred, self._snapshot = 0, False, tuple
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                self._receive.receive_nowait()
        self._synced_or_closed.set()
        self._send.close()  # wakes a listener that waits
        self._wake_writer()

    async def wait_for_backlog(self) -> None:
        """Wait until the backlog is empty; break the buffer if the listener takes nothing for ``patience`` seconds.

        Only buffers with ``overflow="block"`` have a backlog.
        """
        while self._backlog:
            waiting, delivered = len(self._backlog), self._delivered
            with trio.move_on_after(self.patience):
                while len(self._backlog) == waiting:
                    self._backlog_shrunk = trio.Event()
                    await self._backlog_shrunk.wait()
            # In the middle of a long batch a listener takes notifications without emptying a place of the buffer.
            if len(self._backlog) == waiting and self._delivered == delivered:
                self.mark_broken(f"it took no notification for {self.patience:g} s")

    def _wake_writer(self) -> None:
        if self._backlog_shrunk is not None:
            self._backlog_shrunk.set()
            self._backlog_shrunk = None

    # --- the listener's side ---

    async def take(self) -> Notification[T]:
        """Take the next notification; wait for one if the buffer is empty.

        A checkpoint once a millisecond, and whenever nothing is ready: with a checkpoint for each notification a burst
        of changes would outrun every listener.

        Raises:
            trio.EndOfChannel: The buffer was closed.
            trio.BrokenResourceError: The listener fell too far behind for its ``overflow``.

        Cancellation: nothing is lost.
        """
        if self._slices is None:
            self._slices = Slices()
        if self._slices.is_over():
            await self._slices.checkpoint()
        while True:
            for notification in self._current:
                self._delivered += 1
                return notification
            self._finish_batch()
            try:
                item = self._receive.receive_nowait()
            except trio.WouldBlock:
                if self._pending:
                    _, entry = self._pending.popitem(last=False)
                    self._current = entry.notifications()
                    continue
                if self._is_resync_deferred and not self._holds_resync:
                    self._is_resync_deferred = False
                    self._current = SharedBatch(BatchKind.RESYNC, self._snapshot()).notifications()
                    continue
                item = await self._receive.receive()
            except trio.EndOfChannel:
                self._raise_if_ended()
                raise
            self._raise_if_ended()
            self._refill_from_backlog()
            if isinstance(item, SharedBatch):
                self._batches_waiting -= 1
                self._current, self._current_kind = item.notifications(), item.kind
                continue
            self._delivered += 1
            return item

    async def wait_until_synced(self) -> None:
        """Wait until the listener has processed every initial object.

        Raises:
            trio.ClosedResourceError: The buffer was closed before.
        """
        await self._synced_or_closed.wait()
        if not self.has_synced:
            raise trio.ClosedResourceError("the handler was removed, or its informer stopped, before it had synced")

    def _finish_batch(self) -> None:
        if self._current_kind is BatchKind.INITIAL:
            self.has_synced = True
            self._synced_or_closed.set()
        self._current_kind = None

    def _refill_from_backlog(self) -> None:
        # A listener that was waiting got its item directly, so the buffer may still be full.
        while self._backlog:
            try:
                self._send.send_nowait(self._backlog[0])
            except trio.WouldBlock:
                return
            item = self._backlog.popleft()
            self._batches_waiting += isinstance(item, SharedBatch)
            self._wake_writer()

    def _raise_if_ended(self) -> None:
        if self.broken_because is not None:
            raise trio.BrokenResourceError(f"this listener fell behind: {self.broken_because}")
        if self._closed:
            raise trio.EndOfChannel

    def statistics(self) -> BufferStatistics:
        """How far the listener is behind."""
        buffered = self._receive.statistics().current_buffer_used + len(self._backlog)
        waiting = buffered + len(self._pending)
        return BufferStatistics(
            buffered=buffered,
            pending_objects=len(self._pending),
            coalesced=self._coalesced,
            delivered=self._delivered,
            high_water=max(self._high_water, waiting),
        )


def _pending_from(notification: Notification[T]) -> _Pending[T]:
    if isinstance(notification, Added):
        return _Pending(None, None, notification.object)
    if isinstance(notification, Updated):
        return _Pending(notification.old, None, notification.new)
    return _Pending(notification.object, notification, None)
