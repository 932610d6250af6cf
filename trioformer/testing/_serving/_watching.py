"""Watches: a position in the history, moved on by whoever reads it.

Source: apiserver ``pkg/storage/cacher`` (which events a selector makes of a change, when bookmarks are sent, what is
too old) and ``pkg/endpoints/handlers/watch.go``.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias, final

import attrs
import trio

from ...models._internal import decode, dumps
from .._storage._kinds import Served
from .._storage._status import expired, refusal, too_large_resource_version
from .._storage._storage import Change, CompactedError, JSONObject, Storage, Stored, body_of
from ._listing import ListOptions, refuse_bad_watch_revision, revision_number
from ._rendering import Rendering

LAST_BOOKMARK = 2.0
"""Seconds before its end at which a watch is sent its last bookmark."""

End: TypeAlias = Literal["clean", "reset", "stall"]
"""How a watch ends by order: the response ends as it should; the connection breaks; nothing arrives any more."""


def error_frame(status: JSONObject) -> bytes:
    """Encode a Status as the ERROR event that ends a watch."""
    return dumps({"type": "ERROR", "object": status}) + b"\n"


@final
@attrs.define(eq=False)
class _Open:
    """One watch that is being served; ``end`` is set from outside, the watch's own task looks at it."""

    resource: str
    end: End | None = None
    error: bytes = b""


@final
@attrs.define(eq=False)
class Watches:
    """The open watches."""

    _storage: Storage
    _open: set[_Open] = attrs.field(init=False, factory=set)

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def opened(self, resource: str) -> Iterator[_Open]:
        """Count a watch as open while the block runs."""
        watch = _Open(resource)
        self._open.add(watch)
        try:
            yield watch
        finally:
            self._open.discard(watch)

    def end(self, how: End, *, resource: str | None, status: int | None) -> int:
        """End the watches of a resource, or all; returns how many."""
        chosen = [watch for watch in self._open if resource in (None, watch.resource)]
        error = b"" if status is None else error_frame(refusal(status).status)
        for watch in chosen:
            watch.end, watch.error = how, error
        self._storage.wake()
        return len(chosen)


@final
@attrs.frozen
class WatchSettings:
    """What a test may choose about all watches."""

    bookmark_period: float
    """Seconds between bookmarks, for watches that allow them."""
    timeout: float
    """Seconds until a watch without ``timeoutSeconds`` ends."""
    expired_as_status: bool
    """Whether a too old resourceVersion is HTTP 410, not an ERROR event."""


@final
@attrs.define(eq=False)
class Watch:
    """One watch request, from the first look at the storage to the last byte.

    Made, it has its place in the history: no change after that is missed.

    Raises:
        RefusedError: The request is not served at all.
    """

    _storage: Storage
    _served: Served
    _prefix: str
    _options: ListOptions
    _rendering: Rendering
    _settings: WatchSettings
    _initial: list[Stored] = attrs.field(init=False, factory=list)
    _position: int = attrs.field(init=False, default=0)
    _start: int = attrs.field(init=False, default=0)
    """The revision after which changes are sent."""
    _refused: bytes = attrs.field(init=False, default=b"")
    """An ERROR event that is all there is to send."""

    def __attrs_post_init__(self) -> None:
        wanted = revision_number(self._options.resource_version or "0")
        if wanted is None:
            raise refuse_bad_watch_revision(self._options.resource_version)
        resource = self._served.resource
        sends_initial = self._options.send_initial_events
        if sends_initial is None:
            sends_initial = wanted == 0
        elif sends_initial and wanted > self._storage.revision:
            # As a real server: whoever may watch gets a stream, and the refusal is in it.
            self._refused = error_frame(too_large_resource_version(wanted, self._storage.revision).status)
        if sends_initial:
            self._initial = self._storage.snapshot(resource, self._prefix)
        self._start = self._storage.revision if sends_initial or wanted == 0 else wanted
        try:
            self._position = self._storage.position(resource, self._start)
        except CompactedError as exc:
            refused = expired(f"too old resource version: {self._start} ({exc.oldest})")
            if self._settings.expired_as_status:
                raise refused from exc
            self._refused = error_frame(refused.status)

    async def run(self, watch: _Open, send: Callable[[bytes], Awaitable[None]]) -> bool:
        """Send frames until the watch ends.

        Returns:
            Whether the response is to end as it should; if not, the connection is to be broken.

        Cancellation:
            At any time; what was sent was sent.
        """
        if self._refused:
            await send(self._refused)
            return True
        period = self._settings.bookmark_period
        ends = trio.current_time() + (self._options.timeout or self._settings.timeout)
        for stored in self._initial:
            if self._options.selection.matches(stored):
                await send(self._rendering.event("ADDED", self._served, stored))
            if watch.end is not None:
                return await self._end(watch, send)
        self._initial = []
        if self._options.send_initial_events and self._options.bookmarks:
            await send(self._rendering.bookmark(self._served, self._start, ends_initial_events=True))
        bookmark_at = self._next_bookmark(period, ends)
        while trio.current_time() < ends:
            if watch.end is not None:
                return await self._end(watch, send)
            try:
                change = next(iter(self._storage.read(self._served.resource, self._position, 1)), None)
            except CompactedError as exc:
                await send(error_frame(expired(f"too old resource version: {self._start} ({exc.oldest})").status))
                return True
            if change is not None:
                self._position += 1
                frame = self._frame(change)
                if frame:
                    await send(frame)
                else:  # so that a long stretch of what others watch does not hold up the other tasks
                    await trio.lowlevel.checkpoint()
            elif trio.current_time() >= bookmark_at:
                # Everything up to now has been sent.  It is sent although nothing has happened, since on a real server
                # something always does: its own leases keep the revision moving.
                await send(self._rendering.bookmark(self._served, self._storage.revision))
                bookmark_at = self._next_bookmark(period, ends)
            else:
                with trio.move_on_at(min(ends, bookmark_at)):
                    await self._storage.wait(self._served.resource)
        return True

    def _next_bookmark(self, period: float, ends: float) -> float:
        now = trio.current_time()
        last = ends - LAST_BOOKMARK
        return min(now + period, last) if self._options.bookmarks and now < last else math.inf

    @staticmethod
    async def _end(watch: _Open, send: Callable[[bytes], Awaitable[None]]) -> bool:
        if watch.error:
            await send(watch.error)
        if watch.end == "stall":
            await trio.sleep_forever()
        return watch.end == "clean"

    def _frame(self, change: Change) -> bytes:
        """Make the event that a change is to this watch; empty when it is none."""
        if change.revision <= self._start or not change.object.key.startswith(self._prefix):
            return b""
        selection = self._options.selection
        was = change.before is not None and selection.matches(change.before)
        if change.type == "DELETED":
            return self._rendering.event("DELETED", self._served, change.object) if was else b""
        if selection.matches(change.object):
            return self._rendering.event("MODIFIED" if was else "ADDED", self._served, change.object)
        if change.before is None or not was:
            return b""
        # It left the selection: the state that the watcher knows, under the revision of the change.
        obj: JSONObject = decode(b"{" + change.before.body)
        obj["metadata"]["resourceVersion"] = str(change.revision)
        left = Stored(change.object.key, change.revision, body_of(obj))
        return self._rendering.event("DELETED", self._served, left)
