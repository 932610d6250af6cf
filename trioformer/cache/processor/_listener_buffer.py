"""One reader's queue of notifications: bounded, and never in the way of the store.

The problem: the process loop tells many readers, each as fast or slow as it likes.
client-go gives every listener a buffer that grows without limit.  A bounded buffer with a waiting writer would let one
slow handler stop the cache for all.  So the writer never waits here; what to do when the buffer is full is the reader's
choice:

- ``coalesce``: pending notifications of one object merge into what the reader has seen last against what is now.
  The bound is one entry for each object.  Once something is pending there, everything later goes there too until
  the reader has caught up, or an object's states would be told out of order.
- ``block``: what does not fit waits in a backlog of at most one batch, and the process loop pops no further batch
  before that is gone (:meth:`ListenerBuffer.wait_for_room`), at most ``patience`` seconds.
- ``raise``: the buffer breaks; its reader gets ``trio.BrokenResourceError``.

The initial list, a relist's differences and a resync are one shared, immutable batch and take one place in the
buffer, however many objects they hold.  A second batch is not queued behind an unread one: a relist's differences are
merged one by one, and a resync is put off until the reader has caught up, when it is read from the store anew.
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
"""What happens when a reader's buffer is full."""


class BatchKind(enum.Enum):
    """Why a batch exists."""

    INITIAL = "initial"
    RELIST = "relist"
    RESYNC = "resync"


@final
@attrs.frozen
class SharedBatch(Generic[T]):
    """Notifications that all readers share: the objects of an initial list or a resync, or a relist's differences."""

    kind: BatchKind
    objects: Sequence[T] = ()
    changes: Sequence[Notification[T]] = ()

    def __len__(self) -> int:
        return len(self.objects) + len(self.changes)

    def notifications(self) -> Iterator[Notification[T]]:
        """Make the notifications one by one, as they are read."""
        if self.kind is BatchKind.INITIAL:
            return (Added(obj, is_initial=True) for obj in self.objects)
        if self.kind is BatchKind.RESYNC:
            return (Updated(obj, obj) for obj in self.objects)
        return iter(self.changes)


@final
@attrs.frozen
class BufferStatistics:
    """How far a reader is behind."""

    buffered: int
    """Notifications and batches that wait in the buffer."""
    pending_objects: int
    """Objects whose notifications have been merged and wait."""
    coalesced: int
    """How many notifications have been merged into another so far."""
    delivered: int
    """How many notifications the reader has taken."""
    high_water: int
    """The most that ever waited at once, buffer and pending objects together."""


