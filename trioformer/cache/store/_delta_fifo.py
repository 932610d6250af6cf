"""The queue between the reflector and the process loop.

The reflector writes the changes that the server reports; the process loop pops them in batches and applies them to the
indexer, in the order in which they were written.
There are three kinds of batch:

- a list of changes: states of objects, deletions, bad objects and bookmarks
- :class:`Replaced`: a whole list, which is applied in one step, after all earlier changes.  Comparison with the indexer
  then finds the objects that the list lacks.
- :class:`Sync`: repeat every object to the listeners whose resync is due.  It contains no objects: they are read from
  the indexer when it is applied, so a resync never overtakes a newer change.

Several reflectors may write to one queue, each for one namespace.

Source: client-go's ``RealFIFO`` (``tools/cache/the_real_fifo.go``), which merges nothing; a relist and a resync are one
item each (``AtomicFIFO``).
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
    """The version of the deletion; empty if it is unknown."""
    object: T | None = None
    """The last state; None for a bad object."""


@final
@attrs.frozen
class Bookmark:
    """The watch has delivered all changes up to a version."""

    resource_version: str
    """The version."""
    namespace: str = ""
    """The namespace of the watch, for a cache of several namespaces; otherwise empty."""


Change: TypeAlias = T | Deletion[T] | BadObject | Bookmark
"""A state of an object, or another report of the server."""


@final
@attrs.frozen
class Replaced(Generic[T]):
    """The result of a list."""

    objects: Sequence[T]
    """The objects, in the order of the list."""
    resource_version: str
    """The list's resourceVersion."""
    namespace: str = ""
    """The listed namespace, for a cache of several namespaces; otherwise empty."""
    bad: Mapping[str, BadObject] = attrs.field(factory=dict)
    """The bad objects of the list, by key."""


@final
@attrs.frozen
class Sync:
    """Repeat every object of the cache."""


Batch: TypeAlias = list[Change[T]] | Replaced[T] | Sync


@final
@attrs.define(eq=False)
class DeltaFIFO(Generic[T]):
    """The pending changes of one kind, with one consumer.

    Writing never waits.  A writer calls :meth:`wait_for_room` before a list and between its batches of events.  So a
    full queue stops the reading of the watch, and at most one list of each writer is pending.

    A change is compared with the indexer when it is applied, not when it is queued: an earlier pending list may contain
    the object.

    Args:
        max_pending: The number of pending changes from which :meth:`wait_for_room` waits.
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
        """Queue a bad object; atomic."""
        self._append_change(bad)

    def bookmark(self, resource_version: str, *, namespace: str = "") -> None:
        """Queue a bookmark: all changes up to ``resource_version`` have been delivered; atomic."""
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
        """Remove and return the oldest batch; wait for one if the queue is empty.

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
        # no checkpoint from here on: a removed batch must be returned
        batch = self._batches.popleft()
        self._pending -= len(batch) if isinstance(batch, list) else 1
        self._pending_lists -= isinstance(batch, Replaced)
        if self._room_freed is not None and self.has_room:
            self._room_freed.set()
            self._room_freed = None
        return batch

    @property
    def has_room(self) -> bool:
        """Whether fewer than ``max_pending`` changes, and no list, are pending."""
        return self._closed or (self._pending < self.max_pending and not self._pending_lists)

    async def wait_for_room(self) -> None:
        """Wait until there is room; not a checkpoint if there is room already."""
        while not self.has_room:
            if self._room_freed is None:
                self._room_freed = trio.Event()
            await self._room_freed.wait()

    def close(self) -> None:
        """Reject further writes; the consumer gets the pending batches and then ``trio.ClosedResourceError``."""
        self._closed = True
        self._ready.set()
        if self._room_freed is not None:
            self._room_freed.set()


@final
class NamespacedSink(Generic[T]):
    """A sink for the reflector of one namespace: lists and bookmarks apply to that namespace only."""

    def __init__(self, fifo: DeltaFIFO[T], namespace: str) -> None:
        self._fifo = fifo
        self._namespace = namespace
        self.add, self.update, self.delete = fifo.add, fifo.update, fifo.delete
        self.quarantine, self.delete_key = fifo.quarantine, fifo.delete_key
        self.wait_for_room = fifo.wait_for_room

    def bookmark(self, resource_version: str) -> None:
        """Queue a bookmark of the namespace."""
        self._fifo.bookmark(resource_version, namespace=self._namespace)

    def replace(self, objects: Sequence[T], resource_version: str, *, bad: Mapping[str, BadObject] = _NOTHING) -> None:
        """Queue a list of the namespace."""
        self._fifo.replace(objects, resource_version, bad=bad, namespace=self._namespace)

    @property
    def has_room(self) -> bool:
        """Whether the reflector may write without waiting."""
        return self._fifo.has_room
