"""Functions that wait until caches and handlers have synced, without polling.

Source: client-go ``tools/cache/wait.go`` and ``SyncResult`` in ``informers/factory.go``.  Unlike client-go's, the
error says why each cache or handler has not synced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import trio

from ...errors import CacheSyncError
from ...errors._internal import NotSynced
from ...models import KubernetesObject
from ..processor._processor import HandlerRegistration
from ._entry import FactoryEntry

Entry: TypeAlias = FactoryEntry[Any]
Registration: TypeAlias = HandlerRegistration[KubernetesObject]


async def wait_until_synced(
    entries: Sequence[Entry], registrations: Sequence[Registration], *, deadline: float
) -> None:
    """Wait until each cache has synced and each handler has handled its initial objects.

    Raises:
        CacheSyncError: The deadline passed, an informer ended, or a handler was removed.
        RuntimeError: The caller is inside a call to a handler of one of these informers.
    """
    _raise_if_inside_handler(entries)
    await trio.lowlevel.checkpoint()
    missing: dict[Entry | Registration, None] = {
        **{entry: None for entry in entries if not entry.informer.has_synced},
        **{registration: None for registration in registrations if not registration.has_synced},
    }
    removed: set[Registration] = set()

    async def wait_for(awaited: Entry | Registration, scope: trio.CancelScope) -> None:
        try:
            if isinstance(awaited, FactoryEntry):
                await awaited.informer.wait_until_synced()
            else:
                await awaited.wait_until_synced()
        except trio.ClosedResourceError:
            if not isinstance(awaited, FactoryEntry):  # the end of an entry is handled by wait_for_end()
                removed.add(awaited)
                scope.cancel()
            return
        remove_from_missing(awaited, scope)

    async def wait_for_end(entry: Entry, scope: trio.CancelScope) -> None:
        await entry.ended.wait()
        if entry.is_unused:
            remove_from_missing(entry, scope)
        else:
            scope.cancel()

    def remove_from_missing(awaited: Entry | Registration, scope: trio.CancelScope) -> None:
        missing.pop(awaited, None)
        if not missing:
            scope.cancel()

    if missing:
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = deadline
            for entry in entries:
                nursery.start_soon(wait_for_end, entry, nursery.cancel_scope)
            for awaited in missing:
                nursery.start_soon(wait_for, awaited, nursery.cancel_scope)
    # An informer that has ended is reported even if it had synced before.
    not_synced = [
        _describe_entry(each) for each in entries if each in missing or (each.has_ended and not each.is_unused)
    ]
    not_synced += [_describe_handler(each, is_removed=each in removed) for each in registrations if each in missing]
    if not_synced:
        raise CacheSyncError(f"not synced: {'; '.join(map(_in_words, not_synced))}", not_synced=tuple(not_synced))


def _raise_if_inside_handler(entries: Sequence[Entry]) -> None:
    for entry in entries:
        if entry.is_called_from_inside:
            raise RuntimeError(
                f"a handler for {entry.key} must not wait for caches while it is being called, because they may not "
                "sync until the call returns; wait in another task"
            )


def _describe_entry(entry: Entry) -> NotSynced:
    state = entry.informer.state
    return NotSynced(name=str(entry.key), phase=state.phase, error=state.error, since=entry.started_at)


def _describe_handler(registration: Registration, *, is_removed: bool) -> NotSynced:
    statistics = registration.statistics()
    is_in_call = statistics.running_call > 0
    phase = "removed" if is_removed else "in a call" if is_in_call else "waiting"
    since = trio.current_time() - statistics.running_call if is_in_call else math.inf
    return NotSynced(name=statistics.name, phase=phase, error=None, since=since)


def _in_words(item: NotSynced) -> str:
    words = f"{item.name}: {item.phase}"
    if item.error is not None:
        words += f" after {item.error}"
    if item.since < math.inf:
        words += f", for {trio.current_time() - item.since:.0f} s"
    return words
