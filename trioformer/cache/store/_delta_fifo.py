"""The queue between the reflector and the process loop.

The reflector queues the changes that the server reports.  The process loop takes them in batches and applies them to
the indexer in the same order.  While the process loop waits, the reflector's task applies a batch at once.
There are three kinds of batches:

- a list of changes: states of objects, deletions, bad objects and bookmarks
- :class:`Replaced`: a complete list, which is applied in one step after all earlier changes.  Objects of the indexer
  that are missing from the list are then deleted.
- :class:`Sync`: a resync, which delivers every object again to the listeners whose resync is due.  The objects are
  read from the indexer when the resync is applied, so a resync never delivers an outdated state.

Several reflectors may write to the same queue, each for its own namespace.

Source: client-go's ``RealFIFO`` (``tools/cache/the_real_fifo.go``).  As in client-go, changes are not merged, and a
relist or a resync is a single item (``AtomicFIFO``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
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
    """The resourceVersion of the deletion, or an empty string if it is unknown."""
    object: T | None = None
    """The last state of the object, or None for a bad object."""


@final
@attrs.frozen
class Bookmark:
    """A report that the watch has delivered all changes up to a resourceVersion."""

    resource_version: str
    """The resourceVersion that the watch has reached."""
    namespace: str = ""
    """The namespace of the watch in a cache of several namespaces, otherwise an empty string."""


Change: TypeAlias = T | Deletion[T] | BadObject | Bookmark
"""A change that the server reported: a state of an object, a deletion, a bad object or a bookmark."""


@final
@attrs.frozen
class Replaced(Generic[T]):
    """The complete result of a list request."""

    objects: Sequence[T]
    """The objects, in the order of the list."""
    resource_version: str
    """The resourceVersion of the list."""
    parts: Collection[str] = ("",)
    """The listed parts of a cache of several parts.  An empty string stands for the only part, and for keys that do not
    tell their part."""
    bad: Mapping[str, BadObject] = attrs.field(factory=dict)
    """The bad objects of the list, by key."""
    is_release: bool = False
    """Whether the parts are given away, so that their objects were not deleted."""


@final
@attrs.frozen
class Sync:
    """A resync: delivers every object of the cache to the listeners again."""


Batch: TypeAlias = list[Change[T]] | Replaced[T] | Sync


@final
@attrs.define(eq=False)
class DeltaFIFO(Generic[T]):
    """The pending changes of one kind, with one consumer.

    The methods that queue a change never wait.  A reflector calls :meth:`wait_for_room` before each list and between
    batches of events.  So a reflector stops reading its watch while the queue is full, and has at most one pending
    list.

    A change is compared with the indexer when it is applied, not when it is queued, because an earlier list in the
    queue may contain the object.

    Args:
        max_pending: The number of pending changes at which :meth:`wait_for_room` begins to wait.
    """

    max_pending: int = 10_000
    apply_now: Callable[[list[Change[T]]], int] | None = attrs.field(default=None, init=False)
    """A function of the consumer that applies the first changes of a batch without waiting, and returns the number of
    these changes."""
    _batches: deque[Batch[T]] = attrs.field(factory=deque, init=False)
    _pending: int = attrs.field(default=0, init=False)
    _pending_lists: int = attrs.field(default=0, init=False)
    _ready: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_held: bool = attrs.field(default=False, init=False)
    """Whether a reflector is queueing a batch."""
    _is_idle: bool = attrs.field(default=False, init=False)
    """Whether the consumer waits in :meth:`pop`."""
    _room_freed: trio.Event | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _failure: Exception | None = attrs.field(default=None, init=False)
    """The exception that ``apply_now`` raised."""

    def __len__(self) -> int:
        """Return the number of pending changes; a relist or a resync counts as one change."""
        return self._pending

    def add(self, obj: T) -> None:
        """Atomically queue a new state of an object."""
        self._append_change(obj)

    update = add

    def delete(self, obj: T) -> None:
        """Atomically queue the deletion of an object."""
        self._append_change(Deletion(key_of(obj), obj.resource_version, obj))

    def delete_key(self, key: str, resource_version: str) -> None:
        """Atomically queue the deletion of an object if only its key is known."""
        self._append_change(Deletion(key, resource_version))

    def quarantine(self, bad: BadObject) -> None:
        """Atomically queue a bad object."""
        self._append_change(bad)

    def bookmark(self, resource_version: str, *, namespace: str = "") -> None:
        """Atomically queue a bookmark, which says that all changes up to ``resource_version`` have been delivered."""
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
        parts: Collection[str] = ("",),
    ) -> None:
        """Atomically queue the complete result of a list request."""
        self._append_batch(Replaced(objects, resource_version, parts, bad))
        self._pending_lists += 1

    def release_part(self, part: str) -> None:
        """Atomically queue the removal of a part that is given away.  A closed queue ignores it."""
        if not self._closed:
            self._append_batch(Replaced((), "", (part,), is_release=True))
            self._pending_lists += 1

    def resync(self) -> None:
        """Atomically queue a resync, unless the last item of the queue is already a resync."""
        if not (self._batches and isinstance(self._batches[-1], Sync)):
            self._append_batch(Sync())

    def _append_batch(self, batch: Batch[T]) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this delta FIFO is closed")
        self._batches.append(batch)
        self._pending += 1
        if not self._is_held:
            self._ready.set()

    def hold(self) -> None:
        """Begin to queue a batch of changes, which ends with :meth:`release` before the next checkpoint."""
        self._is_held = True

    def release(self) -> None:
        """End a batch of changes.

        If the queue was empty and the consumer is idle, its function ``apply_now`` applies the changes immediately,
        which saves waking its task.
        """
        self._is_held = False
        batch = self._batches[0] if len(self._batches) == 1 else None
        if self._is_idle and self.apply_now is not None and isinstance(batch, list):
            try:
                applied = self.apply_now(batch)
            except Exception as error:  # noqa: BLE001  # it is the consumer's, and not of the reflector's request
                self._failure, applied = error, len(batch)
            self._pending -= applied
            del batch[:applied]
            if not batch:
                self._batches.clear()
        if self._batches or self._failure is not None:
            self._ready.set()

    async def pop(self) -> Batch[T]:
        """Remove and return the oldest batch; wait for one if the queue is empty.

        Raises:
            trio.ClosedResourceError: If the queue is closed and empty.
            Exception: The function ``apply_now`` raised this exception.

        Cancellation: no batch is lost; pending batches stay in the queue.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._batches or self._failure is not None:
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise trio.ClosedResourceError("this delta FIFO is closed")
            self._ready = trio.Event()
            self._is_idle = True
            try:
                await self._ready.wait()
            finally:
                self._is_idle = False
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
        """Whether the queue has fewer than ``max_pending`` changes and no list."""
        return self._closed or (self._pending < self.max_pending and not self._pending_lists)

    async def wait_for_room(self) -> None:
        """Wait until :attr:`has_room` is true; return without a checkpoint if it is already true."""
        while not self.has_room:
            if self._room_freed is None:
                self._room_freed = trio.Event()
            await self._room_freed.wait()

    def close(self) -> None:
        """Reject new changes, and raise ``trio.ClosedResourceError`` in the consumer after the last batch."""
        self._closed = True
        self._ready.set()
        if self._room_freed is not None:
            self._room_freed.set()


class NamespacedSink(Generic[T]):
    """A sink for the reflector of one namespace; its lists and bookmarks apply only to this namespace."""

    def __init__(self, fifo: DeltaFIFO[T], namespace: str) -> None:
        self._fifo = fifo
        self._namespace = namespace
        self.add, self.update, self.delete = fifo.add, fifo.update, fifo.delete
        self.quarantine, self.delete_key = fifo.quarantine, fifo.delete_key
        self.wait_for_room, self.hold, self.release = fifo.wait_for_room, fifo.hold, fifo.release

    def bookmark(self, resource_version: str) -> None:
        """Queue a bookmark for this sink's namespace."""
        self._fifo.bookmark(resource_version, namespace=self._namespace)

    def replace(self, objects: Sequence[T], resource_version: str, *, bad: Mapping[str, BadObject]) -> None:
        """Queue a complete list for this sink's namespace."""
        self._fifo.replace(objects, resource_version, bad=bad, parts=(self._namespace,))

    @property
    def has_room(self) -> bool:
        """Whether the queue accepts more changes without waiting."""
        return self._fifo.has_room
