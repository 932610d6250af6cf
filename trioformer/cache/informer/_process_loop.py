"""The process loop, which applies the queued changes to the indexer and notifies the listeners.

While the loop waits for changes, the task of a reflector calls the loop's function, because waking a task for a few
changes takes longer than applying them.

Changes are applied in the order in which they were queued.  So the indexer and the listeners receive each reflector's
changes in the order in which its watch delivered them. No checkpoint separates storing a change from notifying the
listeners.  So cancellation never leaves a stored change without its notifications.

The previous state of a bad object stays in the indexer, and its key is put into quarantine.  The changes of all other
objects are applied, and the resourceVersion of the cache advances.

Source: client-go ``tools/cache/controller.go`` processDeltas.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar, final

import attrs
import trio

from ..._util import Slices
from ...errors import DecodeError, IndexerError
from ...models import KubernetesObject, key_of
from .._bad_objects import BadObject, Quarantined, QuarantineReason
from ..processor._notifications import Added, Deleted, Notification, Released, Updated
from ..processor._processor import PeriodGrid, Processor
from ..store._delta_fifo import Batch, Bookmark, Change, Deletion, DeltaFIFO, Replaced
from ..store._indexer import Indexer, Staged, drain
from ..store._quarantine import Quarantine, StagedQuarantine
from ..store._resource_versions import ResourceVersions
from ._mistakes import Mistakes

if TYPE_CHECKING:
    from ..store._division import Division

T = TypeVar("T", bound=KubernetesObject)
P = ParamSpec("P")
R = TypeVar("R")

MAX_NOTIFICATIONS = 200
"""The number of notifications after which the listeners may run.  It is far below the smallest reasonable buffer
size."""

LOCK_PATIENCE = 0.01
"""Seconds to wait for a reader in another thread, before the other tasks have a turn."""


def is_same_object(old: KubernetesObject, new: KubernetesObject) -> bool:
    """Return whether two objects with the same key have the same uid; a missing uid matches every uid."""
    return old.uid == new.uid or not (old.uid and new.uid)


def changes_between(old: T, new: T) -> tuple[Notification[T], ...]:
    """Return the notifications for a change: an update, or a deletion and an addition if the uid differs."""
    if is_same_object(old, new):
        return (Updated(old, new),)
    return (Deleted(old, is_stale=True), Added(new))


@final
@attrs.define(eq=False)
class ProcessLoop(Generic[T]):
    """The loop that applies changes; no other task changes the objects of the indexer.

    Args:
        fifo: The queue of changes.
        indexer: The indexer that stores the objects.
        processor: The processor that notifies the listeners.
        versions: The resourceVersions that the indexer has reached.  The cache has synced when all parts in
            ``versions`` have been listed.
        quarantine: The quarantine for the keys of bad objects.
        division: What divides the cache into parts, or None if there is only one part.
        ends_on_mistakes: Whether to raise an error if the transform or an index function fails on every object of the
            first list.
        on_synced: A function that is called when all parts have been listed.
        on_undecodable: A function that is called with the part, the object and the error when an index function
            cannot decode a field.
    """

    _fifo: DeltaFIFO[T]
    _indexer: Indexer[T]
    _processor: Processor[T]
    _versions: ResourceVersions
    _quarantine: Quarantine
    _division: Division | None
    _ends_on_mistakes: bool = attrs.field(kw_only=True, alias="ends_on_mistakes")
    _on_synced: Callable[[], None] = attrs.field(kw_only=True, alias="on_synced")
    _on_undecodable: Callable[[str, T, DecodeError], None] = attrs.field(kw_only=True, alias="on_undecodable")
    _unlisted: set[str] = attrs.field(factory=set, init=False)
    _mistakes: Mistakes = attrs.field(factory=Mistakes, init=False)
    _apply_slice: Callable[[list[Change[T]], int], int] = attrs.field(init=False)
    """Applies changes until it is time for a checkpoint, and returns their number."""
    _swap: Callable[
        [Replaced[T], Staged[T], StagedQuarantine], tuple[Staged[T], dict[str, Quarantined], list[T]] | None
    ] = attrs.field(init=False)
    """Makes the staged content visible, and returns the previous content and the objects that became bad.

    None: a reader holds the lock."""

    def __attrs_post_init__(self) -> None:
        self._apply_slice, self._swap = self._apply_changes, self._swap_content
        self._fifo.apply_now = self._apply_now

    def hold(self, lock: threading.RLock) -> None:
        """Hold a lock during each step that changes the cache, because other threads read the cache."""
        self._apply_slice, self._swap = _holding(lock, self._apply_slice, 0), _holding(lock, self._swap, None)

    def begin(self) -> None:
        """Begin with the first lists; a divided cache may have no parts yet, and is then complete."""
        self._unlisted = set(self._versions.namespaces)
        if not self._unlisted:
            self._end_first_list()

    def _end_first_list(self) -> None:
        self._on_synced()
        self._processor.distribute_initial(self._indexer.snapshot())

    async def run(self) -> None:
        """Apply batches from the queue until cancelled."""
        batch: Batch[T] | None
        while True:
            batch = await self._fifo.pop()
            if isinstance(batch, list):
                await self._apply(batch)
            elif isinstance(batch, Replaced):
                before, listed, marks = await self._replace(batch)
                batch = None  # its tuple would keep all objects alive, and free them in one step
                await before.release()
                await drain(listed)
                await drain(marks)
            else:
                self._processor.distribute_resync(self._indexer.snapshot())
            batch = None  # it would keep its objects alive until the next batch
            await self._processor.wait_for_backlogs()

    async def _apply(self, batch: list[Change[T]]) -> None:
        applied = self._apply_slice(batch, 0)
        while applied < len(batch):
            # Listeners take the notifications, so that fast listeners keep up with a burst.
            await self._processor.wait_for_backlogs()
            await trio.lowlevel.checkpoint()
            applied += self._apply_slice(batch, applied)

    def _apply_now(self, batch: list[Change[T]]) -> int:
        """Apply the first changes of a batch in the task of a reflector while :meth:`run` waits for a batch.

        Returns:
            The number of changes that were applied; 0 if a listener with ``overflow="block"`` has no room for them, or
            if a reader holds the lock.
        """
        most = min(2 * len(batch), MAX_NOTIFICATIONS + 1)  # a change has at most two notifications
        return self._apply_slice(batch, 0) if self._processor.has_room(most) else 0

    def _apply_changes(self, batch: list[Change[T]], begin: int) -> int:
        notifications: list[Notification[T]] = []
        slices: Slices | None = None
        version, known, position = "", 0, begin
        for change in islice(batch, begin, None):
            # no checkpoint here: the indexer, its version and the notifications change together
            self._apply_one(change, notifications)
            if self._division is not None:
                self._versions.advance(self._part_of(change), change.resource_version)
            else:
                version = change.resource_version or version
            position += 1
            count = len(notifications)
            if count == known:  # comparing many unchanged objects takes long
                slices = slices or Slices()
                if slices.is_over():
                    break
            elif count >= MAX_NOTIFICATIONS:
                break
            known = count
        if version:
            self._versions.advance("", version)
        self._distribute(notifications)
        return position - begin

    def _apply_one(self, change: Change[T], notifications: list[Notification[T]]) -> None:
        if isinstance(change, KubernetesObject):
            key = key_of(change)
            try:
                self._put(key, change, notifications)
            except IndexerError as error:
                self.quarantine(change, error)
        elif isinstance(change, Deletion):
            self._delete(change, notifications)
        elif not isinstance(change, Bookmark):
            self._quarantine.add(change, is_stored=self._indexer.get(change.key) is not None)

    def _part_of(self, change: Change[T]) -> str:
        """Return the part of the change's reflector, or an empty string if there is only one reflector."""
        if isinstance(change, Bookmark):
            return change.namespace
        if self._division is None:
            return ""
        obj = change.object if isinstance(change, Deletion) else change
        if isinstance(obj, KubernetesObject):
            return self._division.part_of(obj)
        return self._division.part_of_key(change.key if obj is None or isinstance(change, Deletion) else obj.key)

    def quarantine(self, obj: T, error: IndexerError) -> None:
        """Put an object into quarantine because an index function failed on it."""
        bad = self._bad_object(obj, error)
        self._quarantine.add(bad, is_stored=self._indexer.get(bad.key) is not None)

    def _bad_object(self, obj: T, error: IndexerError) -> BadObject:
        """Return a description of an object that cannot be indexed, and report the object if it cannot be decoded."""
        if isinstance(error.__cause__, DecodeError):
            self._on_undecodable(self._part_of(obj), obj, error.__cause__)
            return BadObject(key_of(obj), QuarantineReason.UNDECODABLE, error.__cause__, obj.resource_version)
        return BadObject(key_of(obj), QuarantineReason.INDEX_FAILED, error, obj.resource_version)

    def _distribute(self, notifications: list[Notification[T]]) -> None:
        # A cache of several parts distributes all objects as initial at its first sync, and nothing before.
        if not self._unlisted:
            self._processor.distribute(notifications)

    def _put(self, key: str, new: T, notifications: list[Notification[T]]) -> None:
        indexer = self._indexer
        old = indexer.get(key)
        if old is None:
            indexer.put(key, new)
            notifications.append(Added(new))
        elif old != new:  # also true for the same version with another default or conversion
            indexer.put(key, new)
            if old.uid == new.uid:  # almost always
                notifications.append(Updated(old, new))
            else:
                notifications.extend(changes_between(old, new))
        elif key in self._quarantine.entries:
            indexer.put(key, old)  # tries the index functions again
        if self._quarantine.entries:
            self._quarantine.discard(key)

    def _delete(self, change: Deletion[T], notifications: list[Notification[T]]) -> None:
        key, last = change.key, change.object
        old = self._indexer.get(key)
        if old is not None:
            self._indexer.remove(key)
            if self._division is not None:
                self._division.record_deletion(old)
            # The stored object is older than the deletion if its successor with another uid was deleted, or if a state
            # in between is in quarantine, which may have had another owner to reconcile.
            if last is not None and is_same_object(old, last) and key not in self._quarantine.entries:
                notifications.append(Deleted(last))
            else:
                notifications.append(Deleted(old, is_stale=True))
        self._quarantine.discard(key)

    async def _replace(self, batch: Replaced[T]) -> tuple[Staged[T], dict[str, T], dict[str, Quarantined]]:
        """Replace the content of the indexer with the listed objects.

        Returns:
            The previous content, the listed objects by key, and the previous entries of the quarantine, which the
            caller must free in slices.
        """
        indexer, parts, division = self._indexer, batch.parts, self._division
        is_first = bool(self._unlisted)
        bad = dict(batch.bad)
        content: list[T] = []
        gone: list[Notification[T]] = []
        changed: dict[str, tuple[Notification[T], ...]] = {}
        slices = Slices(8)
        listed: dict[str, T] = {}
        for obj in batch.objects:
            listed[key_of(obj)] = obj
            if slices.is_over():
                await slices.checkpoint()
        for key in indexer.keys():  # noqa: SIM118  # a tuple, not a dict's view
            if key not in listed and (known := indexer.get(key)) is not None:
                if key in bad or (division is not None and division.part_of(known) not in parts):
                    content.append(known)
                elif batch.is_release:
                    gone.append(Released(known))
                else:
                    gone.append(Deleted(known, is_stale=True))
                    if division is not None:
                        division.record_deletion(known)
            if slices.is_over():
                await slices.checkpoint()
        slices = Slices(1 if len(indexer) else 8)  # comparing objects takes long
        for key, obj in listed.items():
            old = indexer.get(key)
            if old is not None and old == obj:
                content.append(old)  # keeps the decoded fields
            else:
                content.append(obj)
                if old is not None:
                    changed[key] = changes_between(old, obj)
                elif not is_first:
                    is_initial = division is not None and self._versions.is_unlisted(division.part_of(obj))
                    changed[key] = (Added(obj, is_initial=is_initial),)
            if slices.is_over():
                await slices.checkpoint()
        staged, failed = await indexer.stage(content, self._quarantine.entries)
        if self._ends_on_mistakes and not self._unlisted.isdisjoint(parts):
            errors = (*(each.error for each in batch.bad.values()), *(error for _, error in failed))
            self._mistakes.record_list(len(listed), errors)
            if self._unlisted.issubset(parts):
                self._mistakes.raise_if_any(len(self._indexer))
        for obj, error in failed:
            bad[key_of(obj)] = self._bad_object(obj, error)
            changed.pop(key_of(obj), None)
            if slices.is_over():
                await slices.checkpoint()
        stays = None if division is None else (lambda key: key not in listed and division.part_of_key(key) not in parts)
        marks = await self._quarantine.stage(bad, staged.items, stays)
        while (swapped := self._swap(batch, staged, marks)) is None:
            await trio.lowlevel.checkpoint()
        # no checkpoint from here on: readers see the old or the new content, and listeners get exactly the difference
        before, before_marks, failed_late = swapped
        for obj in failed_late:
            changed.pop(key_of(obj), None)
        if not is_first:
            await self._processor.distribute_relist([*gone, *chain.from_iterable(changed.values())])
        elif not self._unlisted:
            self._end_first_list()
        return before, listed, before_marks

    def _swap_content(
        self, batch: Replaced[T], staged: Staged[T], marks: StagedQuarantine
    ) -> tuple[Staged[T], dict[str, Quarantined], list[T]]:
        before, failed = self._indexer.swap(staged, self._quarantine.entries)
        before_marks = self._quarantine.swap(marks)
        for obj, error in failed:
            self.quarantine(obj, error)
        self._unlisted.difference_update(batch.parts)
        for part in batch.parts:
            if batch.is_release:
                self._versions.end_removal(part)
            else:
                self._versions.advance(part, batch.resource_version)
        return before, before_marks, [obj for obj, _ in failed]


def _holding(lock: threading.RLock, function: Callable[P, R], otherwise: R) -> Callable[P, R]:
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # The reader's thread may be waiting for trio, in the handler of a signal or in a finalizer.
        if not lock.acquire(timeout=LOCK_PATIENCE):
            return otherwise
        try:
            return function(*args, **kwargs)
        finally:
            lock.release()

    return call


@final
@attrs.define(eq=False)
class ResyncTimer(Generic[T]):
    """A timer that queues a resync when the resync period of a listener has passed."""

    _fifo: DeltaFIFO[T]
    _processor: Processor[T]
    _period: float

    async def run(self) -> None:
        """Check the listeners once in each period until cancelled; return immediately if the period is 0."""
        if self._period <= 0:
            return
        checks, number = PeriodGrid(trio.current_time(), self._period), 0
        while True:
            # After a jump of the clock, skip the missed checks.
            number = max(number, checks.passed(trio.current_time())) + 1
            await trio.sleep_until(checks.time_of(number))
            if self._processor.mark_due(trio.current_time()):
                self._fifo.resync()
