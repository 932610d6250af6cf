"""The reader of a watch, which writes events to the sink, and the version check of a resumed watch."""

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
"""The precision of a deadline in seconds.  Moving the deadline for each event of a burst would be too slow."""
CHECK_DELAY = 5.0
"""The delay of the version check of a resumed watch, in seconds.  The actual delay is random, up to twice as long."""
CHECK_AGAIN_AFTER = 30.0
"""The delay of the next check if the server did not respond, in seconds."""
LAST_WORD = 5.0
"""How long a running check may continue after the watch has ended, in seconds."""


@final
@attrs.define(eq=False)
class Position:
    """The position from which the next list or watch starts."""

    version: str = ""
    """The last resourceVersion; empty before the first list."""
    is_in_order: bool = False
    """Whether all later events arrive in the order of their versions.

    A watch without a specific resourceVersion begins with all objects, which are not in the order of their versions.
    """


@final
@attrs.define(eq=False)
class WatchReader(Generic[T]):
    """A reader that writes the events of a watch to the sink.

    Args:
        transformer: The transformer that checks and transforms each object.
        sink: The sink for the events.  Each event is written without a checkpoint, so cancellation never splits a
            change.
        status: The status of the reflector, which is updated with each batch of events.
        position: The position of the reflector, which is updated with each event.
        facts: The facts about the server, which are updated with the first bookmark or its absence.
        max_silence: The longest allowed silence after a bookmark, in seconds.
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
        """Write events to the sink until the watch ends or delivers nothing for ``allowed`` seconds.

        Returns:
            ``Outcome.ENDED`` or ``Outcome.SILENT``.

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
        logger.log(level, "no data from the watch of %s for %g s; watching again", status.name, allowed)
        return Outcome.SILENT

    def write_bad(self, kind: str, bad: BadObject) -> None:
        """Write an event with a bad object to the sink."""
        if kind == "DELETED":
            self._sink.delete_key(bad.key, bad.resource_version)
        else:
            self._sink.quarantine(bad)
        position = self._position
        position.is_in_order = position.is_in_order or kind != "ADDED"
        if position.is_in_order:
            position.version = bad.resource_version or position.version

    def write(self, batch: Sequence[WatchEvent[T]]) -> bool:
        """Write events to the sink, and return whether there is a bookmark among them."""
        self._sink.hold()
        try:
            return self._write(batch)
        finally:
            self._sink.release()

    def _write(self, batch: Sequence[WatchEvent[T]]) -> bool:
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
    """A check that the server has reached the resourceVersion from which a watch resumes.

    The check runs while the watch is being read, and ends at the first event.  A server that was restored from a backup
    sends no events until it has reached the version.
    """

    _source: ListWatch[T]
    _status: ReflectorStatus
    _pacing: Pacing
    _facts: ServerFacts
    _version: str
    _is_requesting: bool = attrs.field(default=False, init=False)

    async def run_beside(self, read: Callable[[], Awaitable[Outcome]], confirm: Callable[[], None]) -> Outcome:
        """Run the watch and the check concurrently, and return the outcome of the watch.

        Args:
            read: An async function that opens the watch, and reads it until it ends.
            confirm: A function that is called when the server is known to have reached the version.

        Raises:
            StatusError: The server has not reached the version.
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
        """Repeat the check until the server is known to have reached the version.

        Raises:
            StatusError: The server has not reached the version.
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
