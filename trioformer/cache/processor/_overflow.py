"""The queue of one listener, one class for each overflow policy.

The process loop writes without waiting.  The policy says what happens when the queue is full:

- ``coalesce``: :class:`CoalescingQueue` merges the notifications of one object into one change.
- ``block``: :class:`BlockingQueue` keeps everything, and the process loop waits before it pops another batch.

An initial list, the changes of a relist, and a resync are each one shared, immutable batch.  A batch takes one place,
no matter how many objects it holds.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar, final

import attrs
import trio

from ...models import KubernetesObject, key_of
from ._notifications import Added, BatchKind, Deleted, DueResync, Item, Notification, SharedBatch, Updated, object_of

T = TypeVar("T", bound=KubernetesObject)

Overflow: TypeAlias = Literal["coalesce", "block"]
"""What happens when a listener's buffer is full."""


@attrs.define(eq=False)
class MergedChange(Generic[T]):
    """The change of one object since the listener received it last, from ``before`` to ``after``.

    With a tombstone, the object that the listener knows was deleted, and ``after`` is a later object of the same name.
    """

    before: T | None
    """The state that the listener received last; None if it does not know the object."""
    tombstone: Deleted[T] | None
    """The deletion of ``before``; None if it was not deleted."""
    after: T | None
    """The current state; None if the object does not exist."""

    @classmethod
    def of(cls, notification: Notification[T]) -> MergedChange[T]:
        """Return the change that a notification describes."""
        if isinstance(notification, Added):
            return cls(None, None, notification.object)
        if isinstance(notification, Updated):
            return cls(notification.old, None, notification.new)
        return cls(notification.object, notification, None)

    def merge(self, notification: Notification[T]) -> bool:
        """Merge a later notification; return False if nothing is left to report."""
        if isinstance(notification, Updated):
            self.after = notification.new
        elif isinstance(notification, Added):
            self.after = notification.object
        elif self.before is None:
            return False  # the listener does not know the object
        else:
            self.tombstone, self.after = self.tombstone or notification, None
        return True


@final
@attrs.define(eq=False)
class CoalescingQueue(Generic[T]):
    """When it is full, merges the notifications of each object into one change.

    The change leads from the state that the listener received last to the current state.  So the queue is bounded by
    one change for each object.

    Invariant: every item is older than every merged change.  So while a change is pending, all later notifications are
    merged too; otherwise the listener would receive states out of order.
    The merged changes are in the order in which their objects first changed.  A resync that does not fit has a place
    among them (the key None), so it follows the changes before it, no matter how many come later.
    """

    size: int
    high_water: int = 0
    coalesced: int = 0
    _items: deque[Notification[T] | SharedBatch[T]] = attrs.field(factory=deque, init=False)
    _merged: OrderedDict[str | None, MergedChange[T] | None] = attrs.field(factory=OrderedDict, init=False)
    _batches: int = attrs.field(default=0, init=False)
    """The number of batches among the items."""

    def put_all(self, notifications: Sequence[Notification[T]]) -> None:
        """Queue notifications, or merge those that do not fit."""
        # This method runs for every event and every listener.
        items = self._items
        if self._merged or len(items) + len(notifications) > self.size:
            self._put_what_fits(notifications)
            return
        items.extend(notifications)
        if len(items) > self.high_water:
            self.high_water = len(items)

    def _put_what_fits(self, notifications: Sequence[Notification[T]]) -> None:
        for notification in notifications:
            if not self._merged and len(self._items) < self.size:
                self._items.append(notification)
            else:
                self._merge(notification)
        self.high_water = max(self.high_water, len(self._items) + self.pending_objects)

    def _merge(self, notification: Notification[T]) -> None:
        key = key_of(object_of(notification))
        change = self._merged.get(key)
        if change is None:
            self._merged[key] = MergedChange.of(notification)
            return
        self.coalesced += 1
        if not change.merge(notification):
            del self._merged[key]

    def put_batch(self, batch: SharedBatch[T]) -> bool:
        """Queue a shared batch, without a copy, if there is room and no other batch is unread.

        Returns:
            Whether the batch was queued.  If not, the caller puts the changes of a relist one by one, so that they are
            merged with the pending ones; a resync has been given a place among these.
        """
        is_full = bool(self._merged) or len(self._items) >= self.size
        if batch.kind is BatchKind.RESYNC and is_full:
            self._merged.setdefault(None, None)
            return False
        if is_full or (self._batches and batch.kind is not BatchKind.RESYNC):
            return False
        self._items.append(batch)
        self._batches += 1
        self.high_water = max(self.high_water, len(self._items))
        return True

    def get(self) -> Item[T] | None:
        """Remove and return the oldest item; the merged changes follow the others."""
        if self._items:
            item = self._items.popleft()
            if isinstance(item, SharedBatch):
                self._batches -= 1
            return item
        while self._merged:
            key, change = self._merged.popitem(last=False)
            if change is None:
                return DueResync(frozenset(self._merged))
            if change.tombstone is not None:
                if change.after is not None:
                    self._merged[key] = MergedChange(None, None, change.after)
                    self._merged.move_to_end(key, last=False)
                return change.tombstone
            if change.after is not None:
                return Added(change.after) if change.before is None else Updated(change.before, change.after)
        return None

    def clear(self) -> None:
        """Drop everything."""
        self._items.clear()
        self._merged.clear()
        self._batches = 0

    async def wait_for_room(self, delivered: Callable[[], int]) -> bool:
        """Return immediately: a slow listener does not delay others."""
        return True

    @property
    def buffered(self) -> int:
        """The number of notifications and batches, without merged changes."""
        return len(self._items)

    @property
    def pending_objects(self) -> int:
        """The number of objects with a pending merged change."""
        return len(self._merged) - (None in self._merged)


