"""The reflector, which keeps a sink up to date with the server (client-go ``tools/cache/reflector.go``).

The reflector lists once, and then watches from the resourceVersion of the list. Its loop sends the request of the
current state, and then takes the step that ``_states.py`` defines for the request's outcome. The module
``_retry/_pacing.py`` decides when the next request is sent.

Permanent errors before the first list end the reflector after ``ReflectorOptions.grace_period``, unless
``ReflectorOptions.retry_forever`` is set.

If an object is bad, the reflector writes its key to the sink and continues the watch. If the bad object has no key, the
list or watch fails, as in client-go.

A watch over a dead connection looks like a watch without changes. So the client probes the server when a watch has
been silent for 30 s (``transport/policy/_liveness.py``). The probe cannot detect a single dead connection if other
connections work.  The server sends a bookmark about once a minute.  If an expected bookmark does not arrive, the
reflector treats the connection as dead.  If no bookmarks are expected, it does so when the watch has outlasted its
timeout.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar, cast, final

import attrs
import trio

from ..._retry import (
    END_GRACE,
    MAX_SILENCE,
    REQUEST_ERRORS,
    Outcome,
    Pacing,
    Wait,
    outcome_of,
    retry_after,
    watch_timeout,
)
from ..._surroundings import new_generator
from ..._util import remove_frames
from ...client import Undecodable
from ...client._internal import PAGE_SIZE
from ...errors import ConnectionFailedError, TrioformerError
from ...models import KubernetesObject
from .._bad_objects import BadObject, QuarantineReason
from ._list_watch import EventSource, ListAgain, ListWatch
from ._options import ReflectorOptions
from ._sink import Sink
from ._states import LISTS, TRANSITIONS, WATCHES, Bookmarks, ServerFacts, State
from ._status import InformerPhase, ReflectorStatistics, ReflectorStatus
from ._transform import ListCollector, ObjectTransformer, Transform, within
from ._watch_list import read_watch_list
from ._watch_reader import Position, VersionCheck, WatchReader

T = TypeVar("T", bound=KubernetesObject)

FIRST_BOOKMARK_PATIENCE = 100.0
"""The time in seconds within which the first bookmark of a watch arrives, if the server sends bookmarks."""
SHORT_WATCH_MARGIN = 6
"""The smallest difference in seconds between ``timeoutSeconds`` and a ``max_silence`` below the default."""


class Result(NamedTuple):
    """The outcome of a request, and its error if it failed."""

    outcome: Outcome
    error: TrioformerError | None = None


@final
class Reflector(Generic[T]):
    """A loop that lists and watches a source, and writes the objects to a sink.

    Args:
        list_watch: The source of the objects.
        sink: The sink for the objects.  Each change is written without a checkpoint, so cancellation never splits a
            change.
        options: The options for listing, watching and handling failures.
        transform: A function that is applied to each object exactly once, before the object is written to the sink.
        namespace: The namespace of all objects.  The default, an empty string, permits any namespace.
        rng: The random number generator for watch timeouts and backoff.
    """

    def __init__(
        self,
        list_watch: ListWatch[T],
        sink: Sink[T],
        options: ReflectorOptions | None = None,
        *,
        transform: Transform[T] | None = None,
        namespace: str = "",
        rng: random.Random | None = None,
    ) -> None:
        self._source = list_watch
        self._sink = sink
        self._namespace = namespace
        self._options = options = options if options is not None else ReflectorOptions()
        self._status = ReflectorStatus(list_watch.name, options)
        kind = list_watch.kind or cast("type[T]", KubernetesObject)
        transformer = ObjectTransformer(kind, transform, self.report_undecodable, namespace)
        self._collector = ListCollector(transformer)
        rng = rng if rng is not None else new_generator()
        self._pacing = Pacing(options.backoff, rng)
        # The end of a watch-list is a bookmark.
        self._facts = ServerFacts(Bookmarks.EXPECTED if list_watch.supports_watch_list else Bookmarks.UNKNOWN)
        self._position = Position()
        self._relist = State.WATCH_LIST if options.watch_list and list_watch.supports_watch_list else State.LIST
        self._state = self._relist
        self._reader = WatchReader(transformer, sink, self._status, self._position, self._facts, options.max_silence)

    def statistics(self) -> ReflectorStatistics:
        """Return statistics about the reflector.

        The result has the fields ``phase``, ``last_error``, ``failures_in_a_row``, ``retry_at``, ``last_contact``,
        ``up_to_date_at``, ``lists``, ``watches``, ``events``, ``undecodable`` and ``resource_version``.  Times are on
        trio's clock.
        """
        return self._status.statistics(self._position.version)

    async def run(self) -> None:
        """List and watch until cancelled, and retry after failures.

        Raises:
            StatusError: The server responded only with permanent errors during the grace period before the first list.
            ConnectionFailedError: The server's certificate was not valid during the grace period before the first list.
        """
        while True:
            await self._take_step(await self._send_request())

    def report_undecodable(self, found: Undecodable) -> None:
        """Count and report an undecodable object; log it only if it is not written to the sink."""
        self._status.undecodable += 1
        if self._is_ignored(found):
            self._status.log_ignored(found.error)
        if self._options.undecodable_handler is not None:
            self._options.undecodable_handler(found)

    # --- from a request to the next ---

    async def _send_request(self) -> Result:
        """Send the request of the current state, and return its outcome."""
        if self._state not in WATCHES:
            await self._sink.wait_for_room()
        self._pacing.record_request()
        try:
            if self._state in LISTS:
                return await self._list()
            return await self._watch()
        except REQUEST_ERRORS as error:
            self._collector.clear()
            return Result(self._outcome_of(error), error)

    def _outcome_of(self, error: TrioformerError) -> Outcome:
        outcome = outcome_of(error)
        is_partial = isinstance(error, ConnectionFailedError) and error.partial
        is_cut_short = outcome is Outcome.LOST and is_partial and self._state not in WATCHES
        return Outcome.CUT_SHORT if is_cut_short else outcome

    async def _take_step(self, result: Result) -> None:
        """Change the state after a request, report a failure, and wait until the next request may be sent."""
        step = TRANSITIONS[self._state, result.outcome]
        if step.is_reported and result.error is not None:
            self._status.record_failure(result.error)
        is_relist = step.state is State.LIST and self._state in WATCHES
        self._state = self._relist if is_relist else step.state
        await self._wait(
            step.wait, retry_after(result.error, self._pacing.rng), result.error if step.is_reported else None
        )

    async def _wait(self, wait: Wait, at_least: float, failure: TrioformerError | None) -> None:
        status, pacing = self._status, self._pacing
        is_pause = pacing.set_wait(wait, at_least) is Wait.PAUSE
        until = pacing.resume_at
        if status.final_since is not None:
            until = min(until, status.final_since + self._options.grace_period)
        if failure is not None:
            status.report_failure(failure, until)
            remove_frames(failure)  # the frames would keep the objects of a failed list alive
        if not pacing.is_waiting:
            return
        if is_pause:
            status.record_phase(InformerPhase.CONNECTING)
        else:
            status.record_phase(InformerPhase.BACKING_OFF)
            status.retry_at = until
        await pacing.sleep(self._source.wait_to_retry, until)
        status.retry_at = math.inf

    # --- listing ---

    async def _list(self) -> Result:
        self._status.record_phase(InformerPhase.LISTING)
        version = "" if self._state is State.LIST_NEWEST else self._position.version or "0"
        # With a limit, the server would read a list at a resourceVersion from etcd instead of from its watch cache.
        page_size = PAGE_SIZE if version in ("", "0") or self._facts.is_paginated else None
        self._collector.clear()
        listing = await self._source.list(
            resource_version=version, page_size=page_size, on_undecodable=self._on_undecodable
        )
        if version == "0" and listing.pages > 1:
            self._facts.is_paginated = True  # a watch cache ignores limits, so this server does not have one
        self._replace(await self._collector.process_all(listing.items), listing.resource_version)
        self._pacing.record_list()
        return Result(Outcome.RECEIVED)

    def _replace(self, objects: Sequence[T], version: str) -> None:
        self._position.version = version
        self._status.record_list()
        self._sink.replace(objects, version, bad=self._collector.bad)
        self._collector.clear()  # deleted objects must not be kept in memory until the next list

    # --- watching ---

    async def _watch(self) -> Result:
        """Open a watch or watch-list, and read it until it ends."""
        status, pacing = self._status, self._pacing
        events = status.events
        try:
            if self._state is State.RESUME:
                outcome = await self._version_check().run_beside(self._open_and_read, self._confirm)
            else:
                outcome = await self._open_and_read()
        except ListAgain:
            outcome = Outcome.CHANGED
        finally:
            status.record_watch_closed()
            if status.events != events:
                pacing.record_delivery()
        if outcome is not Outcome.ENDED or not pacing.is_very_short:
            return Result(outcome)
        if status.events != events:
            return Result(Outcome.ENDED_EARLY)
        error = ConnectionFailedError(
            f"the server ended the watch of {self._source.name} immediately, without sending an event"
        )
        return Result(Outcome.FAILED, error)

    async def _open_and_read(self) -> Outcome:
        is_initial = self._state is State.WATCH_LIST
        timeout, allowed = self._limits(is_initial=is_initial)
        version = self._position.version
        # A proxy may hold back the headers of a watch until the first event, which a watch-list sends immediately.
        patience = MAX_SILENCE if is_initial else timeout + END_GRACE
        self._status.record_watch_requested(counts_as_open=self._state is State.WATCH)
        with trio.CancelScope(deadline=trio.current_time() + patience) as opening:
            async with self._source.watch(
                resource_version=version,
                timeout_seconds=timeout,
                send_initial_events=is_initial,
                on_undecodable=self._on_undecodable,
            ) as source:
                opening.deadline = math.inf
                self._status.watches += 1
                if is_initial:
                    await self._read_watch_list(source)
                else:
                    self._position.is_in_order = version not in ("", "0")
                self._pacing.record_accepted()
                return await self._reader.read(source, allowed=allowed)
        raise ConnectionFailedError(f"no response to a watch of {self._source.name} for {patience:g} s")

    def _version_check(self) -> VersionCheck[T]:
        return VersionCheck(self._source, self._status, self._pacing, self._facts, self._position.version)

    def _confirm(self) -> None:
        self._state = TRANSITIONS[self._state, Outcome.CONFIRMED].state
        self._status.record_watch_confirmed()

    async def _read_watch_list(self, source: EventSource[T]) -> None:
        """Read a watch-list, and write its objects to the sink."""
        self._status.record_phase(InformerPhase.READING_WATCH_LIST)
        self._status.last_contact = trio.current_time()
        self._collector.clear()
        listing = await read_watch_list(source, self._collector, self._status.record_events)
        # no checkpoint between the list and the events that arrived with its end bookmark
        self._replace(listing.objects, listing.resource_version)
        self._position.is_in_order = True
        self._state = TRANSITIONS[self._state, Outcome.RECEIVED].state
        self._reader.write(listing.rest)

    def _limits(self, *, is_initial: bool) -> tuple[int, float]:
        """Return the ``timeoutSeconds`` of the next watch, and the allowed silence before its first bookmark."""
        silence, rng = self._options.max_silence, self._pacing.rng
        if silence < MAX_SILENCE and not is_initial:
            return int(silence - SHORT_WATCH_MARGIN * (1 + rng.random())), silence
        timeout = watch_timeout(rng)
        if silence < MAX_SILENCE:
            return timeout, silence
        return timeout, FIRST_BOOKMARK_PATIENCE if self._facts.bookmarks.are_sent else timeout + END_GRACE

    # --- bad objects ---

    def _is_ignored(self, found: Undecodable) -> bool:
        """Return whether an undecodable object is ignored, because it is a bookmark or in another namespace."""
        if found.event_type == "BOOKMARK":
            return True
        return bool(self._namespace and found.key) and not found.key.startswith(f"{self._namespace}/")

    def _on_undecodable(self, found: Undecodable) -> None:
        """Report an undecodable object, and write its key to the sink.

        A source calls this method in the order of its events.

        Raises:
            DecodeError: The object has no key.
        """
        if (key := within(found.key, self._namespace)) != found.key:
            found = attrs.evolve(found, key=key)
        self.report_undecodable(found)
        if self._is_ignored(found):
            return
        if not found.key:
            raise found.error
        bad = BadObject(found.key, QuarantineReason.UNDECODABLE, found.error, found.resource_version)
        if self._state in WATCHES:
            self._status.record_events(1)
            self._reader.write_bad(found.event_type, bad)
        elif found.event_type == "DELETED":
            self._collector.delete(found.key)
        else:
            self._collector.quarantine(bad)
