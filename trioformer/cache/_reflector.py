"""Keeping a sink in step with the server (client-go ``tools/cache/reflector.go``).

List once, then watch from the list's resourceVersion, for ever.  What can go wrong decides what comes next:

=====================================================  ==========================================================
what happened                                          what the reflector does
=====================================================  ==========================================================
list: expired, or resourceVersion too large            list again at once, from the newest state (``""``)
list: anything else                                    report, back off, list again
watch cannot connect, or 429 (answer or event)         report, back off (at least ``Retry-After``), watch again
watch ends or breaks after 30 s or more                watch again at once from the last resourceVersion
watch ends or breaks after 1 s or more                 pause for a tenth of its life, watch again
watch ends or breaks within a second, after events     back off, watch again
watch ends within a second without an event            report, back off, list again
410, as an answer or as an event                       back off, list again from the last resourceVersion
any other answer or ERROR event, a frame that is none  report, back off, list again
watch is silent for longer than it may be              break it, watch again
=====================================================  ==========================================================

Every way round the loop passes a backoff or a watch that lived for a second, and the backoff starts anew only after a
watch has lived for 30 s: a server that fails at once, cleanly or not, is never asked in a tight loop.
A proxy that cuts every watch short costs a tenth of the time, not most of it.

Why silence needs a rule: a connection whose other end is gone without a word looks like a watch with nothing to tell.
The server promises an end after ``timeoutSeconds``, and, once it has sent a bookmark, another about every minute.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar, final

import attrs
import trio

from .._backoff import Backoff, BackoffPolicy
from ..errors import (
    BadRequestError,
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    ForbiddenError,
    MethodNotAllowedError,
    NotFoundError,
    StatusError,
    TooManyRequestsError,
    TrioformerError,
    UnauthorizedError,
    UnexpectedAnswerError,
)
from ..models import KubernetesObject
from ._list_watch import EventSource, ListWatch
from ._sink import Sink

T = TypeVar("T", bound=KubernetesObject)

PAGE_SIZE = 500
MIN_WATCH_TIMEOUT = 300
"""Seconds; each watch asks for a random time between this and its double, so that they do not all end together."""
HEALTHY_AFTER = 30.0
"""Seconds that a watch must have lived for the backoff to start anew."""
VERY_SHORT = 1.0
"""Seconds; a watch that ends sooner, without an event, was refused in all but name."""
LONGEST_RETRY_AFTER = 300.0
"""Seconds that a server may put us off for with ``Retry-After``; more is an error of its own."""
PAUSE_SHARE = 0.1
"""How much of a short watch's life is waited before the next one."""
END_GRACE = 30.0
"""Seconds that a watch may outlive its ``timeoutSeconds``."""
SILENCE_AFTER_BOOKMARK = 90.0
"""Seconds without a word that a server may take which is known to send bookmarks."""

DEADLINE_STEP = 1.0
"""Seconds that the deadline may lag behind: moving it for every event of a storm would cost more than the event."""

WatchErrorHandler: TypeAlias = Callable[[Exception], None]
"""Told of every failure that the reflector goes on from; must be quick."""

RETRIED = (StatusError, ConnectionFailedError, UnexpectedAnswerError, DecodeError)
FATAL = (BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, MethodNotAllowedError)
"""Answers that waiting does not mend."""

logger = logging.getLogger("trioformer.cache")


@final
@attrs.frozen
class ReflectorOptions:
    """How a reflector behaves when things go wrong."""

    backoff: BackoffPolicy = attrs.field(factory=BackoffPolicy)
    """The delays between tries."""
    grace_period: float = 30.0
    """Before the first sync: seconds of nothing but answers that waiting does not mend, before one is raised."""
    retry_forever: bool = False
    """Never raise them; client-go's behaviour."""
    watch_error_handler: WatchErrorHandler | None = None
    """Told of every failure; by default they are logged."""


