"""What a reflector is doing: its phase, its counts, its failures, and how old the data is."""

from __future__ import annotations

import enum
import math
from typing import final

import attrs
import trio

from ..._retry import VERY_SHORT, ErrorClass, classify_error
from ...errors import ExpiredError, TransformError, TrioformerError
from ._options import ReflectorOptions, logger


class InformerPhase(enum.StrEnum):
    """What a reflector or an informer is doing, from its start to its end."""

    NOT_STARTED = "not started"
    CONNECTING = "connecting"
    LISTING = "listing"
    READING_WATCH_LIST = "reading watch-list"
    WAITING_FOR_BOOKMARK = "waiting for bookmark"
    """The objects of a watch-list have come, and the bookmark that ends it has not."""
    WATCHING = "watching"
    BACKING_OFF = "backing off"
    STOPPED = "stopped"
    FAILED = "failed"


@final
@attrs.frozen
class ReflectorStatistics:
    """What a reflector is doing, and how well."""

    phase: InformerPhase
    """What it is doing."""
    last_error: Exception | None
    """The newest failure; None after a success."""
    failures_in_a_row: int
    """Failures since the last success."""
    retry_at: float
    """When backing off ends, on trio's clock; infinity otherwise."""
    last_contact: float
    """When the server last sent anything, on trio's clock; minus infinity before it first did."""
    in_step_at: float
    """When the cache was last known to be the server's state; minus infinity before the first list.

    While a watch is open that is now, since what happens next will be told by it; unless the cache cannot take what it
    is told, or is too far behind to be told more.
    """
    lists: int
    """Successful lists, streamed ones included."""
    watches: int
    """Watches that the server accepted."""
    events: int
    """Events, bookmarks included."""
    undecodable: int
    """Objects that were left out because they do not decode."""
    resource_version: str
    """Where a watch would resume."""


@final
@attrs.frozen
class InformerState:
    """What an informer is doing, and how old what it holds may be; ``str()`` says it in words."""

    phase: InformerPhase
    """What it is doing."""
    error: Exception | None = None
    """Why, when it is backing off or has failed; otherwise the newest failure that nothing has made good yet."""
    until: float = math.inf
    """When backing off ends, on trio's clock; infinity otherwise."""
    age: float = math.inf
    """Seconds since the cache was last known to be the server's state: 0 while a watch is open, infinity before any."""

    def __str__(self) -> str:
        words = str(self.phase)
        if self.error is not None:
            words += f" after {self.error}"
        if self.phase not in (InformerPhase.NOT_STARTED, InformerPhase.WATCHING) and 0 < self.age < math.inf:
            words += f"; the data is {self.age:.0f} s old"
        return words


