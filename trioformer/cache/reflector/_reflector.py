"""Keep a sink up to date with the server (client-go ``tools/cache/reflector.go``).

The reflector lists once, and then watches from the list's resourceVersion for ever.
Its loop sends the request of its state, and then takes the step that ``_states.py`` has for the outcome;
``_retry/_pacing.py`` decides when the next request may be sent.

Before the first list, permanent errors end the reflector after ``ReflectorOptions.grace_period``, unless
``ReflectorOptions.retry_forever`` is set.

An object that cannot be taken is passed on like any other, by its key, and the watch continues.

Why a watch that sends nothing needs a rule: a connection whose peer has vanished looks like a watch without changes.
The client probes the server when a watch has been silent for 30 s (``transport/_health.py``).
What the probe cannot see, one dead connection among live ones, is noticed by the absence of bookmarks, about one a
minute, and at the latest when the watch should have ended.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar, final

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
from ...client import PAGE_SIZE, Undecodable
from ...errors import (
    ConnectionFailedError,
    DecodeError,
    InternalServerError,
    TrioformerError,
)
from ...models import KubernetesObject
from .._bad_objects import BadObject, QuarantineReason
from ._list_watch import EventSource, ListWatch
from ._options import ReflectorOptions, logger
from ._sink import Sink
from ._states import LISTS, NEWEST, TRANSITIONS, WATCH_LISTS, WATCHES, Bookmarks, ListMethod, ServerFacts, State
from ._status import InformerPhase, ReflectorStatistics, ReflectorStatus
from ._transform import ListCollector, ObjectTransformer, Transform, within
from ._watch_list import FIRST_EVENT_PATIENCE, read_watch_list
from ._watch_reader import ListRequest, Position, VersionCheck, WatchReader

T = TypeVar("T", bound=KubernetesObject)

FIRST_BOOKMARK_PATIENCE = 100.0
"""Seconds within which a server that sends bookmarks sends the first one of a watch."""
SHORT_WATCH_MARGIN = 6
"""Seconds by which ``timeoutSeconds`` is less than a ``max_silence`` that is too short to wait for bookmarks."""


class Result(NamedTuple):
    """How a request ended."""

    outcome: Outcome
    error: TrioformerError | None = None


@final
class Reflector(Generic[T]):
    """Lists and watches a source, and writes to a sink, until it is cancelled.

    Args:
        list_watch: The source.
        sink: Written to between checkpoints, so that cancellation never splits a change.
        options: How to list and watch, and how to handle failures.
        transform: Applied to each object exactly once, before it is written.
        namespace: The namespace that every object must be in; empty for any.
        rng: Randomness of watch timeouts and backoff.
    """

    # Not an attrs class: it has a constructor of its own, and generating unused methods costs 1 ms of each import.

    __slots__ = (
        "_collector",
        "_facts",
        "_list_request",
        "_namespace",
        "_options",
        "_pacing",
        "_position",
        "_reader",
        "_sink",
        "_source",
        "_state",
        "_status",
    )

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
        transformer = ObjectTransformer(list_watch.kind, transform, self.report_undecodable, namespace)
        self._collector = ListCollector(transformer)
        rng = rng if rng is not None else random.Random()
        self._pacing = Pacing(options.backoff, rng, options.internal_error_retry)
        self._facts = ServerFacts()
        if options.watch_list is not None:
            self._facts.list_method = ListMethod.WATCH_LIST if options.watch_list else ListMethod.LIST
        self._position = Position()
        self._state = State.CHOOSE
        self._list_request = ListRequest()
        self._reader = WatchReader(transformer, sink, self._status, self._position, self._facts, options.max_silence)

    @property
    def phase(self) -> InformerPhase:
        """What the reflector is doing."""
        return self._status.phase

    def statistics(self) -> ReflectorStatistics:
        """Return what the reflector is doing, and its counts."""
        return self._status.statistics(self._position.version)

    async def run(self) -> None:
        """List and watch, and retry after every failure, until cancelled.

        Raises:
            StatusError: Before the first list has succeeded: a permanent error, after the grace period.
            ConnectionFailedError: Likewise, when the server's certificate does not verify.
        """
        while True:
            await self._take_step(await self._send_request())

    def report_undecodable(self, found: Undecodable) -> None:
        """Count and report an undecodable object; the quarantine logs it, unless the sink does not get it."""
        self._status.undecodable += 1
        if self._is_ignored(found):
            self._status.log_ignored(found.error)
        if self._options.undecodable_handler is not None:
            self._options.undecodable_handler(found)

    # --- from a request to the next ---

    async def _send_request(self) -> Result:
        """Send the request of the current state, and return how it ended."""
        self._pacing.record_request()
        try:
            if self._state is State.CHOOSE:
                return await self._choose()
            if self._state in LISTS:
                return await self._list()
            return await self._watch()
        except REQUEST_ERRORS as error:
            return Result(self._outcome_of(error), error)

    def _outcome_of(self, error: TrioformerError) -> Outcome:
        outcome = outcome_of(error)
        if not self._pacing.is_accepted:
            return outcome
        if self._state in WATCH_LISTS:
            return Outcome.CUT_SHORT if outcome is Outcome.LOST else outcome
        # If the server cannot read one of its objects, the error has another reason, and only a list helps.
        is_internal = isinstance(error, InternalServerError) and error.reason in ("", "InternalError")
        if is_internal and self._state in WATCHES and self._pacing.allows_internal_error():
            return Outcome.INTERNAL
        return outcome

    async def _take_step(self, result: Result) -> None:
        """Report a failure, and wait until the next request may be sent."""
        step = TRANSITIONS[self._state, result.outcome]
        if step.is_reported and result.error is not None:
            self._status.record_failure(result.error)
        if step.ends_watch_lists:
            self._end_watch_lists(result)
        self._state = step.state
        await self._wait(step.wait, retry_after(result.error, self._pacing.rng))

    def _end_watch_lists(self, result: Result) -> None:
        self._facts.list_method = ListMethod.LIST
        name = self._source.name
        if result.outcome is Outcome.REJECTED:
            logger.info("%s: the server has no watch-list, using lists from now on: %s", name, result.error)
        else:
            duration = self._pacing.duration
            logger.warning("%s: a watch-list was incomplete after %.0f s; using lists from now on", name, duration)

    async def _wait(self, wait: Wait, at_least: float) -> None:
        status, pacing = self._status, self._pacing
        is_pause = pacing.set_wait(wait, at_least) is Wait.PAUSE
        if not pacing.is_waiting:
            return
        until = pacing.resume_at
        if status.final_since is not None:
            until = min(until, status.final_since + self._options.grace_period)
        if is_pause:
            status.record_phase(InformerPhase.CONNECTING)
        else:
            status.record_phase(InformerPhase.BACKING_OFF)
            status.retry_at = until
        await pacing.sleep(self._source.wait_to_retry, until)
        status.retry_at = math.inf

    # --- listing ---

    async def _choose(self) -> Result:
        self._status.record_phase(InformerPhase.CONNECTING)
        facts = self._facts
        if facts.must_request_version():
            try:
                facts.record_version(await self._source.server_version())
            except REQUEST_ERRORS as error:
                if outcome_of(error) is Outcome.LOST:
                    raise
                if outcome_of(error) is Outcome.OVERLOADED or retry_after(error, self._pacing.rng):
                    return Result(Outcome.OVERLOADED, error)
                # It is requested again before the next list.
                logger.debug("%s: the server's version is not known: %s", self._source.name, error)
        uses_lists = facts.list_method is ListMethod.LIST or not self._source.supports_watch_list
        return Result(Outcome.LISTS if uses_lists else Outcome.WATCH_LISTS)

    async def _list(self) -> Result:
        self._status.record_phase(InformerPhase.LISTING)
        version = "" if self._state in NEWEST else self._position.version or "0"
        # With a limit, the server would read a list at a resourceVersion from etcd instead of from its watch cache.
        page_size = PAGE_SIZE if version in ("", "0") or self._facts.is_paginated else None
        self._collector.clear()
        listing = await self._source.list(
            resource_version=version, page_size=page_size, on_undecodable=self._on_undecodable
        )
        if version == "0" and listing.pages > 1:
            self._facts.is_paginated = True  # a watch cache ignores limits, so this server has none
        self._replace(await self._collector.process_all(listing.items), listing.resource_version)
        self._pacing.record_list()
        return Result(Outcome.RECEIVED)

    def _replace(self, objects: Sequence[T], version: str) -> None:
        self._position.version = version
        self._status.record_list()
        self._list_request.record_list()
        self._sink.replace(objects, version, bad=self._collector.bad)
        self._collector.clear()  # deleted objects must not be kept in memory until the next list

    # --- watching ---

    async def _watch(self) -> Result:
        """Open a watch, which is a watch-list if there is no list yet, and read it to its end."""
        status, pacing = self._status, self._pacing
        events = status.events
        try:
            if self._state is State.RESUME:
                outcome = await self._version_check().run_beside(self._open_and_read, self._confirm)
            else:
                outcome = await self._open_and_read()
        finally:
            status.record_watch_closed()
            if status.events != events:
                pacing.record_delivery()
        if outcome is not Outcome.ENDED or not pacing.is_very_short:
            return Result(outcome)
        if status.events != events:
            return Result(Outcome.ENDED_EARLY)
        error = ConnectionFailedError(f"the server ended a watch of {self._source.name} at once, without an event")
        return Result(Outcome.ENDED_EMPTY, error)

    async def _open_and_read(self) -> Outcome:
        is_initial = self._state in WATCH_LISTS
        timeout, allowed = self._limits(is_initial=is_initial)
        version = "" if self._state in NEWEST else self._position.version
        # A proxy may hold back the headers of a watch until its first event; those of a watch-list follow at once.
        patience = MAX_SILENCE if is_initial else timeout + END_GRACE
        self._status.record_watch_requested(counts_as_open=self._state is State.WATCH)
        until_list = self._list_request.open(is_list=is_initial)
        with until_list, trio.CancelScope(deadline=trio.current_time() + patience) as opening:
            async with self._source.watch(
                resource_version=version,
                timeout_seconds=timeout,
                send_initial_events=is_initial,
                on_undecodable=self._on_undecodable,
            ) as source:
                opening.deadline = math.inf
                self._pacing.record_accepted()
                self._status.watches += 1
                self._position.is_in_order = version not in ("", "0")
                return await self._read(source, allowed)
        if until_list.cancelled_caught:
            raise DecodeError(f"received events of {self._source.name} without a key; listing again")
        raise ConnectionFailedError(f"no response to a watch of {self._source.name} for {patience:g} s")

    async def _read(self, source: EventSource[T], allowed: float) -> Outcome:
        if self._state in WATCH_LISTS:
            outcome = await self._read_watch_list(source)
            if outcome is not Outcome.RECEIVED:
                return outcome
        return await self._reader.read(source, allowed=allowed)

    def _version_check(self) -> VersionCheck[T]:
        return VersionCheck(self._source, self._status, self._pacing, self._facts, self._position.version)

    def _confirm(self) -> None:
        self._state = TRANSITIONS[self._state, Outcome.CONFIRMED].state
        self._status.record_watch_confirmed()

    async def _read_watch_list(self, source: EventSource[T]) -> Outcome:
        """Read a watch-list up to its end bookmark."""
        self._status.record_phase(InformerPhase.READING_WATCH_LIST)
        self._status.last_contact = trio.current_time()
        self._collector.clear()
        try:
            listing = await read_watch_list(source, self._collector, self._status.record_events)
        except trio.EndOfChannel:
            # The events of a busy server that has no watch-list move the deadline until the watch itself ends.
            return Outcome.NO_END if self._pacing.duration >= FIRST_EVENT_PATIENCE else Outcome.CUT_SHORT
        if listing is None:
            return Outcome.NO_END
        # no checkpoint between the list and the events that were received with its end bookmark
        self._replace(listing.objects, listing.resource_version)
        self._position.is_in_order = True
        self._state = TRANSITIONS[self._state, Outcome.RECEIVED].state
        if self._facts.bookmarks is Bookmarks.UNKNOWN:
            self._facts.bookmarks = Bookmarks.EXPECTED
        self._reader.write(listing.rest)
        return Outcome.RECEIVED

    def _limits(self, *, is_initial: bool) -> tuple[int, float]:
        """Return the ``timeoutSeconds`` of the next watch, and the seconds without data before its first bookmark."""
        silence, rng = self._options.max_silence, self._pacing.rng
        if silence < MAX_SILENCE and not is_initial:
            return int(silence - SHORT_WATCH_MARGIN * (1 + rng.random())), silence
        timeout = watch_timeout(rng)
        if silence < MAX_SILENCE:
            return timeout, silence
        return timeout, FIRST_BOOKMARK_PATIENCE if self._facts.bookmarks.are_sent else timeout + END_GRACE

    # --- bad objects ---

    def _is_ignored(self, found: Undecodable) -> bool:
        """Whether it is of no object of the cache, whose reader another namespace's objects must not reach."""
        if found.event_type == "BOOKMARK":
            return True
        return bool(self._namespace and found.key) and not found.key.startswith(f"{self._namespace}/")

    def _on_undecodable(self, found: Undecodable) -> None:
        """Pass on an undecodable object that the server sent; a source calls this in the order of its events."""
        if (key := within(found.key, self._namespace)) != found.key:
            found = attrs.evolve(found, key=key)
        self.report_undecodable(found)
        if self._is_ignored(found):
            return
        bad = BadObject(found.key, QuarantineReason.UNDECODABLE, found.error, found.resource_version)
        is_deletion = found.event_type == "DELETED"
        if self._state in WATCHES:
            self._status.record_events(1)
            self._reader.write_bad(found.event_type, bad)
        elif is_deletion and found.key:
            self._collector.delete(found.key)
        else:
            self._collector.quarantine(bad)
        if not found.key and (is_deletion or self._state in WATCHES):
            self._list_request.request()
