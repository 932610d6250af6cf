"""Watch requests.  Each watch reads the changes from its own position in the history.

Source: apiserver ``pkg/storage/cacher`` (events of a watch with selectors, bookmarks, revisions that are too old) and
``pkg/endpoints/handlers/watch.go``.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal, TypeAlias, final

import attrs
import trio

from ...client._internal import PROTOBUF
from ...models._internal import dumps
from .._storage._conversion_webhooks import views_of
from .._storage._kinds import ServedKind
from .._storage._status import APIStatusError, expired, status_error, too_large_resource_version
from .._storage._storage import Change, CompactedError, JSONObject, Storage, Stored, body_of
from ._listing import ListOptions, revision_number, revision_problem
from ._rendering import SHARED_EVENTS, Rendering
from ._webhook_client import WebhookClient

LAST_BOOKMARK_BEFORE_END = 2.0
"""How many seconds before the end of a watch its last bookmark is sent."""

WatchEnd: TypeAlias = Literal["clean", "reset", "stall"]
"""The end of a watch: a complete response, a broken connection, or silence."""


def error_frame(status: JSONObject) -> bytes:
    """Encode a Status as an ERROR event."""
    return dumps({"type": "ERROR", "object": status}) + b"\n"


@final
@attrs.define(eq=False)
class OpenWatch:
    """An open watch.  :meth:`Watches.end` sets ``end``, which the task of the watch checks."""

    resource: str
    end: WatchEnd | None = None
    error: bytes = b""


@final
@attrs.define(eq=False)
class Watches:
    """The open watches."""

    _storage: Storage
    _open: set[OpenWatch] = attrs.field(init=False, factory=set)

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def register(self, resource: str) -> Iterator[OpenWatch]:
        """Add a watch to the set of open watches while the block runs."""
        watch = OpenWatch(resource)
        self._open.add(watch)
        try:
            yield watch
        finally:
            self._open.discard(watch)

    def end(self, how: WatchEnd, *, resource: str | None, status: int | None) -> int:
        """End all watches, or the watches of one resource, and return their number."""
        chosen = [watch for watch in self._open if resource in (None, watch.resource)]
        error = b"" if status is None else error_frame(status_error(status).status)
        for watch in chosen:
            watch.end, watch.error = how, error
        self._storage.wake()
        return len(chosen)


@final
@attrs.frozen
class WatchSettings:
    """The settings of all watches."""

    bookmark_period: float
    """Seconds between the bookmarks of a watch that allows them."""
    timeout: float
    """Seconds after which a watch without ``timeoutSeconds`` ends."""
    expired_as_status: bool
    """Whether the response to a compacted resourceVersion is HTTP 410 instead of an ERROR event."""
    webhooks: WebhookClient
    """The client that converts objects of kinds with a conversion webhook."""


@final
@attrs.define(eq=False)
class Watch:
    """A watch request.

    The constructor sets the position in the history, so that no later change is missed.

    Raises:
        APIStatusError: The request is rejected before the stream begins.
    """

    _storage: Storage
    _served: ServedKind
    _prefix: str
    _options: ListOptions
    _rendering: Rendering
    _settings: WatchSettings
    _initial: list[Stored] = attrs.field(init=False, factory=list)
    _position: int = attrs.field(init=False, default=0)
    _start: int = attrs.field(init=False, default=0)
    """The revision after which changes are sent."""
    _error: bytes = attrs.field(init=False, default=b"")
    """An ERROR event to send instead of all others, or empty."""

    def __attrs_post_init__(self) -> None:
        requested = revision_number(self._options.resource_version or "0")
        if requested is None:
            raise status_error(500, reason="", message=revision_problem(self._options.resource_version))
        resource = self._served.resource
        sends_initial = self._options.send_initial_events
        if sends_initial is None:
            sends_initial = requested == 0
        elif sends_initial and requested > self._storage.revision:
            # As in kube-apiserver, this error is sent in the stream, not as an HTTP status.
            self._error = error_frame(too_large_resource_version(requested, self._storage.revision).status)
        if sends_initial:
            self._initial = self._storage.snapshot(resource, self._prefix)
        self._start = self._storage.revision if sends_initial or requested == 0 else requested
        try:
            self._position = self._storage.position(resource, self._start)
        except CompactedError as exc:
            error = expired(f"too old resource version: {self._start} ({exc.oldest})")
            if self._settings.expired_as_status:
                raise error from exc
            self._error = error_frame(error.status)

    @property
    def is_protobuf(self) -> bool:
        """Whether the events, which are JSON, are converted to protobuf when they are sent."""
        return self._rendering.accepted.encoding == PROTOBUF

    async def run(self, watch: OpenWatch, send: Callable[[bytes], Awaitable[None]]) -> bool:
        """Send events until the watch ends.

        Returns:
            True to complete the response, or False to break the connection.

        Cancellation:
            This method can be cancelled at any time.
        """
        if self._error:
            await send(self._error)
            return True
        try:
            return await self._run(watch, send)
        except APIStatusError as error:  # a webhook could not convert an object
            await send(error_frame(error.status))
            return True

    async def _run(self, watch: OpenWatch, send: Callable[[bytes], Awaitable[None]]) -> bool:
        period = self._settings.bookmark_period
        ends = trio.current_time() + (self._options.timeout or self._settings.timeout)
        for stored in self._initial:
            stored = await self._view(stored)  # noqa: PLW2901  # the same object
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
                if self._served.conversion_webhook is not None:
                    before = change.before and await self._view(change.before)
                    change = attrs.evolve(change, before=before, object=await self._view(change.object))
                self._position += 1
                frame = self._frame(change)
                if frame:
                    await send(frame)
                else:  # many unselected changes in a row must not block other tasks
                    await trio.lowlevel.checkpoint()
            elif trio.current_time() >= bookmark_at:
                # All changes have been sent.  kube-apiserver sends bookmarks also for kinds without changes, since
                # its own leases keep increasing the revision.
                await send(self._rendering.bookmark(self._served, self._storage.revision))
                bookmark_at = self._next_bookmark(period, ends)
            else:
                with trio.move_on_at(min(ends, bookmark_at)):
                    await self._storage.wait(self._served.resource)
        return True

    async def _view(self, stored: Stored) -> Stored:
        """Return a state in the version of this watch."""
        if self._served.conversion_webhook is None:
            return stored
        return (await self._settings.webhooks.run(lambda _: views_of(self._served, [stored])))[0]

    def _next_bookmark(self, period: float, ends: float) -> float:
        now = trio.current_time()
        last = ends - LAST_BOOKMARK_BEFORE_END
        return min(now + period, last) if self._options.bookmarks and now < last else math.inf

    @staticmethod
    async def _end(watch: OpenWatch, send: Callable[[bytes], Awaitable[None]]) -> bool:
        if watch.error:
            await send(watch.error)
        if watch.end == "stall":
            await trio.sleep_forever()
        return watch.end == "clean"

    def _frame(self, change: Change) -> bytes:
        """Return the encoded event for a change, or empty bytes if this watch does not select the object."""
        if change.revision <= self._start or not change.object.key.startswith(self._prefix):
            return b""
        selection = self._options.selection
        was_selected = change.before is not None and selection.matches(change.before)
        if change.type == "DELETED":
            return self._rendering.event("DELETED", self._served, change.object) if was_selected else b""
        if selection.matches(change.object):
            return self._rendering.event("MODIFIED" if was_selected else "ADDED", self._served, change.object)
        if change.before is None or not was_selected:
            return b""
        return self._rendering.event("DELETED", self._served, _last_selected(change.before, change.object))


@lru_cache(SHARED_EVENTS)
def _last_selected(before: Stored, after: Stored) -> Stored:
    """Return the state of an object before it left a selection, with the revision of that change."""
    obj: JSONObject = before.decoded()
    obj["metadata"]["resourceVersion"] = str(after.revision)
    return Stored(after.key, after.revision, body_of(obj))