@attrs.define(eq=False)
class _Pending(Generic[T]):
    """What has been merged for one object: what the reader saw last, its deletion, what is now."""

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
class ListenerBuffer(Generic[T]):
    """A bounded queue with one reader, written by the process loop without ever waiting.

    Args:
        snapshot: Reads the store; used for a resync that was put off.
        buffer_size: How many notifications fit before ``overflow`` decides.
        overflow: What then happens.
        patience: With ``block``, how many seconds one place may take to become free.
    """

    overflow: Overflow
    patience: float
    has_synced: bool
    """Whether the reader came back from every initial object."""
    _decided: trio.Event
    _snapshot: Callable[[], Sequence[T]]
    _send: trio.MemorySendChannel[Notification[T] | SharedBatch[T]]
    _receive: trio.MemoryReceiveChannel[Notification[T] | SharedBatch[T]]
    _pending: OrderedDict[str, _Pending[T]]
    _backlog: deque[Notification[T] | SharedBatch[T]]
    _current: Iterator[Notification[T]]
    _current_kind: BatchKind | None
    _batches_waiting: int
    _resync_put_off: bool
    _is_being_told: bool
    _moved: trio.Event | None
    _slices: Slices | None
    _broken: str | None
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
        self._decided = trio.Event()
        self._snapshot = snapshot
        self._send, self._receive = trio.open_memory_channel(buffer_size)
        self._pending = OrderedDict()
        self._backlog = deque()
        self._current = iter(())
        self._current_kind = None
        self._batches_waiting = 0
        self._resync_put_off = False
        self._is_being_told = False
        self._moved = None
        self._slices = None
        self._broken = None
        self._closed = False
        self._coalesced = self._delivered = self._high_water = 0

    # --- the writer's side: plain functions, called between two checkpoints of the process loop ---

    def put(self, notification: Notification[T]) -> None:
        """Queue one notification; never waits, whatever the reader does."""
        if self._closed or self._broken is not None:
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
        # no statistics call here: this runs for every event and every reader

    def put_batch(self, batch: SharedBatch[T]) -> bool:
        """Queue a shared batch; never waits and never copies it.

        Returns:
            Whether it was taken.  If not, the reader is behind, and its notifications are to be put one by one, which
            merges them with what waits.
        """
        if self._closed or self._broken is not None:
            return True
        if batch.kind is BatchKind.RESYNC and (
            self._is_behind or self._current_kind is not None or self._is_being_told
        ):
            self._resync_put_off = True
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
        """Put off every resync: the store is newer than what this reader is being told, change by change."""
        self._is_being_told = True

    def release_resync(self) -> None:
        """Let resyncs happen again; one that was put off and that nobody would be woken for is queued now."""
        self._is_being_told = False
        if self._resync_put_off and not self._is_behind and self._current_kind is None:
            self._resync_put_off = False
            self.put_batch(SharedBatch(BatchKind.RESYNC, self._snapshot()))

    @property
    def _is_behind(self) -> bool:
        return bool(self._pending or self._batches_waiting or self._backlog)

    def _overflow(self, item: Notification[T] | SharedBatch[T]) -> None:
        if self.overflow == "block":
            self._backlog.append(item)
        elif self.overflow == "raise":
            self.break_off(f"its buffer of {self._send.statistics().max_buffer_size} notifications is full")
        elif not isinstance(item, SharedBatch):
            self._merge(item)

    def _merge(self, notification: Notification[T]) -> None:
        key = key_of(object_of(notification))
        entry = self._pending.get(key)
        if entry is None:
            self._pending[key] = _first(notification)
            self._high_water = max(
                self._high_water, len(self._pending) + self._receive.statistics().current_buffer_used
            )
            return
        self._coalesced += 1
        if not isinstance(notification, Deleted):
            entry.after = notification.new if isinstance(notification, Updated) else notification.object
        elif entry.before is None:
            del self._pending[key]  # the reader never saw the object
        else:
            entry.tombstone, entry.after = entry.tombstone or notification, None

    def break_off(self, why: str) -> None:
        """Break the buffer: what is unread is dropped, and the reader gets ``trio.BrokenResourceError``."""
        self._broken = why
        self._release()

    def close(self) -> None:
        """End the buffer: what is unread is dropped, and the reader's loop ends."""
        self._closed = True
        self._release()

    def _release(self) -> None:
        self._pending.clear()
        self._backlog.clear()
        self._current, self._current_kind = iter(()), None
        # Whoever keeps the registration of a handler that is gone keeps neither objects nor the store.
        self._batches_waiting, self._resync_put_off, self._snapshot = 0, False, tuple
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                self._receive.receive_nowait()
        self._decided.set()
        self._send.close()  # wakes a reader that waits
        self._wake_writer()

    async def wait_for_room(self) -> None:
        """Wait until the backlog is gone, and break the buffer if one place takes longer than ``patience``.

        Only mailboxes with ``overflow="block"`` ever have a backlog.
        """
        while self._backlog:
            waiting, delivered = len(self._backlog), self._delivered
            with trio.move_on_after(self.patience):
                while len(self._backlog) == waiting:
                    self._moved = trio.Event()
                    await self._moved.wait()
            # A reader in the middle of a long batch frees no place, and yet it works.
            if len(self._backlog) == waiting and self._delivered == delivered:
                self.break_off(f"it took no notification for {self.patience:g} s")

    def _wake_writer(self) -> None:
        if self._moved is not None:
            self._moved.set()
            self._moved = None

    # --- the reader's side ---

    async def take(self) -> Notification[T]:
        """Take the next notification, waiting for one if there is none.

        A checkpoint once a millisecond, and whenever nothing is ready: with one for each notification a storm would
        outrun every reader.

        Raises:
            trio.EndOfChannel: The buffer was closed.
            trio.BrokenResourceError: The reader fell too far behind for its ``overflow``.

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
                if self._resync_put_off and not self._is_being_told:
                    self._resync_put_off = False
                    self._current = SharedBatch(BatchKind.RESYNC, self._snapshot()).notifications()
                    continue
                item = await self._receive.receive()
            except trio.EndOfChannel:
                self._refuse_if_over()
                raise
            self._refuse_if_over()
            self._advance_backlog()
            if isinstance(item, SharedBatch):
                self._batches_waiting -= 1
                self._current, self._current_kind = item.notifications(), item.kind
                continue
            self._delivered += 1
            return item

    async def wait_until_synced(self) -> None:
        """Wait until the reader came back from every initial object.

        Raises:
            trio.ClosedResourceError: The buffer was closed before.
        """
        await self._decided.wait()
        if not self.has_synced:
            raise trio.ClosedResourceError("the reader was removed, or its informer stopped, before it had synced")

    def _finish_batch(self) -> None:
        if self._current_kind is BatchKind.INITIAL:
            self.has_synced = True
            self._decided.set()
        self._current_kind = None

    def _advance_backlog(self) -> None:
        # A reader that waited was handed its item directly, so the buffer may still be full.
        while self._backlog:
            try:
                self._send.send_nowait(self._backlog[0])
            except trio.WouldBlock:
                return
            item = self._backlog.popleft()
            self._batches_waiting += isinstance(item, SharedBatch)
            self._wake_writer()

    def _refuse_if_over(self) -> None:
        if self._broken is not None:
            raise trio.BrokenResourceError(f"this reader fell behind: {self._broken}")
        if self._closed:
            raise trio.EndOfChannel

    @property
    def is_broken(self) -> bool:
        """Whether the reader was cut off."""
        return self._broken is not None

    @property
    def why_broken(self) -> str:
        """Why the reader was cut off; empty when it was not."""
        return self._broken or ""

    def statistics(self) -> BufferStatistics:
        """How far the reader is behind."""
        buffered = self._receive.statistics().current_buffer_used + len(self._backlog)
        waiting = buffered + len(self._pending)
        return BufferStatistics(
            buffered=buffered,
            pending_objects=len(self._pending),
            coalesced=self._coalesced,
            delivered=self._delivered,
            high_water=max(self._high_water, waiting),
        )


def _first(notification: Notification[T]) -> _Pending[T]:
    if isinstance(notification, Added):
        return _Pending(None, None, notification.object)
    if isinstance(notification, Updated):
        return _Pending(notification.old, None, notification.new)
    return _Pending(notification.object, notification, None)
