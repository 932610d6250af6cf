"""The queues of listeners, with one class for each overflow policy.

The process loop adds notifications without waiting.  The overflow policy defines what happens when the queue is full:

- ``coalesce``: :class:`CoalescingQueue` merges the notifications of one object into one change.
- ``block``: :class:`BlockingQueue` keeps all notifications, and the process loop waits before it takes another batch.

An initial list, the changes of a relist, or a resync is a single immutable batch that listeners share.  A batch counts
as one item of the queue, however many objects it contains.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar, final

import attrs
import trio

from ...models import KubernetesObject, key_of
from ._notifications import (
    Added,
    BatchKind,
    Deleted,
    DueResync,
    Item,
    Notification,
    Released,
    SharedBatch,
    Updated,
    object_of,
)

T = TypeVar("T", bound=KubernetesObject)

Overflow: TypeAlias = Literal["coalesce", "block"]
"""The policy for a full buffer of a listener."""


@attrs.define(eq=False)
class MergedChange(Generic[T]):
    """The change to one object since its last notification, from ``before`` to ``after``.

    If the change has a tombstone, ``before`` was deleted and ``after`` is a new object with the same name.
    """

    before: T | None
    """The state that the listener received last, or None if the listener does not know the object."""
    tombstone: Deleted[T] | Released[T] | None
    """The deletion or release of ``before``, or None if ``before`` was neither deleted nor released."""
    after: T | None
    """The current state, or None if the object does not exist."""

    @classmethod
    def of(cls, notification: Notification[T]) -> MergedChange[T]:
        """Return a notification as a merged change."""
        if isinstance(notification, Added):
            return cls(None, None, notification.object)
        if isinstance(notification, Updated):
            return cls(notification.old, None, notification.new)
        return cls(notification.object, notification, None)

    def merge(self, notification: Notification[T]) -> bool:
        """Merge a later notification; return False if there is no longer any change to report."""
        if isinstance(notification, Updated):
            self.after = notification.new
        elif isinstance(notification, Added):
            self.after = notification.object
        elif self.before is None:
            return False  # the listener does not know the object
        else:
            if not isinstance(self.tombstone, Deleted):  # a later deletion tells more than a release
                self.tombstone = notification
            self.after = None
        return True


@final
@attrs.define(eq=False)
class CoalescingQueue(Generic[T]):
    """A queue that merges the notifications of each object into one change when it is full.

    A merged change leads from the state that the listener received last to the current state.  So the queue contains
    at most one merged change for each object.

    Invariant: all items are older than all merged changes.  So while a merged change is pending, all later
    notifications are merged too.  Otherwise the listener would receive states out of order.
    The merged changes are in the order in which their objects first changed.  If a resync does not fit, it is stored
    among the merged changes under the key None.  So a resync is delivered after all earlier changes, even if further
    changes arrive.
    """

    size: int
    high_water: int = 0
    coalesced: int = 0
    _items: deque[Notification[T] | SharedBatch[T]] = attrs.field(factory=deque, init=False)
    _merged: OrderedDict[str | None, MergedChange[T] | None] = attrs.field(factory=OrderedDict, init=False)
    _batches: int = attrs.field(default=0, init=False)
    """The number of batches among the items."""

    def put_all(self, notifications: Sequence[Notification[T]]) -> None:
        """Queue notifications; merge the notifications that do not fit."""
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
        """Queue a shared batch, unless the queue is full or contains another batch.

        Returns:
            Whether the batch was queued.  If the batch was not queued, the caller must queue the changes of a relist
            one by one, so that they are merged.  A resync that was not queued is remembered, and delivered later.
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
        """Remove and return the oldest item, or the first merged change if there are no items."""
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
        """Drop all items and merged changes."""
        self._items.clear()
        self._merged.clear()
        self._batches = 0

    async def wait_for_room(self, delivered: Callable[[], int]) -> bool:
        """Return immediately, because this policy never makes the process loop wait."""
        return True

    @property
    def buffered(self) -> int:
        """The number of pending notifications and batches, not counting merged changes."""
        return len(self._items)

    @property
    def pending_objects(self) -> int:
        """The number of objects with a merged change."""
        return len(self._merged) - (None in self._merged)


@final
@attrs.define(eq=False)
class BlockingQueue(Generic[T]):
    """A queue that keeps all notifications in order, and makes the process loop wait when it is full.

    Invariant: if there are more than ``size`` items, the surplus is from a single batch of changes.  The process loop
    does not take another batch until the surplus fits, or until the listener has taken no notification for
    ``patience`` seconds.
    """

    size: int
    patience: float = attrs.field(kw_only=True)
    """The longest time without a delivered notification, in seconds."""
    high_water: int = 0
    _taken: trio.Event | None = attrs.field(default=None, init=False)
    """An event that is set when an item is taken while the process loop waits."""
    _items: deque[Notification[T] | SharedBatch[T]] = attrs.field(factory=deque, init=False)

    def put_all(self, notifications: Sequence[Notification[T]]) -> None:
        """Queue notifications, even if the queue is full."""
        self._items.extend(notifications)
        if len(self._items) > self.high_water:
            self.high_water = len(self._items)

    def put_batch(self, batch: SharedBatch[T]) -> bool:
        """Queue a shared batch, even if the queue is full."""
        self._items.append(batch)
        self.high_water = max(self.high_water, len(self._items))
        return True

    @property
    def buffered(self) -> int:
        """The number of pending notifications and batches."""
        return len(self._items)

    @property
    def pending_objects(self) -> int:
        """Always 0, because this queue merges no notifications."""
        return 0

    @property
    def coalesced(self) -> int:
        """Always 0, because this queue merges no notifications."""
        return 0

    def get(self) -> Item[T] | None:
        """Remove and return the oldest item."""
        if self._taken is not None and self._items:
            self._end_wait(self._taken)
        return self._items.popleft() if self._items else None

    def clear(self) -> None:
        """Drop all items, and wake the process loop if it waits."""
        self._items.clear()
        if self._taken is not None:
            self._end_wait(self._taken)

    def _end_wait(self, taken: trio.Event) -> None:
        taken.set()
        self._taken = None

    async def wait_for_room(self, delivered: Callable[[], int]) -> bool:
        """Wait until the queue has at most ``size`` items; return without a checkpoint if this is already the case.

        Args:
            delivered: A function that returns the number of notifications that the listener has taken so far.

        Returns:
            False if the listener took no notification for ``patience`` seconds, otherwise True.
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
"""The queue of a listener; the items of an object are returned in the order in which they were added."""
