"""The status of a reflector: its phase, its failures, its counts, and the age of its data."""

from __future__ import annotations

import enum
import logging
import math
from typing import final

import attrs
import trio

from ..._retry import VERY_SHORT, count_failure, is_permanent
from ...errors import DecodeError, ExpiredError, TrioformerError
from .._bad_objects import Quarantined, in_words
from ._options import ReflectorOptions, logger


class InformerPhase(enum.StrEnum):
    """The phase of a reflector or an informer."""

    NOT_STARTED = "not started"
    CONNECTING = "connecting"
    LISTING = "listing"
    READING_WATCH_LIST = "reading watch-list"
    WAITING_FOR_BOOKMARK = "waiting for bookmark"
    """A watch-list has sent nothing for a second, and its end bookmark has not arrived yet."""
    WATCHING = "watching"
    BACKING_OFF = "backing off"
    STOPPED = "stopped"
    FAILED = "failed"


HELD_BACK_AFTER = 50.0
"""The time after which a watch without a response counts as open, in seconds; a proxy may delay the headers.

Within this time, the client has probed the server, and has closed the connection if it is dead.
"""


IGNORED_WARNING_PERIOD = 600.0
"""The shortest time between two warnings about ignored objects, in seconds.  Other ignored objects are logged at
DEBUG."""


@final
@attrs.frozen
class ReflectorStatistics:
    """Statistics about a reflector: its phase, its failures and its counts."""

    phase: InformerPhase
    """The current phase."""
    last_error: Exception | None
    """The last failure, or None after a success."""
    failures_in_a_row: int
    """The number of failures since the last success."""
    retry_at: float
    """The time when backing off ends, on trio's clock; infinity in other phases."""
    last_contact: float
    """The time when the server last sent data, on trio's clock; minus infinity before the first response."""
    up_to_date_at: float
    """The time when the cache was last known to be up to date, on trio's clock; minus infinity before the first list.

    While a watch is open, this is the current time, unless the cache is too far behind to receive more events.
    """
    lists: int
    """The number of successful lists, including watch-lists."""
    watches: int
    """The number of watches that the server accepted."""
    events: int
    """The number of events, including bookmarks."""
    undecodable: int
    """The number of undecodable states of objects."""
    resource_version: str
    """The resourceVersion from which the next watch would resume."""


@final
@attrs.frozen
class InformerState:
    """The state of an informer: its phase, its last error, and the age of its data."""

    phase: InformerPhase
    """The current phase."""
    error: Exception | None = None
    """The last failure since the last success, which is the reason for backing off or for the end of the informer."""
    until: float = math.inf
    """The time when backing off ends, on trio's clock; infinity in other phases."""
    age: float = math.inf
    """The time since the cache was last up to date, in seconds; 0 while a watch is open, infinity before the first
    list."""
    quarantined: int = 0
    """The number of objects in quarantine."""
    first_quarantined: tuple[Quarantined, ...] = ()
    """The first five objects in quarantine; ``lister.quarantined()`` returns all."""

    def __str__(self) -> str:
        words = str(self.phase)
        if self.error is not None:
            words += f" after {self.error}"
        if self.phase not in (InformerPhase.NOT_STARTED, InformerPhase.WATCHING) and 0 < self.age < math.inf:
            words += f"; the data is {self.age:.0f} s old"
        if self.quarantined:
            words += f"; {in_words(self.quarantined, self.first_quarantined)}"
        return words


