"""The reader of watch-lists (KEP-3157; client-go ``reflector.go`` watchList).

A watch-list is a list at the beginning of a watch.  The server sends an ADDED event for each object, mixed with changes
that occur in the meantime. A bookmark with an annotation marks the end of the list and contains its resourceVersion.

Deadlines are necessary because a server or proxy ignores ``sendInitialEvents`` if it does not know this parameter. The
result is an ordinary watch, which looks like a watch-list that has not ended yet. Each event except a bookmark moves
the deadline, so that a list may have any length. In an ordinary watch of a busy kind, however, changes would move the
deadline forever. The first repeated event of an object shows that all objects have been received. So the end bookmark
must arrive within a minute after this event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar, final

import attrs
import trio

from ...client import WatchEvent
from ...errors import DecodeError, UnexpectedResponseError
from ...models import KubernetesObject
from ._list_watch import EventSource
from ._transform import ListCollector

T = TypeVar("T", bound=KubernetesObject)

FIRST_EVENT_PATIENCE: Final = 30.0
"""The time in seconds within which the first event of a watch-list must arrive."""
NEXT_EVENT_PATIENCE: Final = 10.0
"""The time in seconds within which each further event or the end bookmark must arrive."""
END_PATIENCE: Final = 60.0
"""The time in seconds within which the end bookmark must arrive after the first repeated event of an object."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends a watch-list, with the value ``true``."""


@final
@attrs.frozen
class WatchList(Generic[T]):
    """The objects of a watch-list, and the events that arrived together with its end bookmark."""

    objects: tuple[T, ...]
    """All objects, in the order of their first events."""
    resource_version: str
    """The resourceVersion of the end bookmark."""
    rest: Sequence[WatchEvent[T]]
    """The events that arrived after the bookmark in the same batch, which must be written after the list."""


async def read_watch_list(
    source: EventSource[T], collector: ListCollector[T], on_events: Callable[[int], None]
) -> WatchList[T]:
    """Read a watch-list until its end bookmark.

    Args:
        source: A watch that was opened with ``send_initial_events=True``.
        collector: The collector for the objects.  The source adds undecodable objects to the collector itself.
        on_events: A function that is called with the number of events in each batch.

    Raises:
        UnexpectedResponseError: The next event or the end bookmark did not arrive in time, or the server ended the
            watch before the end bookmark.
        DecodeError: An event has an unknown type.
    """
    began_at = trio.current_time()
    objects = collector.objects
    end_deadline = math.inf
    with suppress(trio.EndOfChannel), trio.CancelScope(deadline=began_at + FIRST_EVENT_PATIENCE) as scope:
        while True:
            batch = await source.receive_batch()
            on_events(len(batch))
            now = trio.current_time()
            has_objects = not batch  # a batch without events follows an undecodable one
            for index, (kind, obj) in enumerate(batch):
                if kind == "BOOKMARK":
                    if obj.metadata.annotations.get(INITIAL_EVENTS_END) == "true":
                        return WatchList(tuple(objects.values()), obj.resource_version, batch[index + 1 :])
                    continue
                has_objects = True
                known = len(objects) + len(collector.bad)
                key = collector.put(obj)
                if not key:
                    continue
                if kind != "ADDED" or len(objects) + len(collector.bad) == known:
                    end_deadline = min(end_deadline, now + END_PATIENCE)
                if kind == "DELETED":
                    collector.delete(key)
                elif kind not in ("ADDED", "MODIFIED"):
                    raise DecodeError(f"a watch-list contains an event of unknown type {kind!r}")
            if has_objects:
                scope.deadline = min(end_deadline, now + NEXT_EVENT_PATIENCE)
    text = f"a watch-list was incomplete after {trio.current_time() - began_at:.0f} s"
    raise UnexpectedResponseError(text, code=200)
