"""Hold the Lease while the leader code runs: the renewer and the watchdog.

The problem: the leader code may run only while no other candidate can acquire the Lease.  But a renewal may fail, hang
or be late, and the leader code needs time to end after it has been cancelled.  Two tasks handle this:

- The renewer sends requests.  The renewer renews the Lease every retry period, even after the leadership has been lost.
  The renewer stops when the leader code has ended or another candidate holds the Lease.
- The watchdog sends no requests, so an API server that does not respond cannot delay it.  The watchdog cancels the
  leader code if the Lease has not been renewed within the renew deadline.  If the leader code still runs when the Lease
  expires, the watchdog reports an overrun.

::

               renew deadline passed · another candidate holds the Lease · unexpected error
        HELD ───────────────────────────────────────────────────────────────────────────────▶ LOST
          │                                                                                    │
          └───────────────▶ ENDED ◀──────────── the leader code has ended ◀────────────────────┘

The leader measures the lease duration from the time when it sent a renewal.  Candidates measure the lease duration
from the later time when they observed the renewal.  So if the leader code ends within the lease duration,
two leaders never overlap, even if the clocks of their machines differ.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, final

import attrs
import trio

from .._retry import REQUEST_ERRORS
from .._text import quoted
from ._leadership import LeaderElectionOptions, Loss, Term, TermCounts, TermState
from ._lease_claim import LeaseClaim

logger = logging.getLogger("trioformer.leaderelection")

EPSILON: Final = 1e-6
"""The longest remaining time, in seconds, that counts as zero.  It allows for rounding errors: a virtual clock might
not advance by such a short sleep."""

EXPIRED_GRACE: Final = 0.1
"""The time that the leader code has to end, in seconds, if the lease has already expired when the loss is noticed, for
example after SIGCONT."""


@final
@attrs.define(eq=False)
class Hold:
    """The renewer and the watchdog of one term."""

    _claim: LeaseClaim
    _options: LeaderElectionOptions
    _term: Term
    _counts: TermCounts
    _cancel_leader_code: Callable[[], None]

    async def run(self) -> None:
        """Run the renewer and the watchdog until cancelled, which happens when the leader code has ended.

        This method raises no errors.  After an error that is not retried, the leadership is lost, and the error is
        stored in the term.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._guard, self._renew)
            nursery.start_soon(self._guard, self._watch)

    async def _guard(self, async_fn: Callable[[], Awaitable[None]]) -> None:
        try:
            await async_fn()
        except Exception as error:  # noqa: BLE001  # raised by the elector when the leader code has ended
            self._term.unexpected_error = error
            self._lose("it failed while renewing", error)

    # --- the renewer --------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew the Lease every retry period, and sooner if the connection failed.

        Renewals continue after the leadership has been lost, so that no candidate acquires the Lease while the leader
        code is ending.
        """
        claim, period = self._claim, self._options.retry_period
        due = self._term.renewed_at.trio + period
        while True:
            # The period is measured between the starts of two tries, even if the requests are slow.
            await trio.sleep_until(max(due, trio.current_time() + period / 4))
            due = trio.current_time() + period
            self._check_age()
            try:
                is_ours = await claim.try_renew(self._term)
            except REQUEST_ERRORS as error:
                claim.failed(error, "cannot be renewed, retrying")
                due = min(due, trio.current_time() + claim.delay_after(error, period))
                continue
            if not is_ours:
                self._term.has_successor = True
                self._lose(f"the lease is held by {quoted(claim.holder)}" if claim.holder else "the holder was cleared")
                return
            self._check_age()
            claim.clear_failures()

    # --- the watchdog -------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        await self._wait_for_loss()
        await self._wait_for_expiry()
        # The leader code may have ended: this task is cancelled only at its next checkpoint.
        if self._term.state is TermState.LOST:
            self._report_overrun()

    async def _wait_for_loss(self) -> None:
        while self._term.state is TermState.HELD:
            with trio.move_on_after(max(0.0, self._options.renew_deadline - self._term.age())):  # perhaps suspended
                await self._term.lost.wait()
            self._check_age()

    async def _wait_for_expiry(self) -> None:
        if self._term.age() >= self._options.lease_duration:
            await trio.sleep(EXPIRED_GRACE)
        while True:
            left = self._options.lease_duration - self._term.age()
            if left <= EPSILON:
                return
            await trio.sleep(left)  # the lease may be renewed in the meantime

    def _report_overrun(self) -> None:
        self._counts.overruns += 1
        logger.critical(
            "lease %s: the leader code of %r was cancelled and still runs %.1f s after the last renewal; "
            "another candidate may lead",
            self._claim,
            self._term.identity,
            self._term.age(),
        )
        if self._options.on_overrun is not None:
            self._options.on_overrun()

    # --- HELD to LOST -------------------------------------------------------------------------------------------------

    def _check_age(self) -> None:
        # The watchdog's sleep does not include the time of a suspend; the term's age does.
        if (age := self._term.age()) >= self._options.renew_deadline - EPSILON:
            awaited = self._claim.awaited
            self._lose(f"the lease was not renewed for {age:.1f} s{awaited and f'; {awaited} has not ended'}")

    def _lose(self, reason: str, cause: Exception | None = None) -> None:
        if self._term.state is not TermState.HELD:
            return
        if cause is None and not self._term.has_successor:
            cause = self._claim.failure
        self._term.lose(Loss(reason, cause))
        self._counts.losses += 1
        logger.error(
            "lease %s: %r lost the leadership: %s; its leader code is cancelled",
            self._claim,
            self._term.identity,
            reason,
        )
        self._cancel_leader_code()
