"""Single attempts to acquire, renew and release the Lease.

``_acquire.py``, ``_hold.py`` and ``_release.py`` decide when to make an attempt.

Source: ``tryAcquireOrRenew`` and ``release`` in client-go's ``tools/leaderelection/leaderelection.go``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar, final

import attrs
import trio

from .._retry import QUICK_TRIES, REQUEST_ERRORS, Outcome, QuickTries, count_failure, outcome_of
from .._text import quoted
from ..errors import (
    ConflictError,
    ConnectionFailedError,
    DecodeError,
    ExecPluginError,
    NotFoundError,
    ServerError,
    StatusError,
)
from ._leadership import Clocks, LeaderElectionOptions, Stamp, Term
from ._lease_lock import MAX_INT32, LeaseLock, LeaseRecord

CLOCK_STEP: Final = timedelta(seconds=1)
"""The largest difference by which the wall clock may be behind the last renewal and count as stopped.  If the
difference is larger, the clock was set back."""

R = TypeVar("R")

logger = logging.getLogger("trioformer.leaderelection")


@final
@attrs.define(eq=False, repr=False)
class LeaseClaim:
    """A candidate's view of a Lease: the record that the candidate last observed, and the record that it last wrote."""

    _lock: LeaseLock
    _identity: str
    _options: LeaderElectionOptions
    _clocks: Clocks = attrs.field(init=False)
    group: str = attrs.field(default="", init=False)
    """A name for all claims that fail together.  A failure is then logged once for the whole group."""
    may_hold: bool = attrs.field(default=False, init=False)
    """Whether a write that acquires the Lease was sent and not rejected."""
    renewals: int = attrs.field(default=0, init=False)
    failures: int = attrs.field(default=0, init=False)
    last_error: Exception | None = attrs.field(default=None, init=False)
    failure: Exception | None = attrs.field(default=None, init=False)
    """The last error since the last success."""
    _own: LeaseRecord = attrs.field(factory=LeaseRecord, init=False)  # of the last write that was sent
    _observed: LeaseRecord | None = attrs.field(default=None, init=False)
    observed_at: float = attrs.field(default=-math.inf, init=False)
    """The time on trio's clock when the Lease was last observed to have changed."""
    _is_missing: bool = attrs.field(default=False, init=False)  # deleted before the observed holder's lease expired
    _reported: str = attrs.field(default="", init=False)  # the holder that on_new_leader was last called with
    _is_waiting_for_plugin: bool = attrs.field(default=False, init=False)
    _quick_tries: QuickTries = attrs.field(init=False)
    _last_logged: dict[str, str] = attrs.field(factory=dict, init=False)  # by what failed

    def __attrs_post_init__(self) -> None:
        self._clocks = Clocks(self._options.boot_clock)
        self._quick_tries = QuickTries(QUICK_TRIES, self._options.rng)

    def __str__(self) -> str:
        return str(self._lock)

    @property
    def holder(self) -> str:
        """The identity of the last observed holder, or an empty string if there is none."""
        return "" if self._observed is None else self._observed.holder_identity

    @property
    def duration(self) -> float:
        """How long this candidate waits after each change to the Lease before it acquires the Lease, in seconds.

        The value is the longer of the duration in the Lease and the duration in this candidate's options.  Even if
        another client has shortened or removed the duration in the Lease, the holder relies on its own duration. So a
        shorter wait could lead to two leaders.
        """
        observed = 0 if self._observed is None else self._observed.lease_duration_seconds
        return max(float(observed), self._options.lease_duration)

    @property
    def expires_at(self) -> float:
        """The time on trio's clock when another holder's lease expires, or infinity if there is no other holder."""
        return self.observed_at + self.duration if self.is_held_by_another() else math.inf

    @property
    def free_at(self) -> float:
        """The time on trio's clock when this candidate can acquire the Lease unless another candidate renews it."""
        return self.observed_at + (self.duration if self.holder not in ("", self._identity) else 0)

    @property
    def awaited(self) -> str:
        """A description of the credential plugin that the current request waits for, or an empty string."""
        return f"the credential plugin {quoted(self._lock.plugin)}" if self._is_waiting_for_plugin else ""

    def clear_failures(self) -> None:
        """Record a success, so that the next failure is logged even if it repeats an earlier failure."""
        self.failure = None
        self._last_logged.clear()
        self._quick_tries.reset()

    def delay_after(self, error: Exception, delay: float) -> float:
        """Return the seconds to wait after a failure.

        If the connection failed, the first ten waits are shorter than ``delay``.
        """
        if isinstance(error, ExecPluginError):
            return delay  # each attempt runs the plugin
        if outcome_of(error) is not Outcome.LOST or (quick := self._quick_tries.next_delay()) is None:
            return delay
        return min(delay, quick)

    # --- attempts -----------------------------------------------------------------------------------------------------

    async def try_acquire(self) -> Term | None:
        """Acquire the Lease if it has no holder or has expired; otherwise return None."""
        current, last = await self._send(self._lock.get), self._observed
        if current is None and self.is_held_by_another():
            # Another client deleted it.  Its holder does not know this yet, and creates it again with the next renewal.
            self._log_missing()
            return None
        self._is_missing = False
        self._observe(current)
        if self.is_held_by_another():
            return None
        if current is not None and current.holder_identity == self._identity:
            # A request without a response or a former process wrote it; its renewTime may have any value.
            own = attrs.evolve(current, renew_time=self._own.renew_time)
        else:
            known = last if current is None else current
            if known is not None and known.lease_transitions >= MAX_INT32:
                # The number is a fencing token, so it must not start again from 0.
                raise DecodeError(
                    f"lease {self}: leaseTransitions has reached its maximum, {MAX_INT32}; correct the lease"
                )
            own = LeaseRecord(
                holder_identity=self._identity,
                acquire_time=self._datetime(),
                renew_time=self._own.renew_time,
                lease_transitions=0 if known is None else known.lease_transitions + 1,
            )
        self._own = attrs.evolve(own, lease_duration_seconds=math.ceil(self._options.lease_duration))
        expired = ""
        if self.holder not in ("", self._identity):
            expired = f"; {quoted(self.holder)} had not renewed it for {trio.current_time() - self.observed_at:.1f} s"
        renewed_at = await self._write()
        logger.info("lease %s: acquired by %r, transitions %d%s", self, self._identity, own.lease_transitions, expired)
        return Term(self._identity, own.lease_transitions, self._clocks, self._options.lease_duration, renewed_at)

    def is_held_by_another(self) -> bool:
        """Return True if another candidate holds the Lease, and the Lease has not expired by the local clock."""
        return self.holder not in ("", self._identity) and trio.current_time() < self.observed_at + self.duration

    def _log_missing(self) -> None:
        if not self._is_missing:
            left = self.observed_at + self.duration - trio.current_time()
            logger.warning(
                "lease %s: deleted while %s held it; %r waits another %.1f s",
                self,
                quoted(self.holder),
                self._identity,
                left,
            )
        self._is_missing = True

    def _observe(self, record: LeaseRecord | None, *, notifies: bool = True) -> None:
        """Record the observed state of the Lease.  If the state has changed, the lease duration is measured anew."""
        if record != self._observed:
            self._observed, self.observed_at = record, trio.current_time()
        if notifies and self.holder != self._reported:
            self._reported = self.holder
            if self._options.on_new_leader is not None:
                self._options.on_new_leader(self._reported)

    def observe_renewal(self, record: LeaseRecord) -> None:
        """Record that a watch has shown a renewal by the observed holder.

        All other changes are left to the next poll, because events may be older than the last poll.
        """
        last = self._observed
        if last is None or record.holder_identity != last.holder_identity:
            return
        if record.renew_time is not None and last.renew_time is not None and record.renew_time > last.renew_time:
            self._observe(record)

    def observe_event(self, record: LeaseRecord) -> None:
        """Record the state of the Lease in an event, unless this candidate wrote it.

        The event may be older than the last poll.  Then the lease duration is measured from a later time than
        necessary, and the next attempt reads the Lease.
        """
        if record.holder_identity != self._identity:
            self._observe(record)

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Set annotations of the Lease with the next write."""
        self._lock.annotations = annotations

    async def try_renew(self, term: Term) -> bool:
        """Renew the Lease.  Return False if another candidate holds the Lease, or has held it in the meantime."""
        is_changed = False
        if self._lock.is_known:
            try:
                term.renewed_at = await self._write()
            except (ConflictError, NotFoundError) as error:
                is_changed = True  # what has changed is logged below
                self.failed(error, "cannot be updated, reading it", logging.DEBUG)
            except ExecPluginError:
                raise  # reading the lease would run the plugin again
            except REQUEST_ERRORS as error:
                self.failed(error, "cannot be updated, reading it")
            else:
                self.renewals += 1
                return True
        current = await self._send(self._lock.get)
        self._observe(current)
        if current is None:
            change, response = "deleted", "created it again"
        elif current.holder_identity == self._identity:
            change, response = "changed", "renewed it"
        elif not current.holder_identity and current.lease_transitions == term.transitions:
            change, response = "cleared", "acquired it again"
        else:
            return False  # another candidate leads, or has led in the meantime
        term.renewed_at = await self._write()
        self.renewals += 1
        if is_changed or change != "changed":
            logger.warning("lease %s: %s by another client; %r %s", self, change, self._identity, response)
        return True

    async def try_release(self) -> bool:
        """Release the Lease, so that another candidate can acquire it at once.

        Return False if this candidate does not hold the Lease.
        """
        current = await self._send(self._lock.get)
        self._observe(current, notifies=False)
        if current is None or current.holder_identity != self._identity:
            return False
        now = self._datetime()
        empty = LeaseRecord(
            lease_duration_seconds=1, acquire_time=now, renew_time=now, lease_transitions=current.lease_transitions
        )
        await self._send(partial(self._lock.update, empty))
        self._observe(empty, notifies=False)
        return True

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _obtain_credential(self) -> None:
        """Run the client's credential plugin if necessary, without the time limit of a request.

        The plugin may take a long time, because the user may have to log in.  The watchdog does not wait for the
        plugin.
        """
        self._is_waiting_for_plugin = bool(self._lock.plugin)
        try:
            await self._lock.obtain_credential()
        finally:
            self._is_waiting_for_plugin = False

    async def _send(self, request: Callable[[], Awaitable[R]]) -> R:
        await self._obtain_credential()
        patience = self._options.request_deadline
        with trio.move_on_after(patience):
            return await request()
        raise ConnectionFailedError(f"lease {self._lock}: no response within {patience:g} s")

    async def _write(self) -> Stamp:
        """Create or update the Lease with this candidate's record, and return the time when the request was sent."""
        await self._obtain_credential()  # before the times are taken
        # Candidates detect a renewal by a change of the record, so renewTime must differ even if the clock does not.
        # They do not check which time is later, so renewTime may follow a clock that was set back.
        now, last = self._datetime(), self._own.renew_time
        if last is not None and timedelta() <= last - now < CLOCK_STEP:
            now = last + timedelta(microseconds=1)
        if self._observed is not None and now == self._observed.renew_time:
            now += timedelta(microseconds=1)
        self._own = attrs.evolve(self._own, renew_time=now)
        put = self._lock.update if self._lock.is_known else self._lock.create
        could_hold, self.may_hold = self.may_hold, True
        sent_at = self._clocks.now()
        try:
            await self._send(partial(put, self._own))
        except StatusError as error:
            # A server may fail after it has written; a request that it rejects has written nothing.
            # An error response that is not a Status may come from a proxy that had already forwarded the request.
            self.may_hold = could_hold or isinstance(error, ServerError) or error.is_unexpected_server_error
            raise
        self._observe(self._own)
        return sent_at

    def _datetime(self) -> datetime:
        return datetime.fromtimestamp(self._options.wall_clock(), UTC)

    def failed(self, error: Exception, what: str, level: int = logging.WARNING) -> None:
        """Count a failure, and log it at ``level``, or at DEBUG if the last logged message was the same."""
        self.failures += 1
        self.last_error = self.failure = error
        line = f"{what}: {str(error).removeprefix(f'lease {self._lock}: ')}"
        is_known = self._last_logged.get(what) == line or bool(self.group and not count_failure(error, self.group))
        logger.log(logging.DEBUG if is_known else level, "lease %s: %s", self._lock, line)
        self._last_logged[what] = line
