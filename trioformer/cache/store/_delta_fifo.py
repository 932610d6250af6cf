"""The queue between the reflector and the process loop.

The reflector writes what the server said; the process loop takes it in batches and applies it to the indexer.
Three kinds of batch exist, and their order is the order in which they were written:

- :class:`Deltas`: changes, gathered by key.  Keys keep the order of their first pending change, the changes of a key
  their own order, and two deletions in a row are one.
- :class:`Replaced`: a whole list.  What it lacks is found when it is applied, against the indexer, so that every
  change written before it has already happened.  It is applied in one step.
- :class:`Sync`: repeat every object to the handlers that are due.  It carries no objects: they are read from the
  indexer when it is applied, so a resync can never overtake a newer change.

Several reflectors may write to one queue, each the objects of one namespace: a list then replaces what the queue holds
of that namespace and nothing else.

This is client-go's ``DeltaFIFO`` (``tools/cache/delta_fifo.go``, 1.19: Added, Updated, Deleted, Replaced, Sync) with
what came later: relist and resync are one item each (``AtomicFIFO``).
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar, final

import attrs
import trio

from ...models import KubernetesObject, key_of

T = TypeVar("T", bound=KubernetesObject)


class DeltaType(enum.Enum):
    """What happened to one object."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"


ADDED, UPDATED, DELETED = DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED


class Delta(NamedTuple, Generic[T]):
    """One change of one object."""

    type: DeltaType
    """What happened."""
    object: T
    """The object after it; for a deletion its last state."""


@final
@attrs.frozen
class Deltas(Generic[T]):
    """Changes by key."""

    by_key: dict[str, list[Delta[T]]]
    """The pending changes of each key, oldest first."""
    reached: dict[str, str] = attrs.field(factory=dict)
    """For each namespace the resourceVersion after these changes: the last change's, or a later bookmark's."""

    def __len__(self) -> int:
        return sum(map(len, self.by_key.values()))


@final
@attrs.frozen
class Replaced(Generic[T]):
    """A list's whole answer."""

    objects: Sequence[T]
    """Everything that exists, in the list's order."""
    resource_version: str
    """The list's resourceVersion."""
    namespace: str = ""
    """The namespace that was listed, where a cache is made of several; otherwise empty."""
    undecodable: frozenset[str] = frozenset()
    """Keys of objects that exist, although they are not among ``objects``: they do not decode."""


@final
@attrs.frozen
class Sync:
    """Repeat what the cache holds."""


Batch: TypeAlias = Deltas[T] | Replaced[T] | Sync


