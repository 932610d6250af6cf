"""What a candidate does with the Lease, one attempt at a time; the tasks are in ``_leader_election.py``.

Source: client-go ``tools/leaderelection/leaderelection.go``, ``tryAcquireOrRenew`` and ``release``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar, final

import attrs
import trio

from .._retry import REQUEST_ERRORS, Backoff, BackoffPolicy
from ..errors import ConflictError, ConnectionFailedError, NotFoundError, ServerError, StatusError
from ._leadership import Clocks, LeaderElectionOptions, Leadership, Stamp
from ._lease_lock import LeaseLock, LeaseRecord

R = TypeVar("R")

logger = logging.getLogger("trioformer.controller")

RELEASE_TRIES: Final = 3
"""How many failures end a release."""
RELEASE_BACKOFF: Final = BackoffPolicy(initial=0.1, factor=3.0, maximum=1.0, jitter=0.5)
RELEASE_CONFLICTS: Final = 5
"""How many conflicts of a release are followed by another try at once; the next ones count as failures."""


@final
@attrs.define(eq=False, repr=False)
class LeaseClaim:
    """A candidate's dealings with one Lease: what it has seen there, and what it wrote."""

    _lock: LeaseLock
    _identity: str
    _options: LeaderElectionOptions
    _clocks: Clocks = attrs.field(init=False)
    may_hold: bool = attrs.field(default=False, init=False)
    """Whether a write that would make the Lease ours was sent and was not refused."""
    renewals: int = attrs.field(default=0, init=False)
    failures: int = attrs.field(default=0, init=False)
    last_error: Exception | None = attrs.field(default=None, init=False)
    failure: Exception | None = attrs.field(default=None, init=False)
    """The last error since all was well."""
    _own: LeaseRecord = attrs.field(factory=LeaseRecord, init=False)  # as last written, or tried to
    _observed: LeaseRecord | None = attrs.field(default=None, init=False)
    _observed_at: float = attrs.field(default=-math.inf, init=False)
    _is_missing: bool = attrs.field(default=False, init=False)  # although another one should hold it
    _reported: str = attrs.field(default="", init=False)
    _last_logged: dict[str, str] = attrs.field(factory=dict, init=False)  # by what was tried

    def __attrs_post_init__(self) -> None:
        self._clocks = Clocks(self._options.boot_clock)

    def __str__(self) -> str:
        return str(self._lock)

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last seen; empty for nobody."""
        return "" if self._observed is None else self._observed.holder_identity

    @property
    def duration(self) -> float:
        """For how long the Lease is left alone after each change of it.

        What it names, if that is longer than ours.  Its holder counts with what it was told when it started: a shorter
        one, or none, was written by hand, and would make two leaders if it were believed.
        """
        named = 0 if self._observed is None else self._observed.lease_duration_seconds
        return max(float(named), self._options.lease_duration)

    @property
    def runs_out_at(self) -> float:
        """When another one's Lease runs out, on trio's clock, unless it is renewed; infinity if it is nobody's."""
        return self._observed_at + self.duration if self._is_anothers() else math.inf

    def calm(self) -> None:
        """Forget the failures until now: all is well, and the next one is news even if it is the same."""
        self.failure = None
        self._last_logged.clear()

    # --- attempts -----------------------------------------------------------------------------------------------------

    async def try_acquire(self) -> Leadership | None:
        """Take the Lease if nobody has it, or if whoever has it was silent for too long; None if not."""
        current, last = await self._ask(self._lock.get), self._observed
        if current is None and self._is_anothers():
            # Deleted by hand: whoever leads does not know it yet, and takes it again with the next renewal.
            self._tell_missing()
            return None
        self._is_missing = False
        self._observe(current)
        if self._is_anothers():
            return None
        if current is not None and current.holder_identity == self._identity:
            # Of a write whose answer did not come, or of a former life; its stamp may be anything.
            own = attrs.evolve(current, renew_time=self._own.renew_time)
        else:
            known = last if current is None else current
            own = LeaseRecord(
                holder_identity=self._identity,
                acquire_time=self._datetime(),
                renew_time=self._own.renew_time,
                lease_transitions=0 if known is None else known.lease_transitions + 1,
            )
        self._own = attrs.evolve(own, lease_duration_seconds=math.ceil(self._options.lease_duration))
        silent = ""
        if self.holder not in ("", self._identity):
            silent = f"; {self.holder!r} has not renewed it for {trio.current_time() - self._observed_at:.1f} s"
        stamp = await self._write()
        logger.info("lease %s: %r leads now, transitions %d%s", self, self._identity, own.lease_transitions, silent)
        return Leadership._create(
            self._identity, own.lease_transitions, self._clocks, self._options.lease_duration, stamp
        )

    def _is_anothers(self) -> bool:
        """Whether to leave the Lease alone; by the local clock since it was seen to change, and by nothing else."""
        return self.holder not in ("", self._identity) and trio.current_time() < self._observed_at + self.duration

    def _tell_missing(self) -> None:
        if not self._is_missing:
            left = self._observed_at + self.duration - trio.current_time()
            logger.warning(
                "lease %s: was deleted while %r held it, %r waits for another %.1f s",
                self,
                self.holder,
                self._identity,
                left,
            )
        self._is_missing = True

    def _observe(self, record: LeaseRecord | None, *, is_told: bool = True) -> None:
        """Note what the Lease says; its time begins anew when anything about it has changed."""
        if record != self._observed:
            self._observed, self._observed_at = record, trio.current_time()
        if is_told and self.holder != self._reported:
            self._reported = self.holder
            if self._options.on_new_leader is not None:
                self._options.on_new_leader(self._reported)

    async def try_renew(self, term: Leadership) -> bool:
        """Renew once; False if another one has it."""
        is_changed = False
        if self._lock.is_known:
            try:
                term._renewed = await self._write()
            except (ConflictError, NotFoundError) as error:
                is_changed = True  # by whom, and to what, is told below
                self.failed(error, "cannot be updated as it was, reading it", logging.DEBUG)
            except REQUEST_ERRORS as error:
                self.failed(error, "cannot be updated as it was, reading it")
            else:
                self.renewals += 1
                return True
        current = await self._ask(self._lock.get)
        self._observe(current)
        if current is None:
            deed, answer = "deleted", "created it again"
        elif current.holder_identity == self._identity:
            deed, answer = "changed", "renewed it all the same"
        elif not current.holder_identity and current.lease_transitions == term.transitions:
            deed, answer = "emptied", "taken it again"
        else:
            return False  # somebody leads, or has led meanwhile
        term._renewed = await self._write()
        self.renewals += 1
        if is_changed or deed != "changed":
            logger.warning("lease %s: was %s by somebody else, %r has %s", self, deed, self._identity, answer)
        return True

    async def release(self) -> None:
        """Let the next one have it at once (client-go ``release``); not to be cancelled, but not for ever either."""
        delays = Backoff(RELEASE_BACKOFF, rng=self._options.rng)
        failures = conflicts = 0
        with trio.CancelScope(shield=True, deadline=trio.current_time() + self._options.renew_deadline):
            while failures < RELEASE_TRIES:
                try:
                    current = await self._ask(self._lock.get)
                    self._observe(current, is_told=False)
                    if current is None or current.holder_identity != self._identity:
                        logger.info("lease %s: %r does not hold it, nothing to release", self._lock, self._identity)
                        return
                    now = self._datetime()
                    empty = LeaseRecord(
                        lease_duration_seconds=1,
                        acquire_time=now,
                        renew_time=now,
                        lease_transitions=current.lease_transitions,
                    )
                    await self._ask(partial(self._lock.update, empty))
                except REQUEST_ERRORS as error:
                    self.failed(error, "cannot be released, trying again")
                    conflicts += isinstance(error, ConflictError)
                    if isinstance(error, ConflictError) and conflicts <= RELEASE_CONFLICTS:
                        continue
                    failures += 1
                    await trio.sleep(delays.next_delay())
                else:
                    self._observe(empty, is_told=False)
                    logger.info("lease %s: released by %r", self._lock, self._identity)
                    return
        logger.warning(
            "lease %s: could not be released by %r; it runs out by itself in %g s",
            self._lock,
            self._identity,
            self._options.lease_duration,
        )

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _ask(self, request: Callable[[], Awaitable[R]]) -> R:
        patience = self._options.request_deadline
        with trio.move_on_after(patience):
            return await request()
        raise ConnectionFailedError(f"lease {self._lock}: no answer came within {patience:g} s")

    async def _write(self) -> Stamp:
        """Create or update the Lease with our record; returns when that was sent."""
        # The others see that it is alive by a change of the record, so that must differ even if our clock stands still.
        now, last = self._datetime(), self._own.renew_time
        if last is not None and now <= last:
            now = last + timedelta(microseconds=1)
        if self._observed is not None and now == self._observed.renew_time:
            now += timedelta(microseconds=1)
        self._own = attrs.evolve(self._own, renew_time=now)
        put = self._lock.update if self._lock.is_known else self._lock.create
        could_hold, self.may_hold = self.may_hold, True
        stamp = self._clocks.now()
        try:
            await self._ask(partial(put, self._own))
        except StatusError as error:
            # A server's own failure may have happened after the write; a refusal has not written.
            self.may_hold = could_hold or isinstance(error, ServerError)
            raise
        self._observe(self._own)
        return stamp

    def _datetime(self) -> datetime:
        return datetime.fromtimestamp(self._options.wall_clock(), UTC)

    def failed(self, error: Exception, what: str, level: int = logging.WARNING) -> None:
        """Count a failure, and log it unless it is the same as the last one of what was tried."""
        self.failures += 1
        self.last_error = self.failure = error
        line = f"{what}: {error}"
        is_known = self._last_logged.get(what) == line
        logger.log(logging.DEBUG if is_known else level, "lease %s: %s", self._lock, line)
        self._last_logged[what] = line
