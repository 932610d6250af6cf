"""Acquire the Lease, and retry until an attempt succeeds.

The problem: a leader that crashes does not notify the candidates.  A candidate must therefore poll the Lease until it
has not changed for a whole lease duration::

    try ─▶ acquired ─▶ the term
     ▲ └─▶ held by another, or a conflict, or an error ─▶ wait ──┐
     └───────────────────────────────────────────────────────────┘

A wait ends at the earliest of these times:

- The next poll, which is due after 0.4 to 0.8 retry periods.  After an error, the next poll is due after 1 to 2.2 retry
  periods, or sooner if the connection failed.  If another candidate has just created the Lease, the next poll is due
  immediately.  If a watch event has shown a renewal since the last poll, the next poll is due 1 to 2.2 retry periods
  after this event, so a candidate with a working watch rarely polls.
- The expiry of the holder's lease.
- A watch event (``_lease_watch.py``) which shows that the Lease was released.

A wait is never shorter than the server's ``Retry-After`` header.

Source: ``acquire`` in client-go's ``tools/leaderelection/leaderelection.go``, which does not watch the Lease.
"""

from __future__ import annotations

import logging
from typing import final

import attrs
import trio

from .._retry import REQUEST_ERRORS, is_permanent, retry_after
from .._text import quoted
from ..errors import AlreadyExistsError, ConflictError
from ._background import background
from ._leadership import JITTER, RETRY_FACTORS, LeaderElectionOptions, Term
from ._lease_claim import LeaseClaim
from ._lease_watch import JITTER as WATCH_JITTER
from ._lease_watch import LeaseWatch

logger = logging.getLogger("trioformer.leaderelection")


@final
@attrs.frozen(kw_only=True)
class Wait:
    """The wait before the next attempt to acquire the Lease, in seconds."""

    delay: float
    """The time until the next poll."""
    at_least: float = 0.0
    """The minimum that the server requested with ``Retry-After``."""
    after_error: bool = False
    """Whether the Lease could not be read or written, so that the next attempt must not be put off."""
    after_conflict: bool = False
    """Whether another client wrote the Lease between this candidate's read and its write."""


class NotAcquiredError(Exception):
    """A single attempt did not acquire the Lease."""

    def __init__(self, delay: float) -> None:
        super().__init__("the lease was not acquired")
        self.delay = delay
        """The time until the next attempt, in seconds."""


@final
@attrs.define(eq=False)
class Acquisition:
    """A candidate's attempts to acquire the Lease, until one succeeds."""

    _claim: LeaseClaim
    _watch: LeaseWatch
    _identity: str
    _options: LeaderElectionOptions
    _permanent_since: float | None = attrs.field(default=None, init=False)
    """The time when the current series of permanent errors began."""
    _is_created: bool = attrs.field(default=False, init=False)
    """Whether another client created the Lease before this candidate could."""
    _logged: tuple[str, float] = attrs.field(default=("", 0.0), init=False)
    """The holder and the duration in the last log line."""

    async def run(self) -> Term:
        """Try to acquire the Lease until this candidate holds it.

        Raises:
            StatusError: All responses during ``grace_period`` seconds were permanent errors.
        """
        self._claim.may_hold = False
        self._watch.begin()
        async with background(self._watch.run):
            while True:
                self._watch.use_hint()
                result = await self._try()
                if isinstance(result, Term):
                    self._claim.clear_failures()
                    return result
                if self._is_of_another(result):
                    self._watch.record_poll()
                self._log_holder()
                await self._wait(result)

    async def run_once(self) -> Term:
        """Try to acquire the Lease once.

        Raises:
            NotAcquiredError: Another candidate holds the Lease, or a request failed.
        """
        self._claim.may_hold = False
        result = await self._try()
        if isinstance(result, Wait):
            raise NotAcquiredError(max(result.delay, result.at_least))
        self._claim.clear_failures()
        return result

    async def _try(self) -> Term | Wait:
        claim, options = self._claim, self._options
        poll_delay = options.retry_period * options.rng.uniform(*RETRY_FACTORS)
        try:
            term = await claim.try_acquire()
        except ConflictError as error:
            claim.failed(error, "another client wrote it first", logging.INFO)
            self._permanent_since = None
            if isinstance(error, AlreadyExistsError) and not self._is_created:
                # The version of the new Lease is not known, so it cannot be watched yet.
                self._is_created, poll_delay = True, options.rng.uniform(0, WATCH_JITTER)
            return Wait(delay=poll_delay, after_conflict=True)
        except REQUEST_ERRORS as error:
            claim.failed(error, "cannot be acquired, retrying")
            self._check_permanent(error)
            delay = claim.delay_after(error, self._retry_delay())
            return Wait(delay=delay, at_least=retry_after(error, options.rng), after_error=True)
        self._permanent_since = None
        return Wait(delay=poll_delay) if term is None else term

    def _retry_delay(self) -> float:
        return self._options.retry_period * (1 + JITTER * self._options.rng.random())

    def _is_of_another(self, wait: Wait) -> bool:
        """Return True if another candidate holds the Lease or has just acquired it."""
        is_own = self._claim.holder == self._identity
        return self._claim.is_held_by_another() or (wait.after_conflict and not is_own)

    def _check_permanent(self, error: Exception) -> None:
        """Raise the error if every response during the grace period was a permanent error."""
        if not is_permanent(error):
            self._permanent_since = None
            return
        now = trio.current_time()
        if self._permanent_since is None:
            self._permanent_since = now
        if now - self._permanent_since >= self._options.grace_period:
            error.add_note(f"while {self._identity!r} waited for lease {self._claim}")
            raise error

    def _log_holder(self) -> None:
        held = (self._claim.holder, self._claim.duration)
        if self._claim.holder and held != self._logged:
            self._logged = held
            logger.info(
                "lease %s: held by %s; %r waits until it has not been renewed for %g s",
                self._claim,
                quoted(self._claim.holder),
                self._identity,
                self._claim.duration,
            )

    async def _wait(self, wait: Wait) -> None:
        claim, since = self._claim, trio.current_time()
        due = since + wait.delay
        if wait.at_least:
            await trio.sleep(wait.at_least)
        while True:
            # Wake up at the expiry too, so that a failed leader is replaced at once.
            with trio.move_on_at(min(due, claim.expires_at)):
                await self._watch.wait_released()
                return
            if wait.after_error or claim.observed_at <= since:
                return
            since = claim.observed_at
            due = since + self._retry_delay()
