"""Keeping a sink in step with the server (client-go ``tools/cache/reflector.go``).

List once, then watch from the list's resourceVersion, for ever.
The list comes as a stream where the server has that: a watch that begins with everything there is, tells where that
ends with a bookmark, and goes on as the watch that was wanted anyway (KEP-3157).
What can go wrong decides what comes next:

=====================================================  ==========================================================
what happened                                          what the reflector does
=====================================================  ==========================================================
list: expired, or resourceVersion too large            list again at once, from the newest state (``""``)
list: anything else                                    report, back off, list again
streamed list: refused as a bad request, or its end    list plainly, and never ask this source for a stream again
bookmark does not come
streamed list: ends early                              back off, stream again; the second time list plainly for good
streamed list: another answer that may be its fault    report, back off, list plainly the next time
watch cannot connect, or 429 (answer or event)         report, back off (at least ``Retry-After``), watch again
watch ends or breaks after 30 s or more                watch again at once from the last resourceVersion
watch ends or breaks after 1 s or more                 pause for a tenth of its life, watch again
watch ends or breaks within a second, after events     back off, watch again
watch ends within a second without an event            report, back off, list again
410, as an answer or as an event                       back off, list again from the last resourceVersion
500 as an event, while ``internal_error_retry`` lasts  watch again
any other answer or ERROR event, a frame that is none  report, back off, list again
an object that does not decode                         report, go on; list again if it was the object of a deletion
a transform or the store fails on an object            report, take the rest, back off, list again
watch is silent for longer than it may be              break it, watch again
the connection was lost, or silent                     ask whether the version is still known, then watch again
=====================================================  ==========================================================

Every way round the loop passes a backoff or a watch that lived for a second, and the backoff starts anew only after a
watch has lived for 30 s: a server that fails at once, cleanly or not, is never asked in a tight loop.
A proxy that cuts every watch short costs a tenth of the time, not most of it.

Why silence needs a rule: a connection whose other end is gone without a word looks like a watch with nothing to tell.
The server promises an end after ``timeoutSeconds``, and, once it has sent a bookmark, another about every minute.

Why a lost connection needs a question: the server that answers next may have been restored from a backup.
It accepts a watch from a version that is still to come, and is silent until it has come, with other objects.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, final

import trio

from ..._retry import (
    END_GRACE,
    MAX_SILENCE,
    REQUEST_ERRORS,
    ErrorClass,
    Pacing,
    RetryWindow,
    classify_error,
    retry_after,
    watch_timeout,
)
from ...client import PAGE_SIZE, ObjectList, Undecodable, WatchEvent
from ...errors import (
    BadRequestError,
    ConnectionFailedError,
    DecodeError,
    IndexerError,
    InternalServerError,
    InvalidError,
    StatusError,
    TooManyRequestsError,
    TransformError,
    UnexpectedResponseError,
)
from ...models import KubernetesObject
from ._list_watch import EventSource, ListWatch
from ._options import ReflectorOptions, logger
from ._sink import Sink
from ._status import InformerPhase, ReflectorStatistics, ReflectorStatus
from ._transform import ListCollector, ObjectTransformer, Transform, summed_up
from ._watch_list import FIRST_EVENT_PATIENCE, read_watch_list

T = TypeVar("T", bound=KubernetesObject)

FIRST_BOOKMARK = 100.0
"""Seconds within which a server that sends bookmarks has sent the first one of a watch."""
SHORT_WATCH_MARGIN = 6
"""Seconds by which ``timeoutSeconds`` stay below a ``max_silence`` that is too short to wait for bookmarks."""
DEADLINE_STEP = 1.0
"""Seconds that the deadline may lag behind: moving it for every event of a storm would cost more than the event."""


@final
class Reflector(Generic[T]):
    """Feeds a sink from a list and a watch until it is cancelled.

    Args:
        list_watch: Where to read.
        sink: Where to write; written to between checkpoints, so cancellation never splits a change.
        options: What to do about failures.
        transform: Applied to each object exactly once, before it is written.
        namespace: What every object must belong to; empty when it may be any.
        rng: Randomness of watch timeouts and backoff.
    """

    _source: ListWatch[T]
    _sink: Sink[T]
    _options: ReflectorOptions
    _status: ReflectorStatus
    _transformer: ObjectTransformer[T]
    _collector: ListCollector[T]
    _random: random.Random
    _pacing: Pacing
    _internal_errors: RetryWindow
    _attempt: trio.CancelScope
    _resource_version: str
    _is_ordered: bool
    _is_unavailable: bool
    _is_paginated: bool
    _uses_watch_list: bool
    _watch_lists_cut_short: int
    _must_check_version: bool
    _must_list_plainly: bool
    _has_listed: bool
    _knows_bookmarks: bool
    _writers: Mapping[str, Callable[[T], None]]

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
        self._options = options if options is not None else ReflectorOptions()
        self._status = ReflectorStatus(list_watch.name, self._options)
        self._transformer = ObjectTransformer(list_watch.kind, transform, self._report_undecodable, namespace)
        self._collector = ListCollector(self._transformer, self._status.is_final)
        self._random = rng if rng is not None else random.Random()
        self._pacing = Pacing(self._options.backoff, self._random)
        self._internal_errors = RetryWindow(self._options.internal_error_retry)
        self._attempt = trio.CancelScope()
        self._resource_version = ""
        self._is_ordered = self._is_unavailable = self._is_paginated = False
        self._has_listed = self._must_list_plainly = self._knows_bookmarks = False
        self._uses_watch_list = self._options.watch_list and list_watch.supports_watch_list
        self._watch_lists_cut_short = 0
        self._must_check_version = False
        self._writers = {"MODIFIED": sink.update, "ADDED": sink.add, "DELETED": sink.delete}

    @property
    def phase(self) -> InformerPhase:
        """What the reflector is doing."""
        return self._status.phase

    def statistics(self) -> ReflectorStatistics:
        """What the reflector is doing, and how well."""
        return self._status.statistics(self._resource_version)

    async def run(self) -> None:
        """List, watch, and go on from every failure; until cancelled.

        Raises:
            StatusError: Before the first list has succeeded: one that waiting does not mend, after the grace period.
            ConnectionFailedError: Likewise, when the server's certificate does not verify.
            TransformError: Before the first list has succeeded.
        """
        while True:
            at_least = 0.0
            with trio.CancelScope() as self._attempt:
                try:
                    await self._list_and_watch()
                except (*REQUEST_ERRORS, TransformError) as error:
                    self._status.record_failure(error)
                    at_least = retry_after(error, self._random)
            await self._back_off(at_least)

    def relist(self, because: Sequence[IndexerError]) -> None:
        """Break the watch off and list again after a backoff: the sink could not take all that it was given.

        Raises:
            Exception: What the handler of errors raises.
        """
        self._status.record_out_of_step()
        self._status.record_failure(summed_up(because))
        self._attempt.cancel()

    def list_taken(self) -> None:
        """Note that the sink has taken a list, and nothing of it was refused."""
        self._status.record_in_step()

    def report_undecodable(self, lost: Undecodable) -> None:
        """Count and report an object whose trouble showed only behind the sink."""
        self._status.undecodable += 1
        self._options.undecodable_handler(lost)

    async def _list_and_watch(self) -> None:
        """List once and watch again and again; returns never, raises what only another list can mend."""
        self._has_listed = False
        streams = self._uses_watch_list and not self._must_list_plainly
        self._must_list_plainly = False
        while True:
            if not (self._has_listed or streams):
                await self._list()
            streams = await self._watch() and self._uses_watch_list

    # --- listing ---

    async def _list(self) -> None:
        self._status.record_phase(InformerPhase.LISTING)
        self._pacing.record_request()
        version = "" if self._is_unavailable else self._resource_version or "0"
        self._collector.begin()
        try:
            listing = await self._list_at(version)
        except StatusError as error:
            if version == "" or classify_error(error) is not ErrorClass.EXPIRED:
                raise
            # Only the newest state can be had; a backoff would not change that.
            self._is_unavailable = True
            version = ""
            self._collector.begin()
            listing = await self._list_at(version)
        if version == "0" and listing.pages > 1:
            self._is_paginated = True  # the watch cache ignores limits, so this server has none
        self._listed(await self._collector.take_all(listing.items), listing.resource_version)
        self._collector.raise_failed()

    async def _list_at(self, version: str) -> ObjectList[T]:
        # A limit would take a list at a resourceVersion away from the watch cache and to etcd.
        page_size = PAGE_SIZE if version in ("", "0") or self._is_paginated else None
        return await self._source.list(
            resource_version=version, page_size=page_size, on_undecodable=self._report_undecodable
        )

    def _listed(self, objects: Sequence[T], version: str) -> None:
        self._has_listed = True
        self._is_unavailable = self._must_check_version = False
        self._watch_lists_cut_short = 0
        self._resource_version = version
        self._status.record_list()
        self._sink.replace(objects, version, undecodable=frozenset(self._collector.undecodable))

    async def _read_initial(self, source: EventSource[T]) -> bool:
        """Read a streamed list; say whether its end has come in time.

        Raises:
            trio.EndOfChannel: The stream has ended before.
        """
        self._status.record_phase(InformerPhase.READING_WATCH_LIST)
        self._status.last_contact = trio.current_time()
        self._collector.begin()
        listing = await read_watch_list(source, self._collector.take, self._status.record_events)
        if listing is None:
            return False
        # no checkpoint between the end of the list and what came with it
        self._listed(listing.objects, listing.resource_version)
        self._is_ordered = True
        self._collector.raise_failed()
        self._write(listing.rest)
        return True

    def _must_list_at_once(self, error: StatusError | UnexpectedResponseError | DecodeError) -> bool:
        """Whether an error of a streamed list means to list plainly at once; if not, to stream again at once.

        Raises:
            TrioformerError: ``error``, when there is nothing to be done at once.
        """
        if isinstance(error, BadRequestError | InvalidError):
            logger.info("%s: no streamed lists here, listing plainly from now on: %s", self._source.name, error)
            self._uses_watch_list = False
            return True
        verdict = classify_error(error)
        if verdict is ErrorClass.EXPIRED and not self._is_unavailable:
            self._is_unavailable = True
            return False
        self._must_list_plainly = verdict is not ErrorClass.PERMANENT
        raise error

    # --- watching ---

    async def _watch(self) -> bool:
        """Watch once, with a streamed list first if nothing has been listed; say whether the next list may be one."""
        pacing, events = self._pacing, self._status.events
        pacing.record_request()
        has_ended = gave_up = is_reported = is_overload = False
        at_least = 0.0
        try:
            gave_up = not await self._read_watch()
        except trio.EndOfChannel:
            has_ended = True
        except (ConnectionFailedError, TooManyRequestsError) as error:
            is_reported = True
            self._must_check_version = True
            is_overload = isinstance(error, TooManyRequestsError)
            self._status.record_failure(error)
            at_least = retry_after(error, self._random)
        except (StatusError, UnexpectedResponseError, DecodeError) as error:
            if not self._has_listed:
                return not self._must_list_at_once(error)
            if not (pacing.is_accepted and self._is_passing(error)):
                raise
            is_reported = True
        finally:
            accepted, lived = pacing.is_accepted, pacing.duration
            pacing.record_end()
        self._status.record_phase(InformerPhase.CONNECTING)
        if accepted and not self._has_listed and not is_overload:
            # A busy server that does not know streamed lists keeps the deadline moving until the watch's own end.
            if self._watch_list_was_cut_short(gave_up or (has_ended and lived >= FIRST_EVENT_PATIENCE), lived):
                return False
        elif accepted and pacing.is_very_short and self._status.events == events and not is_reported:
            raise ConnectionFailedError(f"the server ended a watch of {self._source.name} at once, without an event")
        if not accepted or pacing.is_very_short or is_overload:
            await self._back_off(at_least)
        else:
            pacing.pause()
            await trio.sleep_until(pacing.resume_at)
        return True

    async def _read_watch(self) -> bool:
        """Open a watch and read it to its end; False when it was to begin with a list that had no end.

        Raises:
            trio.EndOfChannel: It has ended in the middle of a streamed list.
        """
        is_initial = not self._has_listed
        self._status.record_phase(InformerPhase.CONNECTING)
        timeout, allowed = self._limits(is_initial)
        version = "" if is_initial and self._is_unavailable else self._resource_version
        if self._must_check_version and not is_initial:
            await self._check(version)
        with trio.CancelScope(deadline=trio.current_time() + MAX_SILENCE) as opening:
            async with self._source.watch(
                resource_version=version,
                timeout_seconds=timeout,
                send_initial_events=is_initial,
                on_undecodable=self._report_undecodable,
            ) as source:
                opening.deadline = math.inf
                self._pacing.record_accepted()
                self._status.watches += 1
                # A watch from no particular version begins with the present state, in no order of versions.
                self._is_ordered = version not in ("", "0")
                if is_initial and not await self._read_initial(source):
                    return False
                await self._read(source, allowed=allowed)
        if opening.cancelled_caught:
            raise ConnectionFailedError(f"no answer to a watch of {self._source.name} for {MAX_SILENCE:g} s")
        return True

    async def _check(self, version: str) -> None:
        try:
            await self._source.check(resource_version=version)
        except StatusError as error:
            self._is_unavailable = classify_error(error) is ErrorClass.EXPIRED
            raise
        self._must_check_version = False

    def _limits(self, is_initial: bool) -> tuple[int, float]:
        """The ``timeoutSeconds`` of the next watch, and how long it may be silent before its first bookmark."""
        silence = self._options.max_silence
        if silence < MAX_SILENCE and not is_initial:
            return int(silence - SHORT_WATCH_MARGIN * (1 + self._random.random())), silence
        timeout = watch_timeout(self._random)
        if silence < MAX_SILENCE:
            return timeout, silence
        return timeout, FIRST_BOOKMARK if self._knows_bookmarks else timeout + END_GRACE

    def _is_passing(self, error: Exception) -> bool:
        """Whether an error in a running watch is one of those that are answered by watching again, for a while."""
        # A server that cannot read one of its objects says so with a reason of its own; only a list mends that.
        return (
            isinstance(error, InternalServerError)
            and error.reason in ("", "InternalError")
            and self._internal_errors.allows(trio.current_time())
        )

    async def _read(self, source: EventSource[T], *, allowed: float) -> None:
        """Pass events on until the stream ends, or is silent for longer than ``allowed`` seconds."""
        sink, status = self._sink, self._status
        status.record_watch_opened()
        try:
            with trio.CancelScope(deadline=trio.current_time() + allowed) as guard:
                while True:
                    try:
                        batch = await source.receive_batch()
                    except trio.EndOfChannel:
                        return
                    # no checkpoint between taking the events and writing them to the sink
                    if self._write(batch):
                        self._knows_bookmarks = True
                        allowed = self._options.max_silence
                    status.events += len(batch)
                    if status.failures:
                        status.record_success()
                    if not sink.has_room:
                        guard.deadline = math.inf  # a slow reader behind the sink is not the server's silence
                        status.behind_since = trio.current_time()
                        await sink.wait_for_room()
                        status.behind_since = math.inf
                    status.last_contact = now = trio.current_time()
                    if guard.deadline > now + allowed or guard.deadline < now + allowed - DEADLINE_STEP:
                        guard.deadline = now + allowed
        finally:
            status.record_watch_closed()
        if guard.cancelled_caught:
            self._must_check_version = True
            # Below the time between two bookmarks silence is what was asked for.
            level = logging.WARNING if self._options.max_silence == MAX_SILENCE else logging.DEBUG
            logger.log(level, "watch of %s was silent for %g s; watching again", self._source.name, allowed)

    def _write(self, batch: Sequence[WatchEvent[T]]) -> bool:
        """Write events to the sink; say whether there was a bookmark among them."""
        take, writers = self._transformer.take, self._writers
        has_bookmark = False
        for kind, obj in batch:
            if kind == "BOOKMARK":
                has_bookmark = True
                self._sink.bookmark(obj.resource_version)
            else:
                taken = take(obj)
                write = writers.get(kind)
                if taken is None or write is None:
                    if taken is not None:
                        self._transformer.refuse_event(kind, taken)
                    continue
                write(taken)
            self._is_ordered = self._is_ordered or kind != "ADDED"
            if self._is_ordered:
                self._resource_version = obj.resource_version or self._resource_version
        return has_bookmark

    def _watch_list_was_cut_short(self, has_no_end: bool, lived: float) -> bool:
        """Note that a streamed list has not come to its end; say whether to list plainly instead, from now on."""
        self._watch_lists_cut_short += 1
        if has_no_end or self._watch_lists_cut_short > 1:
            logger.warning(
                "%s: a streamed list had no end after %.0f s; listing plainly from now on", self._source.name, lived
            )
            self._uses_watch_list = False
        return not self._uses_watch_list

    # --- success and failure ---

    def _report_undecodable(self, lost: Undecodable) -> None:
        """Count and report an object that cannot be taken; what is known of it stays as it is.

        Raises:
            DecodeError: It was deleted, and only a list can tell which one it was.
        """
        if not self._has_listed:
            self._collector.undecodable.add(lost.key)
        self.report_undecodable(lost)
        if lost.event_type == "DELETED":
            raise DecodeError(f"a deletion of {lost.key or 'an unknown object'} does not decode; listing again")

    async def _back_off(self, at_least: float) -> None:
        status = self._status
        self._pacing.back_off(at_least)
        status.record_phase(InformerPhase.BACKING_OFF)
        status.retry_at = self._pacing.resume_at
        if status.fatal_since is not None:
            status.retry_at = min(status.retry_at, status.fatal_since + self._options.grace_period)
        await trio.sleep_until(status.retry_at)
        status.retry_at = math.inf