@final
@attrs.define(eq=False)
class ReflectorStatus:
    """A record of the phase, counts and failures of a reflector, which decides which failures are final."""

    name: str
    options: ReflectorOptions
    _phase: InformerPhase = attrs.field(default=InformerPhase.NOT_STARTED, init=False)
    watching_since: float = attrs.field(default=math.inf, init=False)
    """The time at which the watch begins to count as open, which may be in the future."""
    retry_at: float = attrs.field(default=math.inf, init=False)
    last_contact: float = attrs.field(default=-math.inf, init=False)
    lists: int = attrs.field(default=0, init=False)
    watches: int = attrs.field(default=0, init=False)
    events: int = attrs.field(default=0, init=False)
    undecodable: int = attrs.field(default=0, init=False)
    failures: int = attrs.field(default=0, init=False)
    final_since: float | None = attrs.field(default=None, init=False)
    """The time when a series of final errors began; None after any other outcome."""
    behind_since: float = attrs.field(default=math.inf, init=False)
    """The time when the sink became full; infinity if it has room."""
    _warned_at: float = attrs.field(default=-math.inf, init=False)
    _is_failure_logged: bool = attrs.field(default=False, init=False)
    """Whether this reflector has logged a failure since its last success."""
    _last_error: TrioformerError | None = attrs.field(default=None, init=False)
    _up_to_date_at: float = attrs.field(default=-math.inf, init=False)
    _events_before: int = attrs.field(default=0, init=False)
    """The number of events when the watch was opened."""

    @property
    def phase(self) -> InformerPhase:
        """The current phase of the reflector."""
        is_reading = self._phase is InformerPhase.READING_WATCH_LIST
        if is_reading and trio.current_time() - self.last_contact >= VERY_SHORT:
            return InformerPhase.WAITING_FOR_BOOKMARK
        if self._phase is InformerPhase.CONNECTING and trio.current_time() >= self.watching_since:
            return InformerPhase.WATCHING
        return self._phase

    def record_phase(self, phase: InformerPhase) -> None:
        """Record a change of the phase."""
        self._phase, self.watching_since = phase, math.inf

    def record_watch_requested(self, *, counts_as_open: bool) -> None:
        """Record that a watch was requested, and whether it counts as open after some time without a response."""
        self.record_phase(InformerPhase.CONNECTING)
        if counts_as_open:
            self.watching_since = trio.current_time() + HELD_BACK_AFTER

    def record_watch_confirmed(self) -> None:
        """Record that the server has reached the watch's version, even if it has not responded to the watch yet."""
        if self._phase is InformerPhase.CONNECTING:
            self.record_watch_requested(counts_as_open=True)

    def statistics(self, resource_version: str) -> ReflectorStatistics:
        """Return statistics about the reflector."""
        now = trio.current_time() if self.phase is InformerPhase.WATCHING else -math.inf
        # A watch that lasts for a second is a success, even without an event.
        is_healthy = now - self.watching_since >= VERY_SHORT
        return ReflectorStatistics(
            phase=self.phase,
            last_error=None if is_healthy else self._last_error,
            failures_in_a_row=0 if is_healthy else self.failures,
            retry_at=self.retry_at,
            last_contact=self.last_contact,
            up_to_date_at=min(max(self._up_to_date_at, now), self.behind_since),
            lists=self.lists,
            watches=self.watches,
            events=self.events,
            undecodable=self.undecodable,
            resource_version=resource_version,
        )

    def record_watch_opened(self) -> None:
        """Record that a watch is open, and that the sink is up to date from now on."""
        self._phase, self.watching_since = InformerPhase.WATCHING, trio.current_time()
        self._events_before = self.events

    def record_watch_closed(self) -> None:
        """Record that the watch is closed, and that the sink was up to date until now if the watch was a success.

        A watch that ends within a second without an event may have been too old from the start.
        """
        if self.phase is not InformerPhase.WATCHING:
            return
        now = trio.current_time()
        lasted = now - self.watching_since >= VERY_SHORT
        if lasted:
            # The watch was a success: the next watch must not report earlier failures in its first second.
            self.failures, self._last_error = 0, None
        if lasted or self.events != self._events_before:
            self._up_to_date_at = min(now, self.behind_since)
        self.behind_since = math.inf

    def record_events(self, count: int) -> None:
        """Record events from the server."""
        self.events += count
        self.last_contact = trio.current_time()

    def record_list(self) -> None:
        """Record a successful list."""
        self.lists += 1
        self._up_to_date_at = trio.current_time()
        self.record_success()

    def record_success(self) -> None:
        """Record a successful response."""
        self.failures = 0
        self._last_error = None
        self.final_since = None
        self.last_contact = trio.current_time()
        if self._is_failure_logged:
            self._is_failure_logged = False
            logger.info("%s: requests succeed again", self.name)

    def record_failure(self, error: TrioformerError) -> None:
        """Count a failure.

        Raises:
            TrioformerError: ``error`` is final and the grace period is over.
        """
        self.failures += 1
        self._last_error = error
        if self.is_final(error):
            now = trio.current_time()
            if self.final_since is None:
                self.final_since = now
            # A role or a kind may be created during the grace period.
            if now >= self.final_since + self.options.grace_period:
                error.add_note(f"informer of {self.name}: only permanent errors for {now - self.final_since:g} s")
                raise error
        else:
            self.final_since = None

    def report_failure(self, error: TrioformerError, retry_at: float) -> None:
        """Report a failure to the handler, or log it at most once a minute for each cause."""
        if self.options.watch_error_handler is not None:
            self.options.watch_error_handler(error)
            return
        count = count_failure(error, self.name)
        if not count:
            return
        if isinstance(error, ExpiredError):
            logger.info("%s: the watch's resourceVersion has expired; listing again", self.name)
            return
        self._is_failure_logged = True
        delay = retry_at - trio.current_time()
        then = f"retrying in {delay:.1f} s" if delay > 0 else "retrying now"
        if count > 1:
            then = f"failed {count} times since this was logged; {then}"
        elif self.final_since is not None:
            then += f", for {self.options.grace_period:g} s"
        elif not self.lists:
            then += " and until it succeeds; a trio.fail_after() around the start ends it"
        logger.warning("%s: %s; %s", self.name, error, then)

    def log_ignored(self, error: DecodeError) -> None:
        """Log an ignored object, as a warning at most once in ten minutes and otherwise at DEBUG."""
        now = trio.current_time()
        is_due = now >= self._warned_at + IGNORED_WARNING_PERIOD
        if is_due:
            self._warned_at = now
        logger.log(logging.WARNING if is_due else logging.DEBUG, "%s: ignored: %s", self.name, error)

    def is_final(self, error: TrioformerError) -> bool:
        """Return whether an error is final: it is permanent, and no list has succeeded yet."""
        return not self.lists and not self.options.retry_forever and is_permanent(error)
