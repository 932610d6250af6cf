"""Read one open watch: write its events, and notice if it is silent or resumes from an unknown version."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar, final

import attrs
import trio

from ..._retry import MAX_SILENCE, REQUEST_ERRORS, Outcome, Pacing, outcome_of, retry_after
from ...client import WatchEvent
from ...models import KubernetesObject
from .._bad_objects import BadObject
from ._list_watch import EventSource, ListWatch
from ._options import logger
from ._sink import Sink
from ._states import Bookmarks, ServerFacts
from ._status import ReflectorStatus
from ._transform import ObjectTransformer

T = TypeVar("T", bound=KubernetesObject)

DEADLINE_STEP = 1.0
"""Seconds that a deadline may lag behind: moving it for every event of a burst would cost more than the events."""
CHECK_DELAY = 5.0
"""Seconds without an event before the version check of a resumed watch; at random up to twice as many."""
CHECK_AGAIN_AFTER = 30.0
"""Seconds before the next check, if the server did not respond."""
LAST_WORD = 5.0
"""Seconds that a running check may still take when the watch has ended."""


@final
@attrs.define(eq=False)
class Position:
    """The start of the next list or watch."""

    version: str = ""
    """The last resourceVersion; empty before the first list."""
    is_in_order: bool = False
    """Whether later events come in the order of their versions.

    A watch from no specific version begins with all objects, not in the order of their versions.
    """


@final
@attrs.define(eq=False)
class WatchReader(Generic[T]):
    """Reads one watch to its end, and writes its events to the sink.

    Args:
        transformer: Checks and transforms each object.
        sink: Receives each change between two checkpoints, so that cancellation never splits a change.
        status: Updated with each batch of events.
        position: Moved by each event.
        facts: Updated with the first bookmark, or with its absence.
        max_silence: The longest allowed silence after a bookmark, seconds.
    """

    _transformer: ObjectTransformer[T]
    _sink: Sink[T]
    _status: ReflectorStatus
    _position: Position
    _facts: ServerFacts
    _max_silence: float
    _writers: Mapping[str, Callable[[T], None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        sink = self._sink
        self._writers = {"MODIFIED": sink.update, "ADDED": sink.add, "DELETED": sink.delete}

    async def read(self, source: EventSource[T], *, allowed: float) -> Outcome:
        """Write events until the watch ends, or sends nothing for ``allowed`` seconds.

        Returns:
            ENDED or SILENT.

        Raises:
            TrioformerError: The watch broke, or the server sent an error.
        """
        sink, status = self._sink, self._status
        status.record_watch_opened()
        with trio.CancelScope(deadline=trio.current_time() + allowed) as scope:
            while True:
                try:
                    batch = await source.receive_batch()
                except trio.EndOfChannel:
                    return Outcome.ENDED
                # no checkpoint between receiving the events and writing them to the sink
                if self.write(batch):
                    self._facts.bookmarks = Bookmarks.SEEN
                    allowed = self._max_silence
                status.events += len(batch)
                if status.failures:
                    status.record_success()
                if not sink.has_room:
                    scope.deadline = math.inf  # while the sink is full, no data is read
                    status.behind_since = trio.current_time()
                    await sink.wait_for_room()
                    status.behind_since = math.inf
                status.last_contact = now = trio.current_time()
                if scope.deadline > now + allowed or scope.deadline < now + allowed - DEADLINE_STEP:
                    scope.deadline = now + allowed
        self._facts.bookmarks = self._facts.bookmarks.after_silence()
        # Silence is usual with a smaller max_silence, and before the first bookmark of an idle server.
        is_unusual = self._max_silence == MAX_SILENCE and self._facts.bookmarks is Bookmarks.SEEN
        level = logging.WARNING if is_unusual else logging.DEBUG
        logger.log(level, "watch of %s received nothing for %g s; watching again", status.name, allowed)
        return Outcome.SILENT

    def write_bad(self, kind: str, bad: BadObject) -> None:
        """Write an event with a bad object; the watch continues as after any other event."""
        if kind == "DELETED":
            self._sink.delete_key(bad.key, bad.resource_version)
        else:
            self._sink.quarantine(bad)
        position = self._position
        position.is_in_order = position.is_in_order or kind != "ADDED"
        if position.is_in_order:
            position.version = bad.resource_version or position.version

    def write(self, batch: Sequence[WatchEvent[T]]) -> bool:
        """Write events to the sink, and return whether they include a bookmark."""
        process, writers, position = self._transformer.process, self._writers, self._position
        has_bookmark = False
        for kind, obj in batch:
            if kind == "BOOKMARK":
                has_bookmark = True
                self._sink.bookmark(obj.resource_version)
            else:
                processed = process(obj)
                write = writers.get(kind)
                if isinstance(processed, BadObject):
                    self.write_bad(kind, processed)
                    continue
                if processed is None or write is None:
                    if processed is not None:
                        self.write_bad(kind, self._transformer.report_unknown_type(kind, processed))
                    continue
                write(processed)
            position.is_in_order = position.is_in_order or kind != "ADDED"
            if position.is_in_order:
                position.version = obj.resource_version or position.version
        return has_bookmark


@final
@attrs.define(eq=False)
class VersionCheck(Generic[T]):
    """Checks, while a resumed watch is read, that the server has the version from which the watch resumes.

    An event shows this too: a server that was restored from a backup sends none until it has reached the version.
    """

    _source: ListWatch[T]
    _status: ReflectorStatus
    _pacing: Pacing
    _facts: ServerFacts
    _version: str
    _is_requesting: bool = attrs.field(default=False, init=False)

    async def run_beside(self, read: Callable[[], Awaitable[Outcome]], confirm: Callable[[], None]) -> Outcome:
        """Run the watch and the check at the same time.

        Args:
            read: Opens the watch, and reads it to its end.
            confirm: Called when the server is known to have the version.

        Raises:
            StatusError: The server does not have the version.
            TrioformerError: The watch broke, or the server sent an error.
        """
        outcome: Outcome | None = None
        failure: BaseException | None = None

        async def run() -> None:
            nonlocal failure
            try:
                await self._check()
                confirm()
            except Exception as exc:  # noqa: BLE001  # raised where no group is around it
                failure = failure or exc
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, name=f"{self._status.name}: version check")
            try:
                outcome = await read()
            except (Exception, KeyboardInterrupt) as exc:  # noqa: BLE001  # raised where no group is around it
                failure = exc
            # If every watch is shorter than the check, the check must still get its result.
            extra = LAST_WORD if self._is_requesting and failure is None else 0.0
            nursery.cancel_scope.deadline = min(nursery.cancel_scope.deadline, trio.current_time() + extra)
        if failure is not None:
            raise failure
        assert outcome is not None  # only the check cancels the watch, and then there is a failure
        return outcome

    async def _check(self) -> None:
        """Check until the server is known to have the version.

        Raises:
            StatusError: The server does not have the version.
        """
        events = self._status.events
        if self._facts.check_at == math.inf:
            self._facts.check_at = trio.current_time() + CHECK_DELAY * (1 + self._pacing.rng.random())
        while True:
            await trio.sleep_until(self._facts.check_at)
            if self._status.events != events:
                break
            await self._source.wait_to_retry(trio.current_time())
            self._is_requesting = True
            try:
                await self._source.check(resource_version=self._version)
            except REQUEST_ERRORS as error:
                if outcome_of(error) is Outcome.UNAVAILABLE:
                    self._facts.check_at = math.inf
                    raise
                logger.debug("%s: the version of a resumed watch could not be checked: %s", self._status.name, error)
                delay = max(CHECK_AGAIN_AFTER, retry_after(error, self._pacing.rng))
                self._facts.check_at = trio.current_time() + delay * (1 + self._pacing.rng.random())
            else:
                break
            finally:
                self._is_requesting = False
        self._facts.check_at = math.inf
