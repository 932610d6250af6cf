"""The queue between the reflector and the process loop.

The reflector writes the changes that the server reports; the process loop pops them in batches and applies them to the
indexer, in the order in which they were written.
There are three kinds of batch:

- a list of changes, each with the object's state or its deletion.  A state that cannot be taken is a change as well,
  and so is a bookmark.
- :class:`Replaced`: a whole list.  Objects that the list lacks are found when it is applied, by comparison with the
  indexer, after every change that was written before it.  It is applied in one step.
- :class:`Sync`: repeat every object to the listeners whose resync is due.  It carries no objects: they are read from
  the indexer when it is applied, so a resync never overtakes a newer change.

Several reflectors may write to one queue, each the objects of one namespace.

Source: client-go's ``RealFIFO`` (``tools/cache/the_real_fifo.go``): nothing is merged, and a relist and a resync are
one item each (``AtomicFIFO``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, final

import attrs
import trio

from ...models import KubernetesObject, key_of
from .._bad_objects import BadObject

T = TypeVar("T", bound=KubernetesObject)

_NOTHING: Final[Mapping[str, BadObject]] = {}


@final
@attrs.frozen
class Deletion(Generic[T]):
    """The deletion of an object."""

    key: str
    """The key of the object."""
    resource_version: str
    """The version of the deletion; empty if it is not known."""
    object: T | None = None
    """The last state; None if it cannot be taken."""


@final
@attrs.frozen
class Bookmark:
    """The watch has delivered all changes up to a version."""

    resource_version: str
    """The version."""
    namespace: str = ""
    """The namespace that the version is about, if the cache is made of several; otherwise empty."""


Change: TypeAlias = T | Deletion[T] | BadObject | Bookmark
"""A state of an object, or something else that the server reports."""


@final
@attrs.frozen
class Replaced(Generic[T]):
    """The result of a list."""

    objects: Sequence[T]
    """Every object that exists, in the list's order."""
    resource_version: str
    """The list's resourceVersion."""
    namespace: str = ""
    """The listed namespace, if the cache is made of several; otherwise empty."""
    bad: Mapping[str, BadObject] = attrs.field(factory=dict)
    """Objects whose newest state cannot be taken, by key."""


@final
@attrs.frozen
class Sync:
    """Repeat every object of the cache."""


Batch: TypeAlias = list[Change[T]] | Replaced[T] | Sync


@final
@attrs.define(eq=False)
class DeltaFIFO(Generic[T]):
    """The pending changes of one kind, with one consumer.

    The methods that write never wait.  A writer calls :meth:`wait_for_room` before a list and between its batches of
    events, so the bound of the queue reaches the watch's socket, and at most one list of each writer is pending.

    A change is compared with the indexer when it is applied, not when it is queued: a list that is being applied may
    bring the object.

    Args:
        max_pending: How many changes may be pending before :meth:`wait_for_room` waits.
    """

    max_pending: int = 10_000
    _batches: deque[Batch[T]] = attrs.field(factory=deque, init=False)
    _pending: int = attrs.field(default=0, init=False)
    _pending_lists: int = attrs.field(default=0, init=False)
    _ready: trio.Event = attrs.field(factory=trio.Event, init=False)
    _room_freed: trio.Event | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        """The number of pending changes; a relist and a resync count as one each."""
        return self._pending

    def add(self, obj: T) -> None:
        """Queue a state of an object; atomic."""
        self._append_change(obj)

    update = add

    def delete(self, obj: T) -> None:
        """Queue a deletion; atomic."""
        self._append_change(Deletion(key_of(obj), obj.resource_version, obj))

    def delete_key(self, key: str, resource_version: str) -> None:
        """Queue a deletion without the object; atomic."""
        self._append_change(Deletion(key, resource_version))

    def quarantine(self, bad: BadObject) -> None:
        """Queue that the newest state of an object cannot be taken; atomic."""
        self._append_change(bad)

    def bookmark(self, resource_version: str, *, namespace: str = "") -> None:
        """Queue that all changes up to ``resource_version`` have been delivered; atomic."""
        self._append_change(Bookmark(resource_version, namespace))

    def _append_change(self, change: Change[T]) -> None:
        newest = self._batches[-1] if self._batches else None
        if isinstance(newest, list) and not self._closed:
            newest.append(change)
            self._pending += 1
        else:
            self._append_batch([change])

    def replace(
        self,
        objects: Sequence[T],
        resource_version: str,
        *,
        bad: Mapping[str, BadObject] = _NOTHING,
        namespace: str = "",
    ) -> None:
        """Queue the result of a list; atomic."""
        self._append_batch(Replaced(objects, resource_version, namespace, bad))
        self._pending_lists += 1

    def resync(self) -> None:
        """Queue a resync, unless the newest pending item is a resync; atomic."""
        if not (self._batches and isinstance(self._batches[-1], Sync)):
            self._append_batch(Sync())

    def _append_batch(self, batch: Batch[T]) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this delta FIFO is closed")
        self._batches.append(batch)
        self._pending += 1
        self._ready.set()

    async def pop(self) -> Batch[T]:
        """Take the oldest batch; wait for one if the queue is empty.

        Raises:
            trio.ClosedResourceError: The queue is closed and empty.

        Cancellation: nothing is lost; pending batches stay.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._batches:
            if self._closed:
                raise trio.ClosedResourceError("this delta FIFO is closed")
            self._ready = trio.Event()
            await self._ready.wait()
        # no checkpoint from here on: a batch that has been taken is returned
        batch = self._batches.popleft()
        self._pending -= len(batch) if isinstance(batch, list) else 1
        self._pending_lists -= isinstance(batch, Replaced)
        if self._room_freed is not None and self.has_room:
            self._room_freed.set()
            self._room_freed = None
        return batch

    @property
    def has_room(self) -> bool:
        """Whether fewer than ``max_pending`` changes are pending, and no list."""
        return self._closed or (self._pending < self.max_pending and not self._pending_lists)

    async def wait_for_room(self) -> None:
        """Wait until there is room; not a checkpoint if that is the case already."""
        while not self.has_room:
            if self._room_freed is None:
                self._room_freed = trio.Event()
            await self._room_freed.wait()

    def close(self) -> None:
        """Reject further writes; the consumer gets what is pending and then ``trio.ClosedResourceError``."""
        self._closed = True
        self._ready.set()
        if self._room_freed is not None:
            self._room_freed.set()


@final
class NamespacedSink(Generic[T]):
    """A sink for the reflector of one namespace: its lists and bookmarks apply to this namespace of the queue only."""

    def __init__(self, fifo: DeltaFIFO[T], namespace: str) -> None:
        self._fifo = fifo
        self._namespace = namespace
        self.add, self.update, self.delete = fifo.add, fifo.update, fifo.delete
        self.quarantine, self.delete_key = fifo.quarantine, fifo.delete_key
        self.wait_for_room = fifo.wait_for_room

    def bookmark(self, resource_version: str) -> None:
        """Take a bookmark of this namespace's watch."""
        self._fifo.bookmark(resource_version, namespace=self._namespace)

    def replace(self, objects: Sequence[T], resource_version: str, *, bad: Mapping[str, BadObject] = _NOTHING) -> None:
        """Take a list of this namespace."""
        self._fifo.replace(objects, resource_version, bad=bad, namespace=self._namespace)

    @property
    def has_room(self) -> bool:
        """Whether the reflector may write without waiting."""
        return self._fifo.has_room
