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
a transform or the store fails on an object            report, back off, list again
watch is silent for longer than it may be              break it, watch again
=====================================================  ==========================================================

Every way round the loop passes a backoff or a watch that lived for a second, and the backoff starts anew only after a
watch has lived for 30 s: a server that fails at once, cleanly or not, is never asked in a tight loop.
A proxy that cuts every watch short costs a tenth of the time, not most of it.

Why silence needs a rule: a connection whose other end is gone without a word looks like a watch with nothing to tell.
The server promises an end after ``timeoutSeconds``, and, once it has sent a bookmark, another about every minute.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Generic, TypeVar, final

import trio

from .._backoff import Backoff
from ..client import ObjectList, Undecodable, WatchEvent
from ..errors import (
    BadRequestError,
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    InternalServerError,
    InvalidError,
    StatusError,
    TooManyRequestsError,
    TransformError,
    TrioformerError,
    UnexpectedAnswerError,
)
from ..models import KubernetesObject
from ..watchtools import RETRIED, Verdict, retry_after, verdict_on
from ._arrivals import Arrivals, Transform
from ._list_watch import EventSource, ListWatch
from ._reflector_options import LONGEST_SILENCE, Phase, ReflectorOptions, ReflectorStatistics, logger
from ._retry_window import RetryWindow
from ._sink import Sink
from ._streamed_list import FIRST_EVENT_PATIENCE, read_streamed_list

T = TypeVar("T", bound=KubernetesObject)

