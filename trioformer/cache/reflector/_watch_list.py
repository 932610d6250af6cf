"""A list that comes as the beginning of a watch (KEP-3157; client-go ``reflector.go`` watchList).

Everything there is comes as ADDED events, mixed with what happens meanwhile, and then a bookmark with an annotation
says that this was all, and at which resourceVersion.

Why a deadline: a server or proxy that does not know ``sendInitialEvents`` ignores it, and what it then sends looks like
a stream whose end is still to come.  Each event moves the deadline, so that no list is too long.
But when an event concerns an object that has come already, everything else has come too, and a busy kind would go on
moving the deadline for as long as the watch lives: from then on the end has a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar, final

import attrs
import trio

from ...client import WatchEvent
from ...errors import DecodeError
from ...models import KubernetesObject, key_of
from ._list_watch import EventSource

T = TypeVar("T", bound=KubernetesObject)

FIRST_EVENT_PATIENCE: Final = 30.0
"""Seconds that a streamed list may take to begin."""
NEXT_EVENT_PATIENCE: Final = 10.0
"""Seconds that it may pause after each event; its end bookmark follows its last event at once."""
END_PATIENCE: Final = 60.0
"""Seconds that the end bookmark may take after the first event that is no object's first."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark after a streamed list; only the value ``true`` counts."""


@final
@attrs.frozen
class WatchList(Generic[T]):
    """What a stream had brought when its end bookmark came."""

    objects: tuple[T, ...]
    """Everything that exists, in the order in which it first came."""
    resource_version: str
    """The end bookmark's."""
    rest: Sequence[WatchEvent[T]]
    """Events that arrived together with the bookmark, and belong after the list."""


async def read_watch_list(
    source: EventSource[T], take: Callable[[T], T | None], progress: Callable[[int], None]
) -> WatchList[T] | None:
    """Gather a streamed list up to its end bookmark.

    Args:
        source: A watch that was opened with ``send_initial_events``.
        take: Checks and transforms each object; None leaves it out.
        progress: Told of how many events have come, whenever some have.

    Returns:
        The list, or None when nothing has come for too long.

    Raises:
        trio.EndOfChannel: The stream has ended before.
        DecodeError: An event is of a type that there is not.
    """
    gathered: dict[str, T] = {}
    latest = math.inf
    with trio.CancelScope(deadline=trio.current_time() + FIRST_EVENT_PATIENCE) as guard:
        while True:
            batch = await source.receive_batch()
            progress(len(batch))
            now = trio.current_time()
            for index, (kind, obj) in enumerate(batch):
                if kind == "BOOKMARK":
                    if obj.metadata.annotations.get(INITIAL_EVENTS_END) == "true":
                        return WatchList(tuple(gathered.values()), obj.resource_version, batch[index + 1 :])
                    continue
                taken = take(obj)
                if taken is None:
                    continue
                key = key_of(taken)
                if kind != "ADDED" or key in gathered:
                    latest = min(latest, now + END_PATIENCE)
                if kind == "DELETED":
                    gathered.pop(key, None)
                elif kind in ("ADDED", "MODIFIED"):
                    gathered[key] = taken
                else:
                    raise DecodeError(f"an event of unknown type {kind!r} came")
            guard.deadline = min(latest, now + NEXT_EVENT_PATIENCE)
    return None
