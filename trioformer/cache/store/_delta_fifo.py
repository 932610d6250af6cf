"""The queue between the reflector and the process loop.

The reflector writes the changes that the server reports; the process loop pops them in batches and applies them to the
indexer.
There are three kinds of batch, and the loop pops them in the order in which they were written:

- :class:`Deltas`: changes, grouped by key.  Keys keep the order of their first pending change, the changes of a key
  keep their own order, and two consecutive deletions become one.  A state that cannot be taken is a change as well, so
  that it keeps its place among the good ones.
- :class:`Replaced`: a whole list.  Objects that the list lacks are found when it is applied, by comparison with the
  indexer, after every change that was written before it.  It is applied in one step.
- :class:`Sync`: repeat every object to the listeners whose resync is due.  It carries no objects: they are read from
  the indexer when it is applied, so a resync never overtakes a newer change.

Several reflectors may write to one queue, each the objects of one namespace: a list then replaces only what the queue
holds of that namespace.

Source: client-go's ``DeltaFIFO`` (``tools/cache/delta_fifo.go``, 1.19: Added, Updated, Deleted, Replaced, Sync), and
from later versions the rule that a relist and a resync are one item each (``AtomicFIFO``).
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, final

import attrs
import trio

from ...models import KubernetesObject, key_of
from .._bad_objects import BadObject, perhaps

T = TypeVar("T", bound=KubernetesObject)


class DeltaType(enum.Enum):
    """The kind of change."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"


_NOTHING: Final[Mapping[str, BadObject]] = {}

ADDED, UPDATED, DELETED = DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED


class Delta(NamedTuple, Generic[T]):
    """One change of one object."""

    type: DeltaType
    """The kind of change."""
    object: T
    """The object after the change; for a deletion its last state."""


@final
@attrs.frozen
class DeletedKey:
    """The deletion of an object whose last state cannot be taken."""

    key: str
    """The key of the object."""
    resource_version: str
    """The version of the deletion; empty if it is not known."""


Change: TypeAlias = Delta[T] | BadObject | DeletedKey


@final
@attrs.frozen
class Deltas(Generic[T]):
    """Changes, grouped by key."""

    by_key: dict[str, list[Change[T]]]
    """The pending changes of each key, oldest first."""
    resource_versions: dict[str, str] = attrs.field(factory=dict)
    """For each namespace the resourceVersion after these changes: that of the last change, or of a later bookmark."""

    def __len__(self) -> int:
        return sum(map(len, self.by_key.values()))


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
    """Objects whose newest state cannot be taken, by key; ``objects`` may have an earlier state of them."""


@final
@attrs.frozen
class Sync:
    """Repeat every object of the cache."""


Batch: TypeAlias = Deltas[T] | Replaced[T] | Sync


