"""Keep a sink up to date with the server (client-go ``tools/cache/reflector.go``).

The reflector lists once, and then watches from the list's resourceVersion for ever.
Where the server supports it, the list is a watch-list (KEP-3157): a watch that begins with all objects, marks their end
with a bookmark, and then continues with the changes.
This table says what the reflector does next; "report" is a call of ``watch_error_handler``, or a log line:

=====================================================  ==========================================================
what happens                                           what the reflector does
=====================================================  ==========================================================
list, watch-list: expired, or too large a version      list again immediately, from the newest state (``""``)
list: any other error                                  report, back off, list again
watch-list: rejected (400, 422), or its end bookmark   use a list immediately, and no watch-list any more
does not arrive in time
watch-list: breaks, or ends within 30 s, before its    pause or back off, request a watch-list again; the second
end bookmark                                           time in a row use a list immediately, as above
watch-list: 401, 403, 404 or 405                       report, back off, request a watch-list again
watch-list: any other response or error                report, back off, use a list the next time
watch cannot connect, or 429 (response or event)       report, back off (at least ``Retry-After``), watch again
watch ends or breaks after 30 s or more                watch again immediately from the last resourceVersion
watch ends or breaks after 1 s or more                 pause for a tenth of its duration, at most for the first
                                                       delay of the backoff (0.8 s), watch again
watch ends after events, or breaks, within a second    back off, watch again
watch ends within a second without an event            report, back off, list again
410, as a response or as an event                      report, back off, list again from the last resourceVersion
500 as an event, while ``internal_error_retry`` lasts  pause or back off, watch again
any other response, ERROR event or decoding error      report, back off, list again
an undecodable object or event                         call ``undecodable_handler``, continue; after a DELETED
                                                       event report, back off, list again
the transform or the store fails on an object          report, keep the other objects, back off, list again
watch sends nothing for too long                       close it, watch again
after a lost connection, a 429, or a watch that sent   check that the server knows the version, then watch again
nothing for too long
=====================================================  ==========================================================

A watch that breaks is always reported.
Before the first list, permanent errors end the reflector after ``ReflectorOptions.grace_period``, and errors of the
transform immediately, unless ``ReflectorOptions.retry_forever`` is set.

Each cycle of the loop contains a backoff, or a watch that lasted for at least a second, and the backoff is reset only
after a watch that lasted for at least 30 s.
A server that ends each watch immediately, with or without an error, is therefore never sent requests in a tight loop.
A proxy that cuts every watch short costs a tenth of the time, not most of it.

Why a watch that sends nothing needs a rule: a connection whose peer has vanished looks like a watch without changes.
The server promises an end after ``timeoutSeconds``, and, once it has sent a bookmark, another about every minute.

Why the version is checked after a lost connection: the server may have been restored from a backup.
It then accepts a watch from a version that it has not reached yet, and sends nothing until it has, with other objects.
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
from ._transform import ListCollector, ObjectTransformer, Transform, combine_errors
from ._watch_list import FIRST_EVENT_PATIENCE, read_watch_list

T = TypeVar("T", bound=KubernetesObject)

FIRST_BOOKMARK_PATIENCE = 100.0
"""Seconds within which a server that sends bookmarks sends the first one of a watch."""
SHORT_WATCH_MARGIN = 6
"""Seconds by which ``timeoutSeconds`` is less than a ``max_silence`` that is too short to wait for bookmarks."""
DEADLINE_STEP = 1.0
"""Seconds that a deadline may lag behind, since moving it for every event of a burst costs more than the event."""


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

    _source: ListWatch[T]
    _sink: Sink[T]
    _options: ReflectorOptions
    _status: ReflectorStatus
    _transformer: ObjectTransformer[T]
    _collector: ListCollector[T]
    _random: random.Random
    _pacing: Pacing
    _internal_error_window: RetryWindow
    _attempt: trio.CancelScope
    _resource_version: str
    _is_in_version_order: bool
    _is_version_unavailable: bool
    _is_paginated: bool
    _uses_watch_list: bool
    _incomplete_watch_lists: int
    _must_check_version: bool
    _must_use_list: bool
    _has_listed: bool
    _sends_bookmarks: bool
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
        self._transformer = ObjectTransformer(list_watch.kind, transform, self._on_undecodable, namespace)
        self._collector = ListCollector(self._transformer, self._status.is_final)
        self._random = rng if rng is not None else random.Random()
        self._pacing = Pacing(self._options.backoff, self._random)
        self._internal_error_window = RetryWindow(self._options.internal_error_retry)
        self._attempt = trio.CancelScope()
        self._resource_version = ""
        self._is_in_version_order = self._is_version_unavailable = self._is_paginated = False
        self._has_listed = self._must_use_list = self._sends_bookmarks = False
        self._uses_watch_list = self._options.watch_list and list_watch.supports_watch_list
        self._incomplete_watch_lists = 0
        self._must_check_version = False
        self._writers = {"MODIFIED": sink.update, "ADDED": sink.add, "DELETED": sink.delete}

    @property
    def phase(self) -> InformerPhase:
        """What the reflector is doing."""
        return self._status.phase

    def statistics(self) -> ReflectorStatistics:
        """Return what the reflector is doing, and its counts."""
        return self._status.statistics(self._resource_version)

    async def run(self) -> None:
        """List and watch, and retry after every failure, until cancelled.

        Raises:
            StatusError: Before the first list has succeeded: a permanent error, after the grace period.
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

    def relist(self, errors: Sequence[IndexerError]) -> None:
        """Cancel the watch and list again after a backoff, since the sink could not store some objects.

        Raises:
            Exception: From ``ReflectorOptions.watch_error_handler``.
        """
        self._status.record_outdated()
        self._status.record_failure(combine_errors(errors))
        self._attempt.cancel()

    def record_list_stored(self) -> None:
        """Record that the sink has stored every object of a list."""
        self._status.record_up_to_date()

    def report_undecodable(self, found: Undecodable) -> None:
        """Count and report an object that turned out to be undecodable after it was written to the sink."""
        self._status.undecodable += 1
        self._options.undecodable_handler(found)

    async def _list_and_watch(self) -> None:
        """List once, then watch again and again; never returns, and raises the errors that require another list."""
        self._has_listed = False
        requests_watch_list = self._uses_watch_list and not self._must_use_list
        self._must_use_list = False
        while True:
            if not (self._has_listed or requests_watch_list):
                await self._list()
            requests_watch_list = await self._watch() and self._uses_watch_list

    # --- listing ---

    async def _list(self) -> None:
        self._status.record_phase(InformerPhase.LISTING)
        self._pacing.record_request()
        version = "" if self._is_version_unavailable else self._resource_version or "0"
        self._collector.start_list()
        try:
            listing = await self._request_list(version)
        except StatusError as error:
            if version == "" or classify_error(error) is not ErrorClass.EXPIRED:
                raise
            # The server can serve the newest state only; a backoff would not change that.
            self._is_version_unavailable = True
            version = ""
            self._collector.start_list()
            listing = await self._request_list(version)
        if version == "0" and listing.pages > 1:
            self._is_paginated = True  # a watch cache ignores limits, so this server has none
        self._replace(await self._collector.process_all(listing.items), listing.resource_version)
        self._collector.raise_errors()

    async def _request_list(self, version: str) -> ObjectList[T]:
        # With a limit, the server would read a list at a resourceVersion from etcd instead of from its watch cache.
        page_size = PAGE_SIZE if version in ("", "0") or self._is_paginated else None
        return await self._source.list(
            resource_version=version, page_size=page_size, on_undecodable=self._on_undecodable
        )

    def _replace(self, objects: Sequence[T], version: str) -> None:
        self._has_listed = True
        self._is_version_unavailable = self._must_check_version = False
        self._incomplete_watch_lists = 0
        self._resource_version = version
        self._status.record_list()
        self._sink.replace(objects, version, undecodable=frozenset(self._collector.undecodable))

    async def _read_watch_list(self, source: EventSource[T]) -> bool:
        """Read a watch-list, and return whether its end bookmark has arrived in time.

        Raises:
            trio.EndOfChannel: The server has ended the watch before the end bookmark.
        """
        self._status.record_phase(InformerPhase.READING_WATCH_LIST)
        self._status.last_contact = trio.current_time()
        self._collector.start_list()
        listing = await read_watch_list(source, self._collector.process, self._status.record_events)
        if listing is None:
            return False
        # no checkpoint between the list and the events that were received with its end bookmark
        self._replace(listing.objects, listing.resource_version)
        self._is_in_version_order = True
        self._collector.raise_errors()
        self._write(listing.rest)
        return True

    def _is_watch_list_unsupported(self, error: StatusError | UnexpectedResponseError | DecodeError) -> bool:
        """Return whether an error of a watch-list means that the server has none; False to request it again.

        Either is done immediately.

        Raises:
            TrioformerError: ``error``, for every other error, which requires a backoff.
        """
        if isinstance(error, BadRequestError | InvalidError):
            logger.info("%s: the server has no watch-list, using lists from now on: %s", self._source.name, error)
            self._uses_watch_list = False
            return True
        error_class = classify_error(error)
        if error_class is ErrorClass.EXPIRED and not self._is_version_unavailable:
            self._is_version_unavailable = True
            return False
        self._must_use_list = error_class is not ErrorClass.PERMANENT
        raise error

    # --- watching ---

    async def _watch(self) -> bool:
        """Watch once, beginning with a watch-list if there is no list yet; return whether the next may be one too."""
        pacing, events = self._pacing, self._status.events
        pacing.record_request()
        has_ended = has_timed_out = has_failed = is_overload = False
        at_least = 0.0
        try:
            has_timed_out = not await self._read_watch()
        except trio.EndOfChannel:
            has_ended = True
        except (ConnectionFailedError, TooManyRequestsError) as error:
            has_failed = True
            self._must_check_version = True
            is_overload = isinstance(error, TooManyRequestsError)
            self._status.record_failure(error)
            at_least = retry_after(error, self._random)
        except (StatusError, UnexpectedResponseError, DecodeError) as error:
            if not self._has_listed:
                return not self._is_watch_list_unsupported(error)
            if not (pacing.is_accepted and self._is_transient(error)):
                raise
            has_failed = True
        finally:
            accepted, duration = pacing.is_accepted, pacing.duration
            pacing.record_end()
        self._status.record_phase(InformerPhase.CONNECTING)
        if accepted and not self._has_listed and not is_overload:
            # The events of a busy server that has no watch-list move the deadline until the watch itself ends.
            has_no_end = has_timed_out or (has_ended and duration >= FIRST_EVENT_PATIENCE)
            if self._must_fall_back(has_no_end, duration):
                return False
        elif accepted and pacing.is_very_short and self._status.events == events and not has_failed:
            raise ConnectionFailedError(f"the server ended a watch of {self._source.name} at once, without an event")
        if not accepted or pacing.is_very_short or is_overload:
            await self._back_off(at_least)
        else:
            pacing.pause()
            await trio.sleep_until(pacing.resume_at)
        return True

    async def _read_watch(self) -> bool:
        """Open a watch and read it to its end; return False when the end bookmark of a watch-list has not arrived.

        Raises:
            trio.EndOfChannel: The server has ended a watch-list before its end bookmark.
        """
        is_initial = not self._has_listed
        self._status.record_phase(InformerPhase.CONNECTING)
        timeout, allowed = self._limits(is_initial)
        version = "" if is_initial and self._is_version_unavailable else self._resource_version
        if self._must_check_version and not is_initial:
            await self._check_version(version)
        with trio.CancelScope(deadline=trio.current_time() + MAX_SILENCE) as opening:
            async with self._source.watch(
                resource_version=version,
                timeout_seconds=timeout,
                send_initial_events=is_initial,
                on_undecodable=self._on_undecodable,
            ) as source:
                opening.deadline = math.inf
                self._pacing.record_accepted()
                self._status.watches += 1
                # A watch from no specific version begins with all objects, not in the order of their versions.
                self._is_in_version_order = version not in ("", "0")
                if is_initial and not await self._read_watch_list(source):
                    return False
                await self._read(source, allowed=allowed)
        if opening.cancelled_caught:
            raise ConnectionFailedError(f"no response to a watch of {self._source.name} for {MAX_SILENCE:g} s")
        return True

    async def _check_version(self, version: str) -> None:
        try:
            await self._source.check(resource_version=version)
        except StatusError as error:
            self._is_version_unavailable = classify_error(error) is ErrorClass.EXPIRED
            raise
        self._must_check_version = False

    def _limits(self, is_initial: bool) -> tuple[int, float]:
        """Return the ``timeoutSeconds`` of the next watch, and the seconds without data before its first bookmark."""
        silence = self._options.max_silence
        if silence < MAX_SILENCE and not is_initial:
            return int(silence - SHORT_WATCH_MARGIN * (1 + self._random.random())), silence
        timeout = watch_timeout(self._random)
        if silence < MAX_SILENCE:
            return timeout, silence
        return timeout, FIRST_BOOKMARK_PATIENCE if self._sends_bookmarks else timeout + END_GRACE

    def _is_transient(self, error: Exception) -> bool:
        """Return whether to watch again after an error of an open watch, instead of listing again."""
        # If the server cannot read one of its objects, the error has another reason, and only a list helps.
        return (
            isinstance(error, InternalServerError)
            and error.reason in ("", "InternalError")
            and self._internal_error_window.allows(trio.current_time())
        )

    async def _read(self, source: EventSource[T], *, allowed: float) -> None:
        """Write events until the watch ends, or sends nothing for ``allowed`` seconds."""
        sink, status = self._sink, self._status
        status.record_watch_opened()
        try:
            with trio.CancelScope(deadline=trio.current_time() + allowed) as scope:
                while True:
                    try:
                        batch = await source.receive_batch()
                    except trio.EndOfChannel:
                        return
                    # no checkpoint between receiving the events and writing them to the sink
                    if self._write(batch):
                        self._sends_bookmarks = True
                        allowed = self._options.max_silence
                    status.events += len(batch)
                    if status.failures:
                        status.record_success()
                    if not sink.has_room:
                        scope.deadline = math.inf  # while the sink is full, nothing is expected from the server
                        status.behind_since = trio.current_time()
                        await sink.wait_for_room()
                        status.behind_since = math.inf
                    status.last_contact = now = trio.current_time()
                    if scope.deadline > now + allowed or scope.deadline < now + allowed - DEADLINE_STEP:
                        scope.deadline = now + allowed
        finally:
            status.record_watch_closed()
        if scope.cancelled_caught:
            self._must_check_version = True
            # A watch without changes sends nothing for longer than a smaller max_silence.
            level = logging.WARNING if self._options.max_silence == MAX_SILENCE else logging.DEBUG
            logger.log(level, "watch of %s received nothing for %g s; watching again", self._source.name, allowed)

    def _write(self, batch: Sequence[WatchEvent[T]]) -> bool:
        """Write events to the sink, and return whether there was a bookmark among them."""
        process, writers = self._transformer.process, self._writers
        has_bookmark = False
        for kind, obj in batch:
            if kind == "BOOKMARK":
                has_bookmark = True
                self._sink.bookmark(obj.resource_version)
            else:
                processed = process(obj)
                write = writers.get(kind)
                if processed is None or write is None:
                    if processed is not None:
                        self._transformer.report_unknown_type(kind, processed)
                    continue
                write(processed)
            self._is_in_version_order = self._is_in_version_order or kind != "ADDED"
            if self._is_in_version_order:
                self._resource_version = obj.resource_version or self._resource_version
        return has_bookmark

    def _must_fall_back(self, has_no_end: bool, duration: float) -> bool:
        """Record a watch-list without an end bookmark, and return whether to use lists from now on."""
        self._incomplete_watch_lists += 1
        if has_no_end or self._incomplete_watch_lists > 1:
            logger.warning(
                "%s: a watch-list was incomplete after %.0f s; using lists from now on", self._source.name, duration
            )
            self._uses_watch_list = False
        return not self._uses_watch_list

    # --- failures ---

    def _on_undecodable(self, found: Undecodable) -> None:
        """Count and report an undecodable object, of which the sink keeps the last state.

        Raises:
            DecodeError: The object was deleted, and a list is necessary to find out which object it was.
        """
        if not self._has_listed:
            self._collector.undecodable.add(found.key)
        self.report_undecodable(found)
        if found.event_type == "DELETED":
            raise DecodeError(f"the DELETED event of {found.key or 'an unknown object'} is undecodable; listing again")

    async def _back_off(self, at_least: float) -> None:
        status = self._status
        self._pacing.back_off(at_least)
        status.record_phase(InformerPhase.BACKING_OFF)
        status.retry_at = self._pacing.resume_at
        if status.final_since is not None:
            status.retry_at = min(status.retry_at, status.final_since + self._options.grace_period)
        await trio.sleep_until(status.retry_at)
        status.retry_at = math.inf
