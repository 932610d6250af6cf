"""The process loop: applies the changes of the queue to the indexer, and notifies the listeners.

A change is stored first and distributed next, without a checkpoint in between: so a cancelled informer never holds a
change in its indexer that was not distributed.

A change that the indexer cannot store, because an index function fails on it, is reported and requested again by a new
list: the indexer keeps the previous state, and all other changes are applied.

Source: client-go ``tools/cache/controller.go`` processDeltas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, final

import attrs
import trio

from ..._util import Slices
from ...errors import DecodeError, IndexerError
from ...models import KubernetesObject, key_of
from ..processor._notifications import Added, Deleted, Notification, Updated, object_of
from ..processor._processor import PeriodGrid, Processor
from ..store._delta_fifo import DELETED, Delta, DeltaFIFO, Deltas, Replaced
from ..store._indexer import Indexer, Staged, drain
from ..store._resource_versions import ResourceVersions

T = TypeVar("T", bound=KubernetesObject)

MAX_NOTIFICATIONS = 200
"""Notifications after which the listeners get a turn; well below the smallest reasonable buffer size."""


def is_same_state(old: KubernetesObject, new: KubernetesObject) -> bool:
    """Whether two objects of one key are the same state of the same object."""
    return old.resource_version == new.resource_version != "" and old.uid == new.uid


def is_same_object(old: KubernetesObject, new: KubernetesObject) -> bool:
    """Whether two objects of one key are states of the same object; a missing uid matches every uid."""
    return old.uid == new.uid or not (old.uid and new.uid)


def changes_between(old: T, new: T) -> tuple[Notification[T], ...]:
    """Return the notifications that lead from ``old`` to ``new``; for a new uid a deletion and an addition."""
    if is_same_object(old, new):
        return (Updated(old, new),)
    return (Deleted(old, is_stale=True), Added(new))


@final
@attrs.define(eq=False)
class ProcessLoop(Generic[T]):
    """The only task that changes the objects of the indexer.

    Args:
        fifo: The queue of changes.
        indexer: Where changes are stored.
        processor: Notifies the listeners.
        versions: Records how new the indexer is; its namespaces are those that must be listed for the first sync.
        on_synced: Called when all namespaces have been listed.
        on_listed: Called with the namespace when a whole list has been stored.
        on_index_errors: Called with a namespace and the errors of the index functions in one list or one batch of
            changes.
        on_undecodable: Called with a namespace and an object that an index function could not decode.
    """

    _fifo: DeltaFIFO[T]
    _indexer: Indexer[T]
    _processor: Processor[T]
    _versions: ResourceVersions
    _on_synced: Callable[[], None] = attrs.field(kw_only=True, alias="on_synced")
    _on_listed: Callable[[str], None] = attrs.field(kw_only=True, alias="on_listed")
    _on_index_errors: Callable[[str, Sequence[IndexerError]], None] = attrs.field(kw_only=True, alias="on_index_errors")
    _on_undecodable: Callable[[str, T, DecodeError], None] = attrs.field(kw_only=True, alias="on_undecodable")
    _unlisted: set[str] = attrs.field(init=False)
    _has_several_namespaces: bool = attrs.field(init=False)
    _incomplete: set[str] = attrs.field(factory=set, init=False)
    """Namespaces of which the indexer lacks changes because of an index function."""

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
                del batch  # its tuple would keep the objects alive until they are all freed in one step
                await before.release()
                await drain(listed)
            else:
                self._processor.distribute_resync(self._indexer.snapshot())
            await self._processor.wait_for_backlogs()

    async def _apply(self, batch: Deltas[T]) -> None:
        notifications: list[Notification[T]] = []
        errors: dict[str, list[IndexerError]] = {}
        for key, deltas in batch.by_key.items():
            for delta in deltas:
                # no checkpoint between these two: the indexer and the notifications change together
                try:
                    self._apply_one(key, delta, notifications)
                except IndexerError as error:
                    namespace = key.partition("/")[0] if self._has_several_namespaces else ""
                    if not self._report_if_undecodable(namespace, delta.object, error):
                        errors.setdefault(namespace, []).append(error)
                if len(notifications) >= MAX_NOTIFICATIONS:
                    await self._flush(notifications)
        self._distribute(notifications)
        self._incomplete |= errors.keys()
        for namespace, version in batch.resource_versions.items():
            # An indexer that lacks a change is not as new as the batch, until a list has brought the change again.
            if namespace not in self._incomplete:
                self._indexer.advance(version)
                self._versions.advance(namespace, version)
        for namespace, failed in errors.items():
            self._on_index_errors(namespace, failed)

    def _report_if_undecodable(self, namespace: str, obj: T, error: IndexerError) -> bool:
        """Report an object if it does not decode, which another list would not change; return whether it is one."""
        if isinstance(error.__cause__, DecodeError):
            self._on_undecodable(namespace, obj, error.__cause__)
            return True
        return False

    def _distribute(self, notifications: list[Notification[T]]) -> None:
        # Before the first sync of a cache made of several namespaces, all objects will be distributed as initial.
        if not self._unlisted:
            self._processor.distribute(notifications)

    async def _flush(self, notifications: list[Notification[T]]) -> None:
        """Distribute the notifications and let the listeners take them: a burst must not outrun a fast listener."""
        self._distribute(notifications)
        notifications.clear()
        await self._processor.wait_for_backlogs()
        await trio.lowlevel.checkpoint()

    def _apply_one(self, key: str, delta: Delta[T], notifications: list[Notification[T]]) -> None:
        indexer = self._indexer
        new = delta.object
        old = indexer.get(key)
        if delta.type is DELETED:
            indexer.advance(new.resource_version)
            if old is not None:
                indexer.remove(key)
                # If a successor with another uid was deleted, the stored object was deleted before, at an unknown time.
                notifications.append(Deleted(new) if is_same_object(old, new) else Deleted(old, is_stale=True))
        elif old is None:
            indexer.put(key, new)
            notifications.append(Added(new))
        elif not is_same_state(old, new):
            indexer.put(key, new)
            notifications.extend(changes_between(old, new))

    async def _replace(self, batch: Replaced[T]) -> tuple[Staged[T], dict[str, T]]:
        """Replace the content of the indexer by a list.

        Returns:
            What is no longer needed and must be released in slices: the previous content, and the list by key.
        """
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
                content.append(old)  # keeps the decoded fields
            else:
                content.append(obj)
                if old is not None:
                    changed.extend(changes_between(old, obj))
                elif not is_first:
                    changed.append(Added(obj))
            if slices.is_over():
                await slices.checkpoint()
        staged, failed = await indexer.stage(content)
        errors: list[IndexerError] = []
        if failed:
            errors = [error for obj, error in failed if not self._report_if_undecodable(batch.namespace, obj, error)]
            not_stored = {key_of(obj) for obj, _ in failed}
            changed = [each for each in changed if key_of(object_of(each)) not in not_stored]
        if errors:
            self._incomplete.add(batch.namespace)
            self._on_index_errors(batch.namespace, errors)  # ends the informer if it has not synced
        # no checkpoint from here on: readers see the old content or the new, and listeners get exactly the difference
        before = indexer.swap(staged, batch.resource_version)
        self._unlisted.discard(batch.namespace)
        if not errors:
            self._incomplete.discard(batch.namespace)
            self._versions.advance(batch.namespace, batch.resource_version)
            self._on_listed(batch.namespace)
        if not is_first:
            await self._processor.distribute_relist(gone + changed)
        elif not self._unlisted:
            self._on_synced()
            self._processor.distribute_initial(indexer.snapshot())
        return before, listed


@final
@attrs.define(eq=False)
class ResyncTimer(Generic[T]):
    """Queues a resync whenever the resync period of a listener has passed."""

    _fifo: DeltaFIFO[T]
    _processor: Processor[T]
    _period: float

    async def run(self) -> None:
        """Check the listeners once every ``period`` seconds, until cancelled; return immediately if it is 0."""
        if self._period <= 0:
            return
        checks, number = PeriodGrid(trio.current_time(), self._period), 0
        while True:
            # After a jump of the clock the missed checks are skipped.
            number = max(number, checks.passed(trio.current_time())) + 1
            await trio.sleep_until(checks.time_of(number))
            if self._processor.mark_due(trio.current_time()):
                self._fifo.resync()