@final
@attrs.frozen
class ReflectorStatistics:
    """What a reflector is doing, and how well."""

    state: str
    """``idle``, ``listing``, ``watching``, or ``backing off``."""
    last_error: Exception | None
    """The newest failure; None after a success."""
    failures_in_a_row: int
    """Failures since the last success."""
    retry_at: float
    """When backing off ends, on trio's clock; infinity otherwise."""
    last_contact: float
    """When the server last sent anything, on trio's clock; minus infinity before it first did."""
    lists: int
    """Successful lists."""
    watches: int
    """Watches that the server accepted."""
    events: int
    """Events, bookmarks included."""
    resource_version: str
    """Where a watch would resume."""


@final
class Reflector(Generic[T]):
    """Feeds a sink from a list and a watch until it is cancelled.

    Args:
        list_watch: Where to read.
        sink: Where to write; written to between checkpoints, so cancellation never splits a change.
        options: What to do about failures.
        rng: Randomness of watch timeouts and backoff.
    """

    _source: ListWatch[T]
    _sink: Sink[T]
    _options: ReflectorOptions
    _random: random.Random
    _backoff: Backoff
    _resource_version: str
    _is_unavailable: bool
    _is_paginated: bool
    _fatal_since: float | None
    _state: str
    _watching_since: float
    _last_error: Exception | None
    _failures: int
    _retry_at: float
    _last_contact: float
    _lists: int
    _watches: int
    _events: int

    def __init__(
        self,
        list_watch: ListWatch[T],
        sink: Sink[T],
        options: ReflectorOptions | None = None,
        *,
        rng: random.Random | None = None,
    ) -> None:
        self._source = list_watch
        self._sink = sink
        self._options = options if options is not None else ReflectorOptions()
        self._random = rng if rng is not None else random.Random()
        self._backoff = Backoff(self._options.backoff, rng=self._random)
        self._resource_version = ""
        self._is_unavailable = self._is_paginated = False
        self._fatal_since = None
        self._state = "idle"
        self._last_error = None
        self._retry_at, self._last_contact, self._watching_since = math.inf, -math.inf, math.inf
        self._failures = self._lists = self._watches = self._events = 0

    @property
    def state(self) -> str:
        """``idle``, ``listing``, ``watching`` or ``backing off``."""
        return self._state

    def statistics(self) -> ReflectorStatistics:
        """What the reflector is doing, and how well."""
        # A watch that has lived for a second is a success, though nothing may have happened yet.
        is_well = self._state == "watching" and trio.current_time() - self._watching_since >= VERY_SHORT
        return ReflectorStatistics(
            state=self._state,
            last_error=None if is_well else self._last_error,
            failures_in_a_row=0 if is_well else self._failures,
            retry_at=self._retry_at,
            last_contact=self._last_contact,
            lists=self._lists,
            watches=self._watches,
            events=self._events,
            resource_version=self._resource_version,
        )

    async def run(self) -> None:
        """List, watch, and go on from every failure; until cancelled.

        Raises:
            StatusError: Before the first list has succeeded: one that waiting does not mend, after the grace period.
            ConnectionFailedError: Likewise, when the server's certificate does not verify.
        """
        while True:
            at_least = 0.0
            try:
                await self._list()
                await self._watch()
            except RETRIED as error:
                self._failed(error)
                at_least = self._retry_after(error)
            await self._back_off(at_least)

    # --- listing ---

    async def _list(self) -> None:
        self._state = "listing"
        version = self._relist_version()
        try:
            listing = await self._source.list(resource_version=version, page_size=self._page_size(version))
        except StatusError as error:
            if version == "" or not (isinstance(error, ExpiredError) or error.is_too_large_resource_version):
                raise
            # Only the newest state can be had; a backoff would not change that.
            self._is_unavailable = True
            listing = await self._source.list(resource_version="", page_size=self._page_size(""))
        if version == "0" and listing.pages > 1:
            self._is_paginated = True  # the watch cache ignores limits, so this server has none
        self._is_unavailable = False
        self._lists += 1
        self._resource_version = listing.resource_version
        self._succeeded()
        self._sink.replace(listing.items, listing.resource_version)

    def _relist_version(self) -> str:
        """Any state for the first list; later never one older than has been seen; the newest if that is gone."""
        if self._is_unavailable:
            return ""
        return self._resource_version or "0"

    def _page_size(self, version: str) -> int | None:
        # A limit would take a list at a resourceVersion away from the watch cache and to etcd.
        return PAGE_SIZE if version in ("", "0") or self._is_paginated else None

    # --- watching ---

    async def _watch(self) -> None:
        """Watch again and again; returns never, raises what only a list can mend."""
        while True:
            began = trio.current_time()
            events = self._events
            accepted = is_reported = False
            at_least = 0.0
            timeout = MIN_WATCH_TIMEOUT + int(self._random.random() * MIN_WATCH_TIMEOUT)
            try:
                async with self._source.watch(
                    resource_version=self._resource_version, timeout_seconds=timeout
                ) as source:
                    accepted = True
                    self._watches += 1
                    self._state, self._watching_since = "watching", trio.current_time()
                    await self._read(source, allowed=timeout + END_GRACE)
            except ConnectionFailedError as error:
                is_reported = True
                self._failed(error)
            except TooManyRequestsError as error:
                is_reported = True
                self._failed(error)
                at_least = self._retry_after(error)
            finally:
                lived = trio.current_time() - began
                if accepted and lived >= HEALTHY_AFTER:
                    self._backoff.reset()
            if accepted and lived < VERY_SHORT and self._events == events and not is_reported:
                raise ConnectionFailedError(
                    f"the server ended a watch of {self._source.name} at once, without an event"
                )
            if not accepted or lived < VERY_SHORT or at_least:
                await self._back_off(at_least)
            elif lived < HEALTHY_AFTER:
                await trio.sleep(min(self._options.backoff.initial, lived * PAUSE_SHARE))

    async def _read(self, source: EventSource[T], *, allowed: float) -> None:
        """Pass events on until the stream ends, or is silent for longer than ``allowed`` seconds."""
        sink = self._sink
        # What a watch from no particular version begins with is the present state, in no order of versions.
        is_ordered = self._resource_version not in ("", "0")
        with trio.CancelScope(deadline=trio.current_time() + allowed) as guard:
            while True:
                try:
                    batch = await source.receive_batch()
                except trio.EndOfChannel:
                    return
                # no checkpoint between taking the events and writing them to the sink
                for kind, obj in batch:
                    if kind == "MODIFIED":
                        sink.update(obj)
                    elif kind == "ADDED":
                        sink.add(obj)
                    elif kind == "DELETED":
                        sink.delete(obj)
                    else:
                        allowed = SILENCE_AFTER_BOOKMARK
                        sink.bookmark(obj.resource_version)
                    is_ordered = is_ordered or kind != "ADDED"
                    if is_ordered:
                        self._resource_version = obj.resource_version or self._resource_version
                self._events += len(batch)
                if self._failures:
                    self._succeeded()
                if not sink.has_room:
                    guard.deadline = math.inf  # a slow reader behind the sink is not the server's silence
                    await sink.wait_for_room()
                self._last_contact = now = trio.current_time()
                if guard.deadline > now + allowed or guard.deadline < now + allowed - DEADLINE_STEP:
                    guard.deadline = now + allowed
        if guard.cancelled_caught:
            logger.warning("watch of %s was silent for %g s; watching again", self._source.name, allowed)

    # --- success and failure ---

    def _succeeded(self) -> None:
        self._failures = 0
        self._last_error = None
        self._fatal_since = None
        self._last_contact = trio.current_time()

    def _failed(self, error: TrioformerError) -> None:
        """Count and report a failure; raise it if waiting will not mend it and nothing was ever listed."""
        self._failures += 1
        self._last_error = error
        hopeless = isinstance(error, FATAL) or (isinstance(error, ConnectionFailedError) and error.permanent)
        if self._lists or not hopeless or self._options.retry_forever:
            self._fatal_since = None
        else:
            now = trio.current_time()
            if self._fatal_since is None:
                self._fatal_since = now
            if now >= self._fatal_since + self._options.grace_period:
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

    def _retry_after(self, error: Exception) -> float:
        """What the server asked for, a little more so that not all clients come back at once, and not without end."""
        asked = float(error.details.retry_after_seconds) if isinstance(error, StatusError) else 0.0
        return min(asked, LONGEST_RETRY_AFTER) * (1 + PAUSE_SHARE * self._random.random())