PAGE_SIZE = 500
MIN_WATCH_TIMEOUT = 300
"""Seconds; each watch asks for a random time between this and its double, so that they do not all end together."""
HEALTHY_AFTER = 30.0
"""Seconds that a watch must have lived for the backoff to start anew."""
VERY_SHORT = 1.0
"""Seconds; a watch that ends sooner, without an event, was refused in all but name."""
PAUSE_SHARE = 0.1
"""How much of a short watch's life is waited before the next one."""
END_GRACE = 30.0
"""Seconds that a watch may outlive its ``timeoutSeconds``."""
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
        rng: Randomness of watch timeouts and backoff.
    """

    _source: ListWatch[T]
    _sink: Sink[T]
    _options: ReflectorOptions
    _arrivals: Arrivals[T]
    _random: random.Random
    _backoff: Backoff
    _internal_errors: RetryWindow
    _attempt: trio.CancelScope
    _resource_version: str
    _is_ordered: bool
    _is_unavailable: bool
    _is_paginated: bool
    _streams_lists: bool
    _streams_cut: int
    _lists_next: bool
    _has_listed: bool
    _unreadable: set[str]
    _fatal_since: float | None
    _state: Phase
    _watching_since: float
    _in_step_at: float
    _last_error: Exception | None
    _failures: int
    _retry_at: float
    _last_contact: float
    _lists: int
    _watches: int
    _events: int
    _undecodable: int

    def __init__(
        self,
        list_watch: ListWatch[T],
        sink: Sink[T],
        options: ReflectorOptions | None = None,
        *,
        transform: Transform[T] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._source = list_watch
        self._sink = sink
        self._options = options if options is not None else ReflectorOptions()
        self._arrivals = Arrivals(list_watch.kind, transform, self._leave_out)
        self._random = rng if rng is not None else random.Random()
        self._backoff = Backoff(self._options.backoff, rng=self._random)
        self._internal_errors = RetryWindow(self._options.internal_error_retry)
        self._attempt = trio.CancelScope()
        self._resource_version = ""
        self._is_ordered = self._is_unavailable = self._is_paginated = self._has_listed = self._lists_next = False
        self._streams_lists = self._options.stream_lists and list_watch.supports_watch_list
        self._streams_cut = 0
        self._unreadable = set()
        self._fatal_since = None
        self._state = "not started"
        self._last_error = None
        self._retry_at = self._watching_since = math.inf
        self._last_contact = self._in_step_at = -math.inf
        self._failures = self._lists = self._watches = self._events = self._undecodable = 0

    @property
    def state(self) -> Phase:
        """What the reflector is doing."""
        if self._state == "streaming" and trio.current_time() - self._last_contact >= VERY_SHORT:
            return "waiting for bookmark"
        return self._state

    def statistics(self) -> ReflectorStatistics:
        """What the reflector is doing, and how well."""
        now = trio.current_time() if self._state == "watching" else -math.inf
        # A watch that has lived for a second is a success, though nothing may have happened yet.
        is_well = now - self._watching_since >= VERY_SHORT
        return ReflectorStatistics(
            state=self.state if self._state == "streaming" else self._state,
            last_error=None if is_well else self._last_error,
            failures_in_a_row=0 if is_well else self._failures,
            retry_at=self._retry_at,
            last_contact=self._last_contact,
            in_step_at=max(self._in_step_at, now),
            lists=self._lists,
            watches=self._watches,
            events=self._events,
            undecodable=self._undecodable,
            resource_version=self._resource_version,
        )

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
                except (*RETRIED, TransformError) as error:
                    self._failed(error)
                    at_least = retry_after(error, self._random)
            await self._back_off(at_least)

    def relist(self, because: TrioformerError) -> None:
        """Break the watch off and list again after a backoff: the sink could not take what it was given.

        Raises:
            TrioformerError: ``because``, when it is to leave :meth:`run`'s caller.
        """
        self._failed(because)
        self._attempt.cancel()

    async def _list_and_watch(self) -> None:
        """List once and watch again and again; returns never, raises what only another list can mend."""
        self._has_listed = False
        streams = self._streams_lists and not self._lists_next
        self._lists_next = False
        while True:
            if not (self._has_listed or streams):
                await self._list()
            streams = await self._watch() and self._streams_lists

    # --- listing ---

    async def _list(self) -> None:
        self._state = "listing"
        version = "" if self._is_unavailable else self._resource_version or "0"
        self._unreadable.clear()
        try:
            listing = await self._list_at(version)
        except StatusError as error:
            if version == "" or verdict_on(error) is not Verdict.EXPIRED:
                raise
            # Only the newest state can be had; a backoff would not change that.
            self._is_unavailable = True
            version = ""
            self._unreadable.clear()
            listing = await self._list_at(version)
        if version == "0" and listing.pages > 1:
            self._is_paginated = True  # the watch cache ignores limits, so this server has none
        self._listed(await self._arrivals.take_all(listing.items), listing.resource_version)

    async def _list_at(self, version: str) -> ObjectList[T]:
        # A limit would take a list at a resourceVersion away from the watch cache and to etcd.
        page_size = PAGE_SIZE if version in ("", "0") or self._is_paginated else None
        return await self._source.list(resource_version=version, page_size=page_size, report=self._leave_out)

    def _listed(self, objects: Sequence[T], version: str) -> None:
        self._has_listed = True
        self._is_unavailable = False
        self._streams_cut = 0
        self._lists += 1
        self._resource_version = version
        self._in_step_at = trio.current_time()
        self._succeeded()
        self._sink.replace(objects, version, unreadable=frozenset(self._unreadable))

    async def _read_initial(self, source: EventSource[T]) -> bool:
        """Read a streamed list; say whether its end has come in time.

        Raises:
            trio.EndOfChannel: The stream has ended before.
        """
        self._state, self._last_contact = "streaming", trio.current_time()
        self._unreadable.clear()
        listing = await read_streamed_list(source, self._arrivals.take, self._came)
        if listing is None:
            return False
        # no checkpoint between the end of the list and what came with it
        self._listed(listing.objects, listing.resource_version)
        self._is_ordered = True
        self._write(listing.rest)
        return True

    def _came(self, count: int) -> None:
        self._events += count
        self._last_contact = trio.current_time()

    def _is_without_streams(self, error: StatusError | UnexpectedAnswerError | DecodeError) -> bool:
        """Whether an error of a streamed list means to list plainly at once; if not, to stream again at once.

        Raises:
            TrioformerError: ``error``, when there is nothing to be done at once.
        """
        if isinstance(error, BadRequestError | InvalidError):
            logger.info("%s: no streamed lists here, listing plainly from now on: %s", self._source.name, error)
            self._streams_lists = False
            return True
        verdict = verdict_on(error)
        if verdict is Verdict.EXPIRED and not self._is_unavailable:
            self._is_unavailable = True
            return False
        self._lists_next = verdict is not Verdict.HOPELESS
        raise error

    # --- watching ---

    async def _watch(self) -> bool:
        """Watch once, with a streamed list first if nothing has been listed; say whether the next list may be one."""
        began = trio.current_time()
        events, watches = self._events, self._watches
        has_ended = gave_up = is_reported = False
        at_least = 0.0
        try:
            gave_up = not await self._read_watch()
        except trio.EndOfChannel:
            has_ended = True
        except (ConnectionFailedError, TooManyRequestsError) as error:
            is_reported = True
            self._failed(error)
            at_least = retry_after(error, self._random)
        except (StatusError, UnexpectedAnswerError, DecodeError) as error:
            if not self._has_listed:
                return not self._is_without_streams(error)
            if self._watches == watches or not self._is_passing(error):
                raise
            is_reported = True
        finally:
            lived = trio.current_time() - began
            accepted = self._watches > watches
            if accepted and lived >= HEALTHY_AFTER:
                self._backoff.reset()
        if accepted and not self._has_listed and not at_least:
            # A busy server that does not know streamed lists keeps the deadline moving until the watch's own end.
            if self._stream_was_cut(gave_up or (has_ended and lived >= FIRST_EVENT_PATIENCE), lived):
                return False
        elif accepted and lived < VERY_SHORT and self._events == events and not is_reported:
            raise ConnectionFailedError(f"the server ended a watch of {self._source.name} at once, without an event")
        if not accepted or lived < VERY_SHORT or at_least:
            await self._back_off(at_least)
        elif lived < HEALTHY_AFTER:
            await trio.sleep(min(self._options.backoff.initial, lived * PAUSE_SHARE))
        return True

    async def _read_watch(self) -> bool:
        """Open a watch and read it to its end; False when it was to begin with a list that had no end.

        Raises:
            trio.EndOfChannel: It has ended in the middle of a streamed list.
        """
        is_initial = not self._has_listed
        timeout, allowed = self._limits(is_initial)
        version = "" if is_initial and self._is_unavailable else self._resource_version
        with trio.CancelScope(deadline=trio.current_time() + LONGEST_SILENCE) as opening:
            async with self._source.watch(
                resource_version=version,
                timeout_seconds=timeout,
                send_initial_events=is_initial,
                report=self._leave_out,
            ) as source:
                opening.deadline = math.inf
                self._watches += 1
                # A watch from no particular version begins with the present state, in no order of versions.
                self._is_ordered = version not in ("", "0")
                if is_initial and not await self._read_initial(source):
                    return False
                await self._read(source, allowed=allowed)
        if opening.cancelled_caught:
            raise ConnectionFailedError(f"no answer to a watch of {self._source.name} for {LONGEST_SILENCE:g} s")
        return True

    def _limits(self, is_initial: bool) -> tuple[int, float]:
        """The ``timeoutSeconds`` of the next watch, and how long it may be silent before its first bookmark."""
        silence = self._options.max_silence
        if silence < LONGEST_SILENCE and not is_initial:
            return int(silence - SHORT_WATCH_MARGIN * (1 + self._random.random())), silence
        timeout = MIN_WATCH_TIMEOUT + int(self._random.random() * MIN_WATCH_TIMEOUT)
        return timeout, min(timeout + END_GRACE, silence if silence < LONGEST_SILENCE else math.inf)

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
        sink = self._sink
        self._state, self._watching_since = "watching", trio.current_time()
        try:
            with trio.CancelScope(deadline=trio.current_time() + allowed) as guard:
                while True:
                    try:
                        batch = await source.receive_batch()
                    except trio.EndOfChannel:
                        return
                    # no checkpoint between taking the events and writing them to the sink
                    if self._write(batch):
                        allowed = self._options.max_silence
                    self._events += len(batch)
                    if self._failures:
                        self._succeeded()
                    if not sink.has_room:
                        guard.deadline = math.inf  # a slow reader behind the sink is not the server's silence
                        await sink.wait_for_room()
                    self._last_contact = now = trio.current_time()
                    if guard.deadline > now + allowed or guard.deadline < now + allowed - DEADLINE_STEP:
                        guard.deadline = now + allowed
        finally:
            self._in_step_at = trio.current_time()
        if guard.cancelled_caught:
            logger.warning("watch of %s was silent for %g s; watching again", self._source.name, allowed)

    def _write(self, batch: Sequence[WatchEvent[T]]) -> bool:
        """Write events to the sink; say whether there was a bookmark among them."""
        sink, take = self._sink, self._arrivals.take
        has_bookmark = False
        for kind, obj in batch:
            if kind == "BOOKMARK":
                has_bookmark = True
                sink.bookmark(obj.resource_version)
            else:
                taken = take(obj)
                if taken is None:
                    pass
                elif kind == "MODIFIED":
                    sink.update(taken)
                elif kind == "ADDED":
                    sink.add(taken)
                else:
                    sink.delete(taken)
            self._is_ordered = self._is_ordered or kind != "ADDED"
            if self._is_ordered:
                self._resource_version = obj.resource_version or self._resource_version
        return has_bookmark

    def _stream_was_cut(self, has_no_end: bool, lived: float) -> bool:
        """Note that a streamed list has not come to its end; say whether to list plainly instead, from now on."""
        self._streams_cut += 1
        if has_no_end or self._streams_cut > 1:
            logger.warning(
                "%s: a streamed list had no end after %.0f s; listing plainly from now on", self._source.name, lived
            )
            self._streams_lists = False
        return not self._streams_lists

    # --- success and failure ---

    def _leave_out(self, lost: Undecodable) -> None:
        """Count and report an object that cannot be taken; what is known of it stays as it is.

        Raises:
            DecodeError: It was deleted, and only a list can tell which one it was.
        """
        self._undecodable += 1
        self._unreadable.add(lost.key)
        self._options.undecodable_handler(lost)
        if lost.event_type == "DELETED":
            raise DecodeError(f"a deletion of {lost.key or 'an unknown object'} does not decode; listing again")

    def _succeeded(self) -> None:
        self._failures = 0
        self._last_error = None
        self._fatal_since = None
        self._last_contact = trio.current_time()

    def _failed(self, error: TrioformerError) -> None:
        """Count and report a failure; raise it if waiting will not mend it and nothing was ever listed."""
        self._failures += 1
        self._last_error = error
        hopeless = verdict_on(error) is Verdict.HOPELESS or isinstance(error, TransformError)
        if self._lists or not hopeless or self._options.retry_forever:
            self._fatal_since = None
        else:
            now = trio.current_time()
            if self._fatal_since is None:
                self._fatal_since = now
            # A server may be given a role or a kind meanwhile; a program's own function stays what it is.
            grace_period = 0.0 if isinstance(error, TransformError) else self._options.grace_period
            if now >= self._fatal_since + grace_period:
                error.add_note(
                    f"informer of {self._source.name}: nothing but such answers for {now - self._fatal_since:g} s"
                )
                raise error
        if self._options.watch_error_handler is not None:
            self._options.watch_error_handler(error)
        elif isinstance(error, ExpiredError):
            logger.info("%s: the watch's resourceVersion has expired; listing again", self._source.name)
        else:
            logger.warning("%s: %s", self._source.name, error)

    async def _back_off(self, at_least: float) -> None:
        delay = self._backoff.next_delay(at_least=at_least)
        now = trio.current_time()
        if self._fatal_since is not None:
            delay = min(delay, self._fatal_since + self._options.grace_period - now)
        self._state = "backing off"
        self._retry_at = now + delay
        await trio.sleep_until(self._retry_at)
        self._retry_at = math.inf