@final
@attrs.define(eq=False)
class DeltaFIFO(Generic[T]):
    """The pending changes of one kind, with one reader.

    Writing never waits; a writer that can wait asks :meth:`wait_for_room` between batches, and so the bound reaches
    the watch's socket.

    Whether an object is known is asked when its change is applied, not when it is queued: a list that is being applied
    may be just about to bring it.

    Args:
        max_pending: How many changes may be pending before :meth:`wait_for_room` waits.
    """

    max_pending: int = 10_000
    _sealed: deque[Batch[T]] = attrs.field(factory=deque, init=False)
    _open: dict[str, list[Delta[T]]] = attrs.field(factory=dict, init=False)
    _newest: T | None = attrs.field(default=None, init=False)
    _reached: dict[str, str] = attrs.field(factory=dict, init=False)
    _pending: int = attrs.field(default=0, init=False)
    _ready: trio.Event = attrs.field(factory=trio.Event, init=False)
    _room: trio.Event | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        """How many changes are pending; a relist and a resync count one each."""
        return self._pending

    def add(self, obj: T) -> None:
        """Queue an addition; atomic."""
        self._append(key_of(obj), Delta(ADDED, obj))

    def update(self, obj: T) -> None:
        """Queue a newer state; atomic."""
        self._append(key_of(obj), Delta(UPDATED, obj))

    def delete(self, obj: T) -> None:
        """Queue a deletion, unless the newest pending change of the object is one; atomic."""
        key = key_of(obj)
        pending = self._open.get(key)
        if pending is None or pending[-1].type is not DELETED:
            self._append(key, Delta(DELETED, obj))

    def bookmark(self, resource_version: str, *, namespace: str = "") -> None:
        """Note, after what is pending, that nothing else has happened up to ``resource_version``; atomic."""
        self._refuse_if_closed()
        if resource_version:
            self._newest = None
            self._reached[namespace] = resource_version
            self._ready.set()

    def _append(self, key: str, delta: Delta[T]) -> None:
        self._refuse_if_closed()
        pending = self._open.get(key)
        if pending is None:
            self._open[key] = [delta]
        else:
            pending.append(delta)
        self._newest = delta.object
        self._pending += 1
        self._ready.set()

    def replace(
        self,
        objects: Sequence[T],
        resource_version: str,
        *,
        undecodable: frozenset[str] = frozenset(),
        namespace: str = "",
    ) -> None:
        """Queue a list's whole answer, after everything that is pending; atomic.

        A list of the same namespace that is still pending, and what came after it, is dropped: the new one supersedes
        them.
        So at most one whole list of a namespace ever waits, however long the reader is held up.
        """
        self._refuse_if_closed()
        self._seal_open()
        wants_sync = False
        if any(isinstance(batch, Replaced) and batch.namespace == namespace for batch in self._sealed):
            wants_sync, dropped = self._drop_since_list(namespace)
            # What had come before of an object that has become undecodable must not go with the dropped list.
            if undecodable and (carried := _last_states(dropped, undecodable)):
                objects, undecodable = (*objects, *carried.values()), undecodable - carried.keys()
        self._seal(Replaced(objects, resource_version, namespace, undecodable))
        if wants_sync:
            self._seal(Sync())

    def _drop_since_list(self, namespace: str) -> tuple[bool, list[Deltas[T] | Replaced[T]]]:
        """Drop the pending list of a namespace and what of this namespace follows it.

        Returns:
            Whether a resync was among that, and what was dropped, oldest first.
        """
        kept: deque[Batch[T]] = deque()
        dropped: list[Deltas[T] | Replaced[T]] = []
        wants_sync = False
        while self._sealed:
            batch = self._sealed.pop()
            self._pending -= _size(batch)
            if isinstance(batch, Sync):
                wants_sync = True
                continue
            if isinstance(batch, Replaced) and batch.namespace == namespace:
                dropped.append(batch)
                break
            if isinstance(batch, Deltas):
                dropped.append(batch)
            if (rest := _without(batch, namespace)) is not None:
                kept.appendleft(rest)
        self._sealed += kept
        self._pending += sum(map(_size, kept))
        return wants_sync, dropped[::-1]

    def resync(self) -> None:
        """Queue a resync, unless the newest pending item is one already; atomic."""
        if not (self._sealed and not self._open and isinstance(self._sealed[-1], Sync)):
            self._seal(Sync())

    def _seal(self, batch: Replaced[T] | Sync) -> None:
        self._refuse_if_closed()
        self._seal_open()
        self._sealed.append(batch)
        self._pending += 1
        self._ready.set()

    def _seal_open(self) -> None:
        if self._open or self._reached:
            self._sealed.append(self._take_open())

    def _take_open(self) -> Deltas[T]:
        if self._newest is not None and self._newest.resource_version:
            self._reached[""] = self._newest.resource_version
        taken = Deltas(self._open, self._reached)
        self._open, self._reached, self._newest = {}, {}, None
        return taken

    async def pop(self) -> Batch[T]:
        """Take the oldest batch, waiting for one if there is none.

        Raises:
            trio.ClosedResourceError: The queue is closed and empty.

        Cancellation: nothing is lost; what is pending stays.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while not (self._pending or self._sealed or self._reached):
            self._refuse_if_closed()
            self._ready = trio.Event()
            await self._ready.wait()
        # no checkpoint from here on: a batch that was taken is returned
        # Open changes are swapped whole: popping a dict's head one by one slows down with every pop.
        batch = self._sealed.popleft() if self._sealed else self._take_open()
        self._pending -= _size(batch)
        if self._room is not None and self._pending < self.max_pending:
            self._room.set()
            self._room = None
        return batch

    @property
    def has_room(self) -> bool:
        """Whether fewer than ``max_pending`` changes are pending."""
        return self._pending < self.max_pending or self._closed

    async def wait_for_room(self) -> None:
        """Wait until fewer than ``max_pending`` changes are pending; returns at once, without a checkpoint, if so."""
        while not self.has_room:
            if self._room is None:
                self._room = trio.Event()
            await self._room.wait()

    def close(self) -> None:
        """Refuse further writes; a waiting reader gets what is left and then ``trio.ClosedResourceError``."""
        self._closed = True
        self._ready.set()
        if self._room is not None:
            self._room.set()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this queue has been closed")


def _without(batch: Deltas[T] | Replaced[T], namespace: str) -> Deltas[T] | Replaced[T] | None:
    """What is left of a batch without the changes of a namespace."""
    if isinstance(batch, Replaced):
        return batch
    if not namespace:
        return None
    begin = f"{namespace}/"
    by_key = {key: deltas for key, deltas in batch.by_key.items() if not key.startswith(begin)}
    reached = {of: version for of, version in batch.reached.items() if of != namespace}
    return Deltas(by_key, reached) if by_key or reached else None


def _last_states(batches: list[Deltas[T] | Replaced[T]], keys: frozenset[str]) -> dict[str, T]:
    """What became of some objects in batches that follow each other; a deleted one is not among them."""
    states: dict[str, T] = {}
    for batch in batches:
        if isinstance(batch, Replaced):
            states = {key_of(obj): obj for obj in batch.objects if key_of(obj) in keys}
            continue
        for key in keys & batch.by_key.keys():
            newest = batch.by_key[key][-1]
            if newest.type is DELETED:
                states.pop(key, None)
            else:
                states[key] = newest.object
    return states


def _size(batch: Batch[T]) -> int:
    return len(batch) if isinstance(batch, Deltas) else 1


@final
@attrs.frozen(eq=False)
class NamespacedSink(Generic[T]):
    """The queue as the reflector of one namespace sees it: its lists and bookmarks speak for this namespace only."""

    _fifo: DeltaFIFO[T]
    _namespace: str

    def add(self, obj: T) -> None:
        """Take an ADDED event."""
        self._fifo.add(obj)
        self._fifo.bookmark(obj.resource_version, namespace=self._namespace)

    def update(self, obj: T) -> None:
        """Take a MODIFIED event."""
        self._fifo.update(obj)
        self._fifo.bookmark(obj.resource_version, namespace=self._namespace)

    def delete(self, obj: T) -> None:
        """Take a DELETED event."""
        self._fifo.delete(obj)
        self._fifo.bookmark(obj.resource_version, namespace=self._namespace)

    def bookmark(self, resource_version: str) -> None:
        """Take a bookmark of this namespace's watch."""
        self._fifo.bookmark(resource_version, namespace=self._namespace)

    def replace(
        self, objects: Sequence[T], resource_version: str, *, undecodable: frozenset[str] = frozenset()
    ) -> None:
        """Take everything that there is in this namespace."""
        self._fifo.replace(objects, resource_version, undecodable=undecodable, namespace=self._namespace)

    @property
    def has_room(self) -> bool:
        """Whether the writer may go on without waiting."""
        return self._fifo.has_room

    async def wait_for_room(self) -> None:
        """Wait until there is room again."""
        await self._fifo.wait_for_room()
