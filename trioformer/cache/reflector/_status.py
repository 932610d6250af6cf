"""What a reflector has been through: its state, its counts, its failures, and how old the data is."""

from __future__ import annotations

import math
from typing import final

import attrs
import trio

from ..._retry import VERY_SHORT, Verdict, verdict_on
from ...errors import ExpiredError, TransformError, TrioformerError
from ._options import Phase, ReflectorOptions, ReflectorStatistics, logger


@final
@attrs.define(eq=False)
class Journal:
    """One reflector's record; also decides which failures are the end."""

    name: str
    options: ReflectorOptions
    phase: Phase = attrs.field(default="not started", init=False)
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
    _refused_since: float = attrs.field(default=math.inf, init=False)
    _transform_failed: bool = attrs.field(default=False, init=False)

    @property
    def state(self) -> Phase:
        """What the reflector is doing."""
        if self.phase == "streaming" and trio.current_time() - self.last_contact >= VERY_SHORT:
            return "waiting for bookmark"
        return self.phase

    def statistics(self, resource_version: str) -> ReflectorStatistics:
        """All of it, as it is now."""
        now = trio.current_time() if self.phase == "watching" else -math.inf
        # A watch that has lived for a second is a success, though nothing may have happened yet.
        is_well = now - self.watching_since >= VERY_SHORT and self._refused_since == math.inf
        return ReflectorStatistics(
            state=self.state,
            last_error=None if is_well else self._last_error,
            failures_in_a_row=0 if is_well else self.failures,
            retry_at=self.retry_at,
            last_contact=self.last_contact,
            in_step_at=min(max(self._in_step_at, now), self.behind_since, self._refused_since),
            lists=self.lists,
            watches=self.watches,
            events=self.events,
            undecodable=self.undecodable,
            resource_version=resource_version,
        )

    def opened(self) -> None:
        """Note that a watch has brought the sink in step."""
        self.phase, self.watching_since = "watching", trio.current_time()

    def closed(self) -> None:
        """Note that a watch is over; until now it would have told what happened."""
        now = trio.current_time()
        if now - self.watching_since >= VERY_SHORT and self._refused_since == math.inf:
            # It was a success, and what had failed before it is over, also for the first moments of the next one.
            self.failures, self._last_error = 0, None
        self._in_step_at = min(now, self.behind_since)
        self.behind_since = math.inf

    def came(self, count: int) -> None:
        """Note that the server has sent events."""
        self.events += count
        self.last_contact = trio.current_time()

    def listed(self) -> None:
        """Note that a list has come, and the transform has failed on nothing of it so far."""
        self.lists += 1
        self._transform_failed = False
        self._in_step_at = trio.current_time()
        self.succeeded()

    def refused(self) -> None:
        """Note that something of what came could not be taken, so that the sink is not in step from now on."""
        self._refused_since = min(self._refused_since, trio.current_time())

    def taken(self) -> None:
        """Note that the sink has taken a whole list."""
        if not self._transform_failed:
            self._refused_since = math.inf

    def succeeded(self) -> None:
        """Note that the server does what it is asked for."""
        self.failures = 0
        self._last_error = None
        self.fatal_since = None
        self.last_contact = trio.current_time()

    def failed(self, error: TrioformerError) -> None:
        """Count and report a failure.

        Raises:
            TrioformerError: ``error``, if waiting will not mend it and nothing was ever listed.
        """
        self.failures += 1
        self._last_error = error
        if isinstance(error, TransformError):
            self._transform_failed = True
            self.refused()
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
        return verdict_on(error) is Verdict.HOPELESS or isinstance(error, TransformError)