@final
@attrs.define(eq=False)
class DeltaFIFO(Generic[T]):
    """The pending changes of one kind, with one consumer.

    The methods that write never wait.  A writer calls :meth:`wait_for_room` between its batches, so the bound of the
    queue reaches the watch's socket.

    A change is compared with the indexer when it is applied, not when it is queued: a list that is being applied may
    bring the object.

    Args:
        max_pending: How many changes may be pending before :meth:`wait_for_room` waits.
    """

    max_pending: int = 10_000
    _batches: deque[Batch[T]] = attrs.field(factory=deque, init=False)
    # The newest batch of changes, which still grows; it follows all of _batches.
    _changes: dict[str, list[Change[T]]] = attrs.field(factory=dict, init=False)
    _newest_object: T | None = attrs.field(default=None, init=False)
    _resource_versions: dict[str, str] = attrs.field(factory=dict, init=False)
    _pending: int = attrs.field(default=0, init=False)
    _ready: trio.Event = attrs.field(factory=trio.Event, init=False)
    _room_freed: trio.Event | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        """The number of pending changes; a relist and a resync count as one each."""
        return self._pending

    def add(self, obj: T) -> None:
        """Queue an addition; atomic."""
        self._append_change(key_of(obj), Delta(ADDED, obj))

    def update(self, obj: T) -> None:
        """Queue a newer state; atomic."""
        self._append_change(key_of(obj), Delta(UPDATED, obj))

    def delete(self, obj: T) -> None:
        """Queue a deletion, unless the newest pending change of the object is a deletion; atomic."""
        key = key_of(obj)
        pending = self._changes.get(key)
        if pending is None or not _is_deletion(pending[-1]):
            self._append_change(key, Delta(DELETED, obj))

    def quarantine(self, bad: BadObject, *, namespace: str = "") -> None:
        """Queue that the newest state of an object cannot be taken; atomic."""
        self._append_other(bad.key, bad, namespace)

    def delete_key(self, key: str, resource_version: str, *, namespace: str = "") -> None:
        """Queue a deletion without the object; atomic."""
        self._append_other(key, DeletedKey(key, resource_version), namespace)

    def _append_other(self, key: str, change: BadObject | DeletedKey, namespace: str) -> None:
        self._raise_if_closed()
        self._changes.setdefault(key, []).append(change)
        self._pending += 1
        self._ready.set()
        self.bookmark(change.resource_version, namespace=namespace)

    def bookmark(self, resource_version: str, *, namespace: str = "") -> None:
        """Queue, after the pending changes, that there is no other change up to ``resource_version``; atomic."""
        self._raise_if_closed()
        if resource_version:
            self._newest_object = None
            self._resource_versions[namespace] = resource_version
            self._ready.set()

    def _append_change(self, key: str, delta: Delta[T]) -> None:
        self._raise_if_closed()
        pending = self._changes.get(key)
        if pending is None:
            self._changes[key] = [delta]
        else:
            pending.append(delta)
        self._newest_object = delta.object
        self._pending += 1
        self._ready.set()

    def replace(
        self,
        objects: Sequence[T],
        resource_version: str,
        *,
        bad: Mapping[str, BadObject] = _NOTHING,
        namespace: str = "",
    ) -> None:
        """Queue the result of a list, after everything that is pending; atomic.

        It supersedes a pending list of the same namespace and the changes after that list, which are dropped.
        So at most one list of a namespace is pending, however long the consumer is delayed.
        """
        self._raise_if_closed()
        self._finish_changes()
        has_resync = False
        if any(isinstance(batch, Replaced) and batch.namespace == namespace for batch in self._batches):
            has_resync, dropped = self._drop_since_list(namespace)
            if bad:
                objects, bad = _with_last_states(objects, bad, dropped, namespace)
        self._append_batch(Replaced(objects, resource_version, namespace, bad))
        if has_resync:
            self._append_batch(Sync())

    def _drop_since_list(self, namespace: str) -> tuple[bool, list[Deltas[T] | Replaced[T]]]:
        """Drop the pending list of a namespace and the changes of this namespace after it.

        Returns:
            Whether a resync was dropped, and the dropped batches, oldest first.
        """
        kept: deque[Batch[T]] = deque()
        dropped: list[Deltas[T] | Replaced[T]] = []
        has_resync = False
        while self._batches:
            batch = self._batches.pop()
            self._pending -= _size(batch)
            if isinstance(batch, Sync):
                has_resync = True
                continue
            if isinstance(batch, Replaced) and batch.namespace == namespace:
                dropped.append(batch)
                break
            if isinstance(batch, Deltas):
                dropped.append(batch)
            if (rest := _without(batch, namespace)) is not None:
                kept.appendleft(rest)
        self._batches += kept
        self._pending += sum(map(_size, kept))
        return has_resync, dropped[::-1]

    def resync(self) -> None:
        """Queue a resync, unless the newest pending item is a resync; atomic."""
        if not (self._batches and not self._changes and isinstance(self._batches[-1], Sync)):
            self._append_batch(Sync())

    def _append_batch(self, batch: Replaced[T] | Sync) -> None:
        self._raise_if_closed()
        self._finish_changes()
        self._batches.append(batch)
        self._pending += 1
        self._ready.set()

    def _finish_changes(self) -> None:
        if self._changes or self._resource_versions:
            self._batches.append(self._take_changes())

    def _take_changes(self) -> Deltas[T]:
        if self._newest_object is not None and self._newest_object.resource_version:
            self._resource_versions[""] = self._newest_object.resource_version
        taken = Deltas(self._changes, self._resource_versions)
        self._changes, self._resource_versions, self._newest_object = {}, {}, None
        return taken

    async def pop(self) -> Batch[T]:
        """Take the oldest batch; wait for one if the queue is empty.

        Raises:
            trio.ClosedResourceError: The queue is closed and empty.

        Cancellation: nothing is lost; pending batches stay.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while not (self._pending or self._batches or self._resource_versions):
            self._raise_if_closed()
            self._ready = trio.Event()
            await self._ready.wait()
        # no checkpoint from here on: a batch that has been taken is returned
        # The open changes are taken as a whole: each pop from the front of a dict is slower than the one before.
        batch = self._batches.popleft() if self._batches else self._take_changes()
        self._pending -= _size(batch)
        if self._room_freed is not None and self._pending < self.max_pending:
            self._room_freed.set()
            self._room_freed = None
        return batch

    @property
    def has_room(self) -> bool:
        """Whether fewer than ``max_pending`` changes are pending."""
        return self._pending < self.max_pending or self._closed

    async def wait_for_room(self) -> None:
        """Wait until fewer than ``max_pending`` changes are pending; not a checkpoint if that is the case already."""
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

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this delta FIFO is closed")


def _without(batch: Deltas[T] | Replaced[T], namespace: str) -> Deltas[T] | Replaced[T] | None:
    """Return a batch without the changes of a namespace, or None if nothing else is in it."""
    if isinstance(batch, Replaced):
        return batch
    if not namespace:
        return None
    prefix = f"{namespace}/"
    by_key = {key: deltas for key, deltas in batch.by_key.items() if not key.startswith(prefix)}
    versions = {of: version for of, version in batch.resource_versions.items() if of != namespace}
    return Deltas(by_key, versions) if by_key or versions else None


def _with_last_states(
    objects: Sequence[T], bad: Mapping[str, BadObject], dropped: list[Deltas[T] | Replaced[T]], namespace: str
) -> tuple[Sequence[T], Mapping[str, BadObject]]:
    """Add to a list the last good states, in the batches that it supersedes, of the objects that are or may be bad.

    An object of the list that has no key may be any that the list lacks.
    """
    nameless = bad.get(f"{namespace}/" if namespace else "")
    listed = set(map(key_of, objects))
    carried = {
        key: obj
        for key, obj in _last_states(dropped, namespace).items()
        if key not in listed and (key in bad or nameless is not None)
    }
    if nameless is not None:
        bad = {**{key: perhaps(nameless, key) for key in carried}, **bad}
    return (*objects, *carried.values()), bad


def _last_states(batches: list[Deltas[T] | Replaced[T]], namespace: str) -> dict[str, T]:
    """Return the last good states in consecutive batches; deleted objects are left out."""
    states: dict[str, T] = {}
    for batch in batches:
        if isinstance(batch, Replaced):
            states = {key_of(obj): obj for obj in batch.objects}
            continue
        for key, changes in batch.by_key.items():
            if namespace and not key.startswith(f"{namespace}/"):
                continue
            for change in changes:
                if _is_deletion(change):
                    states.pop(key, None)
                elif isinstance(change, Delta):
                    states[key] = change.object
    return states


def _is_deletion(change: Change[T]) -> bool:
    return change.type is DELETED if isinstance(change, Delta) else isinstance(change, DeletedKey)


def _size(batch: Batch[T]) -> int:
    return len(batch) if isinstance(batch, Deltas) else 1


@final
@attrs.frozen(eq=False)
class NamespacedSink(Generic[T]):
    """A sink for the reflector of one namespace: its lists and bookmarks apply to this namespace of the queue only."""

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

    def quarantine(self, bad: BadObject) -> None:
        """Take the event of an object that cannot be taken."""
        self._fifo.quarantine(self._within(bad), namespace=self._namespace)

    def delete_key(self, key: str, resource_version: str) -> None:
        """Take a DELETED event without its object."""
        self._fifo.delete_key(key, resource_version, namespace=self._namespace)

    def _within(self, bad: BadObject) -> BadObject:
        """Give objects without a key one entry for each namespace, since a list of another namespace lacks them."""
        return bad if bad.key else attrs.evolve(bad, key=f"{self._namespace}/")

    def replace(self, objects: Sequence[T], resource_version: str, *, bad: Mapping[str, BadObject] = _NOTHING) -> None:
        """Take a list of this namespace."""
        within = {each.key: each for each in map(self._within, bad.values())}
        self._fifo.replace(objects, resource_version, bad=within, namespace=self._namespace)

    @property
    def has_room(self) -> bool:
        """Whether the reflector may write without waiting."""
        return self._fifo.has_room

    async def wait_for_room(self) -> None:
        """Wait until the reflector may write again."""
        await self._fifo.wait_for_room()
