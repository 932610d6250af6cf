"""The source of a divided cache, whose parts begin and end while the cache runs.

One watch follows all parts.  When a part begins, the watch is interrupted, and all parts are listed: a list of the new
part alone would be newer than the others, and the next watch could not follow both.  (At the version that the watch has
reached, it could be a minute old.)

If the server refuses the list, the parts that are cached are watched before it is repeated.

While a list arrives, objects that have not changed are replaced by the cached ones.  Objects of other parts, which a
server may send, too, are dropped.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

import attrs
import trio

from ..._retry import REQUEST_ERRORS, Outcome, outcome_of
from ...client import ObjectList, Undecodable, WatchEvent
from ...client._internal import UndecodableHandler
from ...models import KubernetesObject, key_of
from .._bad_objects import BadObject
from ..reflector._list_watch import ApiListWatch, EventSource, ListAgain, ListWatch
from ..reflector._options import logger
from ..store._delta_fifo import DeltaFIFO, NamespacedSink

if TYPE_CHECKING:
    from ..store._division import Share

T = TypeVar("T", bound=KubernetesObject)

LIST_AGAIN_AFTER: Final = 5.0
"""How long the listed parts are watched after a list for a new part has failed, in seconds."""


@final
@attrs.define(eq=False)
class DividedSource(ListWatch[T]):
    """A source of the objects of the open parts."""

    _name: str
    plain: ApiListWatch[T]
    """The source of the objects of all parts."""
    division: Share
    """The part of each object."""
    select: Callable[[Collection[str], Callable[[T], T | None] | None], ApiListWatch[T]]
    """A function that returns the source of some parts, given their names, and a function that returns the object to
    put into a list for each received one, or None to drop it."""
    cached: Callable[[str], T | None] = attrs.field(default=lambda _: None, init=False)
    """A function that returns the cached object with a key; None for all if the reflector transforms objects."""
    parts: set[str] = attrs.field(factory=set, init=False)
    """The open parts."""
    since: float = attrs.field(default=-math.inf, init=False)
    """When the first of the open parts began; the cache is not stale before its list."""
    listed: set[str] = attrs.field(factory=set, init=False)
    """The parts that have been listed since they began."""
    _listing: set[str] = attrs.field(factory=set, init=False)
    """The parts of the last list that are still open."""
    _requested: frozenset[str] = attrs.field(default=frozenset(), init=False)
    """The parts of the last request."""
    _is_interrupted: bool = attrs.field(default=False, init=False)
    """Whether the last watch ended because a part began or ended, so that the next watch can resume."""
    _list_at: float = attrs.field(default=-math.inf, init=False)
    """When to list again after a list of a new part has failed, while the others are watched."""
    _watching: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _opened: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def name(self) -> str:
        """A name of the objects for messages."""
        return self._name

    @property
    def kind(self) -> type[T]:
        """The class of the objects."""
        return self.plain.kind

    @property
    def supports_watch_list(self) -> bool:
        """Always true: the server sends bookmarks."""
        return True

    def sink(self, fifo: DeltaFIFO[T]) -> PartsSink[T]:
        """Return the sink of the reflector."""
        return PartsSink(fifo, self)

    # --- parts ---

    def open(self, part: str) -> None:
        """Begin a part."""
        if not self.parts:
            self.since = trio.current_time()
        self.parts.add(part)
        self._list_at = -math.inf
        self._opened.set()
        self._watching.cancel()

    def close(self, part: str) -> None:
        """End a part.  Its objects are not written to the sink any more."""
        self.parts.remove(part)
        self.listed.discard(part)
        self._listing.discard(part)
        if not self.parts or self.division.is_filtered is not False:
            self._watching.cancel()  # so that the server sends less

    def take_list(self, objects: Sequence[T]) -> tuple[frozenset[str], Sequence[T]]:
        """Record that the reflector has a complete list; return the listed parts and their objects."""
        parts, part_of = frozenset(self._listing), self.division.part_of
        if parts:
            self.listed = self._listing.copy()
        self._is_interrupted = False
        if parts == self._requested:
            return parts, objects
        return parts, [each for each in objects if part_of(each) in parts]  # a part has ended meanwhile

    # --- the source of a reflector ---

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[T]:
        """List the objects of all parts; wait for the first part."""
        while not self.parts:
            self._opened = trio.Event()
            await self._opened.wait()
        can_resume = self._is_interrupted and bool(self.listed) and resource_version not in ("", "0")
        if can_resume and self.listed == self.parts:
            self._listing.clear()  # parts have ended, and the next watch asks for less
            await self.check(resource_version=resource_version)
            return ObjectList(items=(), resource_version=resource_version)
        self._listing = self.parts.copy()
        self._requested = frozenset(self._listing)
        self.division.is_filtered = None
        try:
            found = await self.select(self._requested, self._keep).list(
                resource_version=resource_version, page_size=page_size, on_undecodable=self._heard(on_undecodable)
            )
        except REQUEST_ERRORS as error:
            if not can_resume or outcome_of(error) not in (Outcome.OVERLOADED, Outcome.FAILED):
                raise
            self._list_at = trio.current_time() + LIST_AGAIN_AFTER
            logger.warning("%s: %s; listing again in %g s", self.name, error, LIST_AGAIN_AFTER)
            self._listing.clear()
            return ObjectList(items=(), resource_version=resource_version)
        if self.division.by != "label" and self.division.is_filtered is None:
            self.division.is_filtered = bool(found.shard_selector)
        return found

    def _keep(self, obj: T) -> T | None:
        """Return what a list contains of an object: the cached one if it is equal, so that memory is freed at once."""
        if self._part_of(obj) not in self._listing:
            return None
        known = self.cached(key_of(obj))
        return known if known == obj else obj

    async def wait_to_retry(self, until: float) -> None:
        """Wait before the next request, coordinated with all other retries of the same client."""
        await self.plain.wait_to_retry(until)

    async def check(self, *, resource_version: str) -> None:
        """List at most one object, and require a state that is not older than ``resource_version``."""
        await self.plain.check(resource_version=resource_version)

    @asynccontextmanager
    async def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        send_initial_events: bool,
        on_undecodable: UndecodableHandler,
    ) -> AsyncGenerator[EventSource[T], None]:
        """Open a watch of the objects of the listed parts, which ends with `ListAgain` when a part begins."""
        deadline = math.inf if self.listed == self.parts else self._list_at
        with trio.CancelScope(deadline=deadline) as self._watching:
            if not self.listed:
                self._watching.cancel()
            await trio.lowlevel.checkpoint_if_cancelled()
            self._requested = frozenset(self.listed)
            async with self.select(self._requested, None).watch(
                resource_version=resource_version,
                timeout_seconds=timeout_seconds,
                send_initial_events=send_initial_events,
                on_undecodable=self._heard(on_undecodable),
            ) as events:
                yield _PartsEvents(self, events)
        if self._watching.cancelled_caught:
            self._is_interrupted = True
            raise ListAgain

    def _heard(self, on_undecodable: UndecodableHandler) -> UndecodableHandler:
        """Return a handler that ignores the objects of other parts, if their keys tell."""

        def heard(found: Undecodable) -> None:
            if self.division.by != "namespace" or not found.key or self.division.part_of_key(found.key) in self.parts:
                on_undecodable(found)

        return heard

    def _part_of(self, obj: T) -> str:
        part = self.division.part_of_received(obj)
        if part not in self._requested and self.division.by != "label":
            self.division.is_filtered = False
        return part

    def own_event(self, event: WatchEvent[T]) -> WatchEvent[T] | None:
        """Return an event if the cache needs it, and otherwise None."""
        if event.type == "BOOKMARK":
            return event
        if self._part_of(event.object) in self.listed:
            return event
        # The object may have been in another part before its label was changed.
        return event._replace(type="DELETED") if self.division.by == "label" else None


@final
@attrs.frozen(eq=False)
class _PartsEvents(Generic[T]):
    """The events of a watch that the cache needs."""

    _source: DividedSource[T]
    _events: EventSource[T]

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events and return those of the open parts."""
        own = map(self._source.own_event, await self._events.receive_batch())
        return [each for each in own if each is not None]


@final
class PartsSink(NamespacedSink[T]):
    """A sink for the reflector of a divided cache; its lists and bookmarks apply to the open parts."""

    def __init__(self, fifo: DeltaFIFO[T], source: DividedSource[T]) -> None:
        super().__init__(fifo, "")
        self._source = source

    def bookmark(self, resource_version: str) -> None:
        """Queue a bookmark for each part that has been listed."""
        for part in self._source.listed:
            self._fifo.bookmark(resource_version, namespace=part)

    def replace(self, objects: Sequence[T], resource_version: str, *, bad: Mapping[str, BadObject]) -> None:
        """Queue a complete list of the open parts, and of the bad objects whose keys do not tell their part."""
        parts, own = self._source.take_list(objects)
        if parts:
            self._fifo.replace(own, resource_version, bad=bad, parts=parts | {""})