@final
@attrs.define(eq=False)
class BlockingQueue(Generic[T]):
    """Keeps every notification in order, and makes the process loop wait.

    Invariant: all items beyond ``size`` are from one batch of changes.  The process loop does not pop another batch
    until they fit, or until the listener has taken nothing for ``patience`` seconds.
    """

    size: int
    patience: float = attrs.field(kw_only=True)
    """Seconds that the listener may take no notification."""
    high_water: int = 0
    _taken: trio.Event | None = attrs.field(default=None, init=False)
    """Set when an item is taken while the process loop waits."""
    _items: deque[Notification[T] | SharedBatch[T]] = attrs.field(factory=deque, init=False)

    def put_all(self, notifications: Sequence[Notification[T]]) -> None:
        """Queue notifications."""
        self._items.extend(notifications)
        if len(self._items) > self.high_water:
            self.high_water = len(self._items)

    def put_batch(self, batch: SharedBatch[T]) -> bool:
        """Queue a batch."""
        self._items.append(batch)
        self.high_water = max(self.high_water, len(self._items))
        return True

    @property
    def buffered(self) -> int:
        """The number of notifications and batches."""
        return len(self._items)

    @property
    def pending_objects(self) -> int:
        """Nothing is merged."""
        return 0

    @property
    def coalesced(self) -> int:
        """Nothing is merged."""
        return 0

    def get(self) -> Item[T] | None:
        """Remove and return the oldest item."""
        if self._taken is not None and self._items:
            self._end_wait(self._taken)
        return self._items.popleft() if self._items else None

    def clear(self) -> None:
        """Drop everything, and end a wait of the process loop."""
        self._items.clear()
        if self._taken is not None:
            self._end_wait(self._taken)

    def _end_wait(self, taken: trio.Event) -> None:
        taken.set()
        self._taken = None

    async def wait_for_room(self, delivered: Callable[[], int]) -> bool:
        """Wait until the items fit; not a checkpoint if they do.

        Args:
            delivered: Returns how many notifications the listener has taken.

        Returns:
            False if the listener took nothing for ``patience`` seconds.
        """
        while len(self._items) > self.size:
            before, taken = delivered(), trio.Event()
            self._taken = taken
            with trio.move_on_after(self.patience):
                await taken.wait()
            # In the middle of a long batch, a listener takes notifications without freeing a place in the queue.
            if not taken.is_set() and delivered() == before:
                return False
        return True


OverflowQueue: TypeAlias = CoalescingQueue[T] | BlockingQueue[T]
"""The items for one listener; the items of one object are returned in the order in which they were put."""
