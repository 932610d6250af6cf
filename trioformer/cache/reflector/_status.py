"""The status of a reflector: its phase, its counts, its failures, and the age of its data."""

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
    """What a reflector or an informer is doing."""

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
"""Seconds after which a watch without a response counts as open: a proxy may hold back the headers until an event.

By then the client has probed the server, and would have closed the connection to a dead one.
"""


IGNORED_WARNING_PERIOD = 600.0
"""Seconds between two warnings about ignored objects; the others are counted, and logged at DEBUG."""


@final
@attrs.frozen
class ReflectorStatistics:
    """The phase of a reflector, its failures and its counts."""

    phase: InformerPhase
    """The current phase."""
    last_error: Exception | None
    """The last failure; None after a success."""
    failures_in_a_row: int
    """Failures since the last success."""
    retry_at: float
    """When backing off ends, on trio's clock; infinity otherwise."""
    last_contact: float
    """When the server last sent data, on trio's clock; minus infinity before the first response."""
    up_to_date_at: float
    """When the cache was last known to be up to date, on trio's clock; minus infinity before the first list.

    While a watch is open, this is now, unless the cache is too far behind to receive more events.
    """
    lists: int
    """Successful lists, including watch-lists."""
    watches: int
    """Watches that the server accepted."""
    events: int
    """Events, including bookmarks."""
    undecodable: int
    """Undecodable states of objects."""
    resource_version: str
    """The version from which a watch would resume."""


@final
@attrs.frozen
class InformerState:
    """The phase of an informer, its last error, and the age of its data; ``str()`` describes it in a sentence."""

    phase: InformerPhase
    """The current phase."""
    error: Exception | None = None
    """The last failure since the last success: the reason for backing off or for the end."""
    until: float = math.inf
    """When backing off ends, on trio's clock; infinity otherwise."""
    age: float = math.inf
    """Seconds since the cache was known to be up to date: 0 while a watch is open, infinity before the first list."""
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
    """Records the phase, counts and failures of one reflector, and decides which failures are final."""

    name: str
    options: ReflectorOptions
    _phase: InformerPhase = attrs.field(default=InformerPhase.NOT_STARTED, init=False)
    watching_since: float = attrs.field(default=math.inf, init=False)
    """When the watch began to count as open; may be in the future."""
    retry_at: float = attrs.field(default=math.inf, init=False)
    last_contact: float = attrs.field(default=-math.inf, init=False)
    lists: int = attrs.field(default=0, init=False)
    watches: int = attrs.field(default=0, init=False)
    events: int = attrs.field(default=0, init=False)
    undecodable: int = attrs.field(default=0, init=False)
    failures: int = attrs.field(default=0, init=False)
    final_since: float | None = attrs.field(default=None, init=False)
    """When a series of final errors began; None after any other result."""
    behind_since: float = attrs.field(default=math.inf, init=False)
    """When the sink became full; infinity if it has room."""
    _warned_at: float = attrs.field(default=-math.inf, init=False)
    _is_failure_logged: bool = attrs.field(default=False, init=False)
    """Whether this reflector has logged a failure since its last success."""
    _last_error: TrioformerError | None = attrs.field(default=None, init=False)
    _up_to_date_at: float = attrs.field(default=-math.inf, init=False)

    @property
    def phase(self) -> InformerPhase:
        """What the reflector is doing."""
        is_reading = self._phase is InformerPhase.READING_WATCH_LIST
        if is_reading and trio.current_time() - self.last_contact >= VERY_SHORT:
            return InformerPhase.WAITING_FOR_BOOKMARK
        if self._phase is InformerPhase.CONNECTING and trio.current_time() >= self.watching_since:
            return InformerPhase.WATCHING
        return self._phase

    def record_phase(self, phase: InformerPhase) -> None:
        """Record a new phase."""
        self._phase, self.watching_since = phase, math.inf

    def record_watch_requested(self, *, counts_as_open: bool) -> None:
        """Record the request of a watch.  ``counts_as_open``: it counts as open after some time without a response."""
        self.record_phase(InformerPhase.CONNECTING)
        if counts_as_open:
            self.watching_since = trio.current_time() + HELD_BACK_AFTER

    def record_watch_confirmed(self) -> None:
        """Record that the server has the version of the watch, which may still wait for its response."""
        if self._phase is InformerPhase.CONNECTING:
            self.record_watch_requested(counts_as_open=True)

    def statistics(self, resource_version: str) -> ReflectorStatistics:
        """Return a snapshot of the status."""
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
        """Record that a watch is open, which keeps the sink up to date."""
        self._phase, self.watching_since = InformerPhase.WATCHING, trio.current_time()

    def record_watch_closed(self) -> None:
        """Record that the watch is closed; it kept the sink up to date until now, if it was open."""
        if self.phase is not InformerPhase.WATCHING:
            return
        now = trio.current_time()
        if now - self.watching_since >= VERY_SHORT:
            # The watch was a success: the next watch must not report earlier failures in its first second.
            self.failures, self._last_error = 0, None
        self._up_to_date_at = min(now, self.behind_since)
        self.behind_since = math.inf

    def record_events(self, count: int) -> None:
        """Record that the server has sent events."""
        self.events += count
        self.last_contact = trio.current_time()

    def record_list(self) -> None:
        """Record a complete list."""
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
            TrioformerError: ``error``, if it is final and the grace period is over.
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
        """Report a failure: log each cause at first, and then once a minute for all informers of the program."""
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
        """Log an object that the cache ignores; as a warning at most once in ten minutes."""
        now = trio.current_time()
        is_due = now >= self._warned_at + IGNORED_WARNING_PERIOD
        if is_due:
            self._warned_at = now
        logger.log(logging.WARNING if is_due else logging.DEBUG, "%s: ignored: %s", self.name, error)

    def is_final(self, error: TrioformerError) -> bool:
        """Whether an error ends the reflector: a permanent error before the first list."""
        return not self.lists and not self.options.retry_forever and is_permanent(error)