@final
@attrs.define(eq=False)
class ReflectorStatus:
    """Records what one reflector does; also decides which failures are final."""

    name: str
    options: ReflectorOptions
    _phase: InformerPhase = attrs.field(default=InformerPhase.NOT_STARTED, init=False)
    watching_since: float = attrs.field(default=math.inf, init=False)
    retry_at: float = attrs.field(default=math.inf, init=False)
    last_contact: float = attrs.field(default=-math.inf, init=False)
    lists: int = attrs.field(default=0, init=False)
    watches: int = attrs.field(default=0, init=False)
    events: int = attrs.field(default=0, init=False)
    undecodable: int = attrs.field(default=0, init=False)
    failures: int = attrs.field(default=0, init=False)
    fatal_since: float | None = attrs.field(default=None, init=False)
    """Since when there has been nothing but failures that waiting does not mend."""
    behind_since: float = attrs.field(default=math.inf, init=False)
    """Since when the sink has had no room."""
    _last_error: TrioformerError | None = attrs.field(default=None, init=False)
    _in_step_at: float = attrs.field(default=-math.inf, init=False)
    _out_of_step_since: float = attrs.field(default=math.inf, init=False)
    _transform_failed: bool = attrs.field(default=False, init=False)

    @property
    def phase(self) -> InformerPhase:
        """What the reflector is doing."""
        is_reading = self._phase is InformerPhase.READING_WATCH_LIST
        if is_reading and trio.current_time() - self.last_contact >= VERY_SHORT:
            return InformerPhase.WAITING_FOR_BOOKMARK
        return self._phase

    def record_phase(self, phase: InformerPhase) -> None:
        """Note what the reflector does now."""
        self._phase = phase

    def statistics(self, resource_version: str) -> ReflectorStatistics:
        """All of it, as it is now."""
        now = trio.current_time() if self._phase is InformerPhase.WATCHING else -math.inf
        # A watch that has lived for a second is a success, though nothing may have happened yet.
        is_well = now - self.watching_since >= VERY_SHORT and self._out_of_step_since == math.inf
        return ReflectorStatistics(
            phase=self.phase,
            last_error=None if is_well else self._last_error,
            failures_in_a_row=0 if is_well else self.failures,
            retry_at=self.retry_at,
            last_contact=self.last_contact,
            in_step_at=min(max(self._in_step_at, now), self.behind_since, self._out_of_step_since),
            lists=self.lists,
            watches=self.watches,
            events=self.events,
            undecodable=self.undecodable,
            resource_version=resource_version,
        )

    def record_watch_opened(self) -> None:
        """Note that a watch has brought the sink in step."""
        self._phase, self.watching_since = InformerPhase.WATCHING, trio.current_time()

    def record_watch_closed(self) -> None:
        """Note that a watch is over; until now it would have told what happened."""
        now = trio.current_time()
        if now - self.watching_since >= VERY_SHORT and self._out_of_step_since == math.inf:
            # It was a success, and what had failed before it is over, also for the first moments of the next one.
            self.failures, self._last_error = 0, None
        self._in_step_at = min(now, self.behind_since)
        self.behind_since = math.inf

    def record_events(self, count: int) -> None:
        """Note that the server has sent events."""
        self.events += count
        self.last_contact = trio.current_time()

    def record_list(self) -> None:
        """Note that a list has come, and the transform has failed on nothing of it so far."""
        self.lists += 1
        self._transform_failed = False
        self._in_step_at = trio.current_time()
        self.record_success()

    def record_out_of_step(self) -> None:
        """Note that something of what came could not be taken, so that the sink is not in step from now on."""
        self._out_of_step_since = min(self._out_of_step_since, trio.current_time())

    def record_in_step(self) -> None:
        """Note that the sink has taken a whole list."""
        if not self._transform_failed:
            self._out_of_step_since = math.inf

    def record_success(self) -> None:
        """Note that the server does what it is asked for."""
        self.failures = 0
        self._last_error = None
        self.fatal_since = None
        self.last_contact = trio.current_time()

    def record_failure(self, error: TrioformerError) -> None:
        """Count and report a failure.

        Raises:
            TrioformerError: ``error``, if waiting will not mend it and nothing was ever listed.
        """
        self.failures += 1
        self._last_error = error
        if isinstance(error, TransformError):
            self._transform_failed = True
            self.record_out_of_step()
        if self.is_final(error):
            now = trio.current_time()
            if self.fatal_since is None:
                self.fatal_since = now
            # A server may be given a role or a kind meanwhile; a program's own function stays what it is.
            grace_period = 0.0 if isinstance(error, TransformError) else self.options.grace_period
            if now >= self.fatal_since + grace_period:
                error.add_note(f"informer of {self.name}: nothing but such answers for {now - self.fatal_since:g} s")
                raise error
        else:
            self.fatal_since = None
        if self.options.watch_error_handler is not None:
            self.options.watch_error_handler(error)
        elif isinstance(error, ExpiredError):
            logger.info("%s: the watch's resourceVersion has expired; listing again", self.name)
        else:
            logger.warning("%s: %s", self.name, error)

    def is_final(self, error: TrioformerError) -> bool:
        """Whether an error is the end, after the grace period."""
        if self.lists or self.options.retry_forever:
            return False
        return classify_error(error) is ErrorClass.PERMANENT or isinstance(error, TransformError)
