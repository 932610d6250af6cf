"""Waiting for caches and handlers without polling, and saying what did not come and why.

Source: client-go ``tools/cache/wait.go`` and ``SyncResult`` of ``informers/factory.go``, which name what is missing;
that they say why is new.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import trio

from ..._util import first_leaf
from ...errors import CacheSyncError, NotSynced
from ...models import KubernetesObject
from ..processor._processor import HandlerRegistration
from ._entry import FactoryEntry

Slot: TypeAlias = FactoryEntry[Any]
Registration: TypeAlias = HandlerRegistration[KubernetesObject]


async def wait_until_synced(entries: Sequence[Slot], registrations: Sequence[Registration], *, deadline: float) -> None:
    """Wait until every cache has been filled and every handler has returned from its initial objects.

    Raises:
        CacheSyncError: The deadline has passed, or something that is waited for has ended.
        RuntimeError: The current task is in a handler's call of one of the informers.
    """
    _refuse_inside_handlers(entries)
    await trio.lowlevel.checkpoint()
    missing: dict[Slot | Registration, None] = {
        **{entry: None for entry in entries if not entry.informer.has_synced},
        **{registration: None for registration in registrations if not registration.has_synced},
    }
    removed: set[Registration] = set()

    async def wait_for(awaited: Slot | Registration, scope: trio.CancelScope) -> None:
        try:
            if isinstance(awaited, FactoryEntry):
                await awaited.informer.wait_until_synced()
            else:
                await awaited.wait_until_synced()
        except trio.ClosedResourceError:
            if not isinstance(awaited, FactoryEntry):  # whose end is for watch() to judge
                removed.add(awaited)
                scope.cancel()
            return
        found(awaited, scope)

    async def watch(entry: Slot, scope: trio.CancelScope) -> None:
        await entry.gone.wait()
        if entry.is_unused:
            found(entry, scope)  # nobody wants it any more
        else:
            scope.cancel()

    def found(awaited: Slot | Registration, scope: trio.CancelScope) -> None:
        missing.pop(awaited, None)
        if not missing:
            scope.cancel()

    if missing:
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = deadline
            for entry in entries:
                nursery.start_soon(watch, entry, nursery.cancel_scope)
            for awaited in missing:
                nursery.start_soon(wait_for, awaited, nursery.cancel_scope)
    # What has ended is told even if it had been filled before.
    late = [_judged(entry) for entry in entries if entry in missing or (entry.has_ended and not entry.is_unused)]
    late += [_judged_handler(each, is_removed=each in removed) for each in registrations if each in missing]
    if late:
        raise CacheSyncError(f"not synced: {'; '.join(map(_in_words, late))}", not_synced=tuple(late))


def _refuse_inside_handlers(entries: Sequence[Slot]) -> None:
    for entry in entries:
        if entry.is_called_from_inside:
            raise RuntimeError(
                f"a handler of the informer of {entry.key} waits for caches inside a call, which others may be waiting "
                "for to return; wait in another task"
            )


def _judged(entry: Slot) -> NotSynced:
    state = entry.informer.state
    return NotSynced(name=str(entry.key), phase=state.phase, error=first_leaf(state.error), since=entry.started_at)


def _judged_handler(registration: Registration, *, is_removed: bool) -> NotSynced:
    statistics = registration.statistics()
    is_busy = statistics.running_call > 0
    phase = "removed" if is_removed else "in a call" if is_busy else "waiting"
    since = trio.current_time() - statistics.running_call if is_busy else math.inf
    return NotSynced(name=statistics.name, phase=phase, error=None, since=since)


def _in_words(late: NotSynced) -> str:
    words = f"{late.name}: {late.phase}"
    if late.error is not None:
        words += f" after {late.error}"
    if late.since < math.inf:
        words += f", for {trio.current_time() - late.since:.0f} s"
    return words
