"""From the queue into the store, and from the store to the readers.

The store comes first, then the readers; between the two there is no checkpoint, so a cancelled informer never has an
object in its store that its readers were not going to be told of.

What the store cannot take, because an index function fails on it, is reported and asked for again by a new list:
the store keeps what it had, and everything else goes on.

Source: client-go ``tools/cache/controller.go`` processDeltas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, final

import attrs
import trio

from ..._util import Slices
from ...errors import DecodeError, IndexerError
from ...models import KubernetesObject, key_of
from ..processor._notifications import Added, Deleted, Notification, Updated, object_of
from ..processor._processor import Processor
from ..store._delta_fifo import DELETED, Delta, DeltaFIFO, Deltas, Replaced
from ..store._indexer import Indexer, Staged, drain
from ..store._versions import Versions

T = TypeVar("T", bound=KubernetesObject)

TOLD_AT_ONCE = 200
"""Notifications after which the readers get a turn; well below the smallest buffer that anybody would choose."""


def is_same_state(old: KubernetesObject, new: KubernetesObject) -> bool:
    """Whether two objects of one key are the same state of the same object."""
    return old.resource_version == new.resource_version != "" and old.uid == new.uid


def is_same_object(old: KubernetesObject, new: KubernetesObject) -> bool:
    """Whether two objects of one key are states of one object; a uid that is not known tells nothing."""
    return old.uid == new.uid or not (old.uid and new.uid)


def changes_between(old: T, new: T) -> tuple[Notification[T], ...]:
    """What a reader that knows ``old`` is told of ``new``; another uid is a deletion and an addition."""
    if is_same_object(old, new):
        return (Updated(old, new),)
    return (Deleted(old, is_stale=True), Added(new))


@final
@attrs.define(eq=False)
class ProcessLoop(Generic[T]):
    """The one task that writes to the indexer.

    Args:
        fifo: Where changes come from.
        indexer: Where they go.
        processor: Who is told.
        versions: Told how new the indexer is; its namespaces are those that must have been listed for the first sync.
        on_synced: Called when they have been.
        on_listed: Called with its namespace when a list has been stored as a whole.
        on_refused: Called with a namespace and what the store refused of a list or of some changes.
        on_undecodable: Called with a namespace and an object that an index function could not read.
    """

    _fifo: DeltaFIFO[T]
    _indexer: Indexer[T]
    _processor: Processor[T]
    _versions: Versions
    _on_synced: Callable[[], None] = attrs.field(kw_only=True, alias="on_synced")
    _on_listed: Callable[[str], None] = attrs.field(kw_only=True, alias="on_listed")
    _on_refused: Callable[[str, Sequence[IndexerError]], None] = attrs.field(kw_only=True, alias="on_refused")
    _on_undecodable: Callable[[str, T, DecodeError], None] = attrs.field(kw_only=True, alias="on_undecodable")
    _unlisted: set[str] = attrs.field(init=False)
    _has_several_namespaces: bool = attrs.field(init=False)
    _not_whole: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._unlisted = set(self._versions.namespaces)
        self._has_several_namespaces = self._versions.namespaces != ("",)

    async def run(self) -> None:
        """Apply batch after batch, until cancelled."""
        while True:
            batch = await self._fifo.pop()
            if isinstance(batch, Deltas):
                await self._apply(batch)
            elif isinstance(batch, Replaced):
                before, listed = await self._replace(batch)
                del batch  # or its tuple would keep the objects until they go all at once
                await before.release()
                await drain(listed)
            else:
                self._processor.distribute_resync(self._indexer.snapshot())
            await self._processor.settle()

    async def _apply(self, batch: Deltas[T]) -> None:
        told: list[Notification[T]] = []
        refused: dict[str, list[IndexerError]] = {}
        for key, deltas in batch.by_key.items():
            for delta in deltas:
                # no checkpoint between these two: the store and what the readers will be told change together
                try:
                    self._apply_one(key, delta, told)
                except IndexerError as error:
                    namespace = key.partition("/")[0] if self._has_several_namespaces else ""
                    if not self._is_undecodable(namespace, delta.object, error):
                        refused.setdefault(namespace, []).append(error)
                if len(told) >= TOLD_AT_ONCE:
                    await self._tell(told)
        self._distribute(told)
        self._not_whole |= refused.keys()
        for namespace, version in batch.reached.items():
            # A store that has refused something is not as new as what it was told, before a list has mended it.
            if namespace not in self._not_whole:
                self._indexer.advance(version)
                self._versions.advance(namespace, version)
        for namespace, errors in refused.items():
            self._on_refused(namespace, errors)

    def _is_undecodable(self, namespace: str, obj: T, error: IndexerError) -> bool:
        """Report an object that does not decode; it is to blame, and another list would only bring it again."""
        if isinstance(error.__cause__, DecodeError):
            self._on_undecodable(namespace, obj, error.__cause__)
            return True
        return False

    def _distribute(self, told: list[Notification[T]]) -> None:
        # Before the first sync, where a cache is made of several, all that came will be announced as initial.
        if not self._unlisted:
            self._processor.distribute(told)

    async def _tell(self, told: list[Notification[T]]) -> None:
        """Tell the readers, and let them read before there is more: a burst must not outrun a reader that keeps up."""
        self._distribute(told)
        told.clear()
        await self._processor.settle()
        await trio.lowlevel.checkpoint()

    def _apply_one(self, key: str, delta: Delta[T], told: list[Notification[T]]) -> None:
        indexer = self._indexer
        new = delta.object
        old = indexer.get(key)
        if delta.type is DELETED:
            indexer.advance(new.resource_version)
            if old is not None:
                indexer.remove(key)
                # A successor that nobody had been told of is gone; so is the one before it, whenever that was.
                told.append(Deleted(new) if is_same_object(old, new) else Deleted(old, is_stale=True))
        elif old is None:
            indexer.put(key, new)
            told.append(Added(new))
        elif not is_same_state(old, new):
            indexer.put(key, new)
            told.extend(changes_between(old, new))

    async def _replace(self, batch: Replaced[T]) -> tuple[Staged[T], dict[str, T]]:
        """Put a list in place of the store's content; returns what is no longer needed: the old content, the list."""
        indexer = self._indexer
        is_first = bool(self._unlisted)
        content: list[T] = []
        gone: list[Notification[T]] = []
        changed: list[Notification[T]] = []
        slices = Slices()
        listed: dict[str, T] = {}
        for obj in batch.objects:
            listed[key_of(obj)] = obj
            if slices.is_over():
                await slices.checkpoint()
        for key in indexer.keys():  # noqa: SIM118  # a tuple, not a dict's view
            if key not in listed and (known := indexer.get(key)) is not None:
                if key in batch.undecodable or (batch.namespace and known.namespace != batch.namespace):
                    content.append(known)
                else:
                    gone.append(Deleted(known, is_stale=True))
            if slices.is_over():
                await slices.checkpoint()
        for key, obj in listed.items():
            old = indexer.get(key)
            if old is not None and is_same_state(old, obj):
                content.append(old)  # keeps what has been decoded of it
            else:
                content.append(obj)
                if old is not None:
                    changed.extend(changes_between(old, obj))
                elif not is_first:
                    changed.append(Added(obj))
            if slices.is_over():
                await slices.checkpoint()
        staged, left_out = await indexer.stage(content)
        refused: list[IndexerError] = []
        if left_out:
            refused = [error for obj, error in left_out if not self._is_undecodable(batch.namespace, obj, error)]
            not_taken = {key_of(obj) for obj, _ in left_out}
            changed = [each for each in changed if key_of(object_of(each)) not in not_taken]
        if refused:
            self._not_whole.add(batch.namespace)
            self._on_refused(batch.namespace, refused)  # which ends the informer before the first sync
        # no checkpoint from here on: readers see the old content or the new, and are told of exactly the difference
        before = indexer.swap(staged, batch.resource_version)
        self._unlisted.discard(batch.namespace)
        if not refused:
            self._not_whole.discard(batch.namespace)
            self._versions.advance(batch.namespace, batch.resource_version)
            self._on_listed(batch.namespace)
        if not is_first:
            await self._processor.distribute_relist(gone + changed)
        elif not self._unlisted:
            self._on_synced()
            self._processor.announce(indexer.snapshot())
        return before, listed


@final
@attrs.define(eq=False)
class ResyncTimer(Generic[T]):
    """Asks for a resync whenever a listener's period is over."""

    _fifo: DeltaFIFO[T]
    _processor: Processor[T]
    _period: float

    async def run(self) -> None:
        """Tick once every check period, until cancelled; returns at once when there is none."""
        if self._period <= 0:
            return
        tick = trio.current_time() + self._period
        while True:
            await trio.sleep_until(tick)
            if self._processor.mark_due(tick):
                self._fifo.resync()
            # A clock that has jumped does not make good for every tick it has missed.
            tick += self._period * (1 + math.floor(max(0.0, trio.current_time() - tick) / self._period))
