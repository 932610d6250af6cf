"""Leader election on a Lease, as structured concurrency.

The problem: only one of several processes may run the leader code, and the lease only says which one.  client-go does
not wait for the leader code (``OnStartedLeading``), so the lease can be released, or expire, while it still runs.
Here the leader code runs in a cancel scope, and the lease is renewed for as long as it runs::

    ──acquire──┬─ renewer: renews the lease ──────────────────────────────────────┐
               │  watchdog: cancels the leader code 10 s after the last renewal   ├─release──▶ the leader code's outcome
               └─ leader code ── returns, raises, or is cancelled ─ cleans up ────┘

- The renewer is shielded from the caller's cancellation and the leader code is not.  So the lease is renewed until the
  leader code has ended; then it is released, and the next leader does not wait for its expiry.
- The renewer runs before the leader code starts.
- A renewal counts from when it was sent.  Candidates count from when they observed it, which is later; so if the leader
  code ends within the lease duration, no two leaders overlap, whatever the machines' clocks say.
- The watchdog sends no requests, so an API server that does not respond cannot delay the cancellation.
- The leader code runs in the caller's task.  Its exception is stored until the renewer's nursery is closed and then
  raised unchanged, so that nursery wraps neither it nor the caller's cancellation in an exception group.

The protocol on the Lease is client-go's (``tools/leaderelection/leaderelection.go``).
"""

from __future__ import annotations

import logging
import math
import socket
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar, final

import attrs
import trio

from .._retry import REQUEST_ERRORS, is_permanent, retry_after
from ..client import Client
from ..errors import ConflictError
from ..models.coordination_v1 import Lease
from ._leadership import (
    JITTER,
    RETRY_FACTORS,
    LeaderElectionOptions,
    LeaderElectionStatistics,
    Leadership,
    LeadershipLostError,
    Term,
)
from ._lease_claim import LeaseClaim
from ._lease_lock import LeaseLock

T = TypeVar("T")

logger = logging.getLogger("trioformer.leaderelection")

EPSILON: Final = 1e-6
"""Seconds that are too short to sleep: a virtual clock would not advance by what rounding leaves."""

EXPIRED_GRACE: Final = 0.1
"""Seconds that the leader code has to end when the lease had expired before the loss was noticed, as after SIGCONT."""


def _identity_or_random(identity: str | None) -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}" if identity is None else identity


def _options_or_default(options: LeaderElectionOptions | None) -> LeaderElectionOptions:
    return LeaderElectionOptions() if options is None else options


@final
@attrs.define(eq=False, repr=False)
class LeaderElector:
    """One candidate for one Lease.

    Programs that do not need its methods can use :func:`run_as_leader`.

    Whatever the candidates' clocks say, no two processes run the leader code at the same time, provided that

    - leader code that is cancelled ends within ``lease_duration - renew_deadline`` and does not block the event loop;
      what runs in a thread is not cancelled at all;
    - no machine is suspended and no process stopped while it leads.  Otherwise its leader code may run until its next
      checkpoint before it is cancelled, after a suspend up to ``retry_period`` later.
      :attr:`Leadership.is_held` is False immediately;
    - no other client edits the Lease.  An edit that names another holder cancels the leader code at the next renewal.
      A Lease that was deleted or emptied is acquired again at the next renewal, unless another candidate was faster;
      candidates that have observed its holder do not acquire a deleted Lease before it would have expired;
    - no two candidates have the same identity.

    For stronger guarantees use :attr:`Leadership.transitions` as a fencing token, and ``on_overrun``.

    The client must stay open until the lease is released, so its block belongs outside.

    Args:
        client: The client.  Use a separate one for the election: renewals share its rate limit and its connections, so
            they come too late when the leader code uses up ``qps`` or has a hundred requests that hang.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Identity of this candidate, unique to the process.  None generates one from the host name and a random
            part.
        options: Durations and callbacks.

    Ownership:
        It owns no tasks; :meth:`run` and :meth:`lead` have theirs for as long as they run.
    """

    _client: Client
    _name: str = attrs.field(kw_only=True, alias="name")
    _namespace: str = attrs.field(kw_only=True, alias="namespace")
    identity: str = attrs.field(default=None, kw_only=True, converter=_identity_or_random)
    """Identity of this candidate."""
    options: LeaderElectionOptions = attrs.field(default=None, kw_only=True, converter=_options_or_default)
    """Durations and callbacks."""
    _claim: LeaseClaim = attrs.field(init=False)
    _is_running: bool = attrs.field(default=False, init=False)
    _term: Term | None = attrs.field(default=None, init=False)  # until its leader code has ended
    _terms: int = attrs.field(default=0, init=False)
    _losses: int = attrs.field(default=0, init=False)
    _overruns: int = attrs.field(default=0, init=False)
    _last_loss: LeadershipLostError | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        if not self._name:
            raise ValueError("the name of the lease must not be empty")
        if not self.identity:
            raise ValueError("the identity must not be empty; an empty one in the lease means that nobody holds it")
        lock = LeaseLock(self._client.api(Lease, namespace=self._namespace), self._name, self.options.labels)
        self._claim = LeaseClaim(lock, self.identity, self.options)

    def __repr__(self) -> str:
        state = "leading" if self.is_leader else "a candidate" if self._is_running else "not running"
        return f"<{type(self).__name__} {self.identity!r} for lease {self._claim}, {state}>"

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> str:
        """Identity of the last observed holder of the lease; empty for nobody, or before the lease was read."""
        return self._claim.holder

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads: its leader code is not cancelled, and no other one can have taken over."""
        return self._term is not None and self._term.is_held

    def is_healthy(self, *, grace: float = 20.0) -> bool:
        """Return False if leader code still runs more than ``grace`` seconds after the lease expired.

        A candidate that does not lead is always healthy (client-go's ``HealthzAdaptor``).
        """
        return self._term is None or self._term.age() <= self.options.lease_duration + grace

    def statistics(self) -> LeaderElectionStatistics:
        """Return a snapshot of its statistics."""
        return LeaderElectionStatistics(
            leader=self.leader,
            is_leader=self.is_leader,
            terms=self._terms,
            losses=self._losses,
            overruns=self._overruns,
            renewals=self._claim.renewals,
            failures=self._claim.failures,
            renewal_age=math.inf if self._term is None else self._term.age(),
            last_error=self._claim.last_error,
        )

    # --- leading ------------------------------------------------------------------------------------------------------

    async def run(self, async_fn: Callable[[Leadership], Awaitable[T]], *, again_after_loss: bool = False) -> T:
        """Wait for the lease, then run ``async_fn`` and hold the lease for as long as it runs.

        Args:
            async_fn: The leader code; it receives the :class:`Leadership`.
            again_after_loss: When the leadership is lost, wait for the lease and run ``async_fn`` again instead of
                raising.

        Returns:
            What ``async_fn`` returned, even if it was cancelled before.

        Raises:
            LeadershipLostError: The lease could not be kept, and the leader code was cancelled.
            StatusError: While waiting, every response for ``grace_period`` was a permanent error.
            Exception: What ``async_fn`` raised, unchanged and not wrapped in a group.  The lease was released.
                Or what ``on_new_leader`` or ``on_overrun`` raised; if ``async_fn`` raised as well, its exception is
                raised, and the callback's is in the log and in a note.
            trio.BusyResourceError: It is running already.

        Cancellation:
            Cancels the leader code, keeps the lease until that has ended, then releases it.  The release takes at most
            ``renew_deadline`` and cannot be cancelled.
        """
        while True:
            try:
                async with self.lead() as leadership:
                    return await async_fn(leadership)
            except LeadershipLostError as error:
                # The leader code may raise one of another election.
                if error is not self._last_loss or not again_after_loss:
                    raise

    @asynccontextmanager
    async def lead(self) -> AsyncGenerator[Leadership, None]:
        """Wait for the lease, and hold it for as long as the block runs; the block is the leader code of :meth:`run`.

        What the block raises is raised unchanged.
        When the leadership is lost, the block is cancelled, and :class:`LeadershipLostError` is raised instead.
        """
        if self._is_running:
            raise trio.BusyResourceError(f"the candidate {self.identity!r} for lease {self._claim} is running already")
        self._is_running = True
        try:
            try:
                term = await self._acquire()
            except BaseException:
                if self._claim.may_hold:  # cancelled during a write, or on_new_leader raised
                    await self._claim.release()
                raise
            async with self._keep_lease(term):
                yield Leadership._create(term)
        finally:
            self._is_running = False

    @asynccontextmanager
    async def _keep_lease(self, term: Term) -> AsyncGenerator[None, None]:
        """Renew the lease while the block runs, then release it."""
        self._term = term
        self._terms += 1
        raised: BaseException | None = None
        started, ended = trio.Event(), trio.Event()
        renewer_scope, leader_scope = trio.CancelScope(shield=True), trio.CancelScope()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_renewer, term, leader_scope, renewer_scope, started, ended)
                with trio.CancelScope(shield=True):
                    await started.wait()
                try:
                    with leader_scope:
                        yield
                except BaseException as error:  # noqa: BLE001  # raised below, where no nursery can wrap it
                    raised = error
                # If the renewer still ran when the block is left, the nursery would raise the caller's cancellation.
                term.has_ended = True
                renewer_scope.cancel()
                with trio.CancelScope(shield=True):
                    await ended.wait()
            self._term = None
            try:
                if not term.has_successor:
                    await self._claim.release()
            finally:
                if raised is not None:
                    if term.unexpected_error is not None and raised is not term.unexpected_error:
                        self._report_unexpected(term.unexpected_error, raised)
                    raise raised
            if term.unexpected_error is not None:
                raise term.unexpected_error
            if leader_scope.cancelled_caught:
                await trio.lowlevel.checkpoint_if_cancelled()  # the caller's cancellation takes precedence
                text = f"lease {self._claim}: {self.identity!r} lost the leadership: {term.loss_reason}"
                self._last_loss = LeadershipLostError(text)
                raise self._last_loss from term.loss_cause
        finally:
            self._term = None
            del raised

    def _report_unexpected(self, error: Exception, raised: BaseException) -> None:
        """Log why the leader code was cancelled, since the exception that it raised itself takes precedence."""
        text = f"lease {self._claim}: {self.identity!r} failed while renewing: {error!r}"
        logger.error("%s", text)
        raised.add_note(text)

    # --- waiting for the lease ----------------------------------------------------------------------------------------

    async def _acquire(self) -> Term:
        """Retry until this candidate holds the lease (client-go ``acquire``)."""
        self._claim.may_hold = False
        logged = ("", 0.0)
        permanent_since: float | None = None
        while True:
            delay, retry_delay = self.options.retry_period * self.options.rng.uniform(*RETRY_FACTORS), 0.0
            try:
                term = await self._claim.try_acquire()
                permanent_since = None
            except ConflictError as error:
                self._claim.failed(error, "another client wrote it first", logging.INFO)
                term, permanent_since = None, None
            except REQUEST_ERRORS as error:
                self._claim.failed(error, "cannot be acquired, retrying")
                term = None
                delay = self.options.retry_period * (1 + JITTER * self.options.rng.random())
                delay = self._claim.delay_after(error, delay)
                retry_delay = retry_after(error, self.options.rng)
                if not is_permanent(error):
                    permanent_since = None
                else:
                    now = trio.current_time()
                    permanent_since = now if permanent_since is None else permanent_since
                    if now - permanent_since >= self.options.grace_period:
                        error.add_note(f"while {self.identity!r} waited for lease {self._claim}")
                        raise
            if term is not None:
                self._claim.clear_failures()
                return term
            held = (self.leader, self._claim.duration)
            if self.leader and held != logged:
                logged = held
                logger.info(
                    "lease %s: held by %r; %r waits until it has not been renewed for %g s",
                    self._claim,
                    self.leader,
                    self.identity,
                    self._claim.duration,
                )
            now = trio.current_time()
            # Also at the expiry, so that a failed leader is replaced without the rest of the delay.
            await trio.sleep_until(max(min(now + delay, self._claim.expires_at), now + retry_delay))

    # --- holding it ---------------------------------------------------------------------------------------------------

    async def _run_renewer(
        self,
        term: Term,
        leader_scope: trio.CancelScope,
        renewer_scope: trio.CancelScope,
        started: trio.Event,
        ended: trio.Event,
    ) -> None:
        """Run renewer and watchdog until ``renewer_scope`` is cancelled, when the leader code has ended."""

        async def run(async_fn: Callable[[Term, trio.CancelScope], Awaitable[None]]) -> None:
            try:
                await async_fn(term, leader_scope)
            except Exception as error:  # noqa: BLE001  # raised by _keep_lease() when the leader code has ended
                term.unexpected_error = error
                self._lose(term, leader_scope, "it failed while renewing", error)

        try:
            with renewer_scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(run, self._renew)
                    nursery.start_soon(run, self._watch)
                    started.set()
        finally:
            started.set()
            ended.set()

    async def _renew(self, term: Term, leader_scope: trio.CancelScope) -> None:
        """Renew every retry period, and sooner after the connection failed.

        Also after a loss, since a renewal keeps candidates from starting too early.
        """
        period = self.options.retry_period
        due = term.renewed_at.trio + period
        while True:
            # The period runs from the start of one try to the start of the next, however slow the requests are.
            await trio.sleep_until(max(due, trio.current_time() + period / 4))
            due = trio.current_time() + period
            self._check_age(term, leader_scope)
            try:
                is_ours = await self._claim.try_renew(term)
            except REQUEST_ERRORS as error:
                self._claim.failed(error, "cannot be renewed, retrying")
                due = min(due, trio.current_time() + self._claim.delay_after(error, period))
                continue
            if not is_ours:
                term.has_successor = True
                reason = f"the lease is held by {self.leader!r}" if self.leader else "the lease was emptied"
                self._lose(term, leader_scope, reason)
                return
            self._check_age(term, leader_scope)
            self._claim.clear_failures()

    def _check_age(self, term: Term, leader_scope: trio.CancelScope) -> None:
        # The watchdog's sleep does not include the time of a suspend; the term's age does.
        if term.age() >= self.options.renew_deadline - EPSILON:
            self._lose(term, leader_scope, f"the lease was not renewed for {term.age():.1f} s")

    async def _watch(self, term: Term, leader_scope: trio.CancelScope) -> None:
        """Cancel the leader code at the renew deadline, and report it if it still runs at the lease's expiry."""
        while not term.lost.is_set():
            with trio.move_on_after(self.options.renew_deadline - term.age()):
                await term.lost.wait()
            self._check_age(term, leader_scope)
        if term.age() >= self.options.lease_duration:
            await trio.sleep(EXPIRED_GRACE)
        while True:
            left = self.options.lease_duration - term.age()
            if left <= EPSILON:
                break
            await trio.sleep(left)  # the lease may be renewed in the meantime
        if term.has_ended:
            return
        self._overruns += 1
        logger.critical(
            "lease %s: the leader code of %r was cancelled and still runs %.1f s after the last renewal; "
            "another candidate may lead",
            self._claim,
            self.identity,
            term.age(),
        )
        if self.options.on_overrun is not None:
            self.options.on_overrun()

    def _lose(self, term: Term, leader_scope: trio.CancelScope, reason: str, cause: Exception | None = None) -> None:
        # The leader code may have ended: the renewer is cancelled only at its next checkpoint.
        if term.is_lost or term.has_ended:
            return
        term.lose(reason, cause if cause is not None or term.has_successor else self._claim.failure)
        self._losses += 1
        logger.error(
            "lease %s: %r lost the leadership: %s; its leader code is cancelled", self._claim, self.identity, reason
        )
        leader_scope.cancel()


async def run_as_leader(
    client: Client,
    async_fn: Callable[[Leadership], Awaitable[T]],
    *,
    name: str,
    namespace: str,
    identity: str | None = None,
    again_after_loss: bool = False,
    options: LeaderElectionOptions | None = None,
) -> T:
    """Wait for a lease, then run ``async_fn`` and hold the lease for as long as it runs.

    :class:`LeaderElector` documents the guarantees; :meth:`LeaderElector.run` what is returned and raised, and what a
    cancellation does.  For example::

        async def work(leadership: Leadership) -> None: ...

        await run_as_leader(client, work, name="my-controller", namespace="default")

    Args:
        client: The client.
        async_fn: The leader code; it receives the :class:`Leadership`.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Identity of this candidate, unique to the process.  None generates one from the host name and a random
            part.
        again_after_loss: When the leadership is lost, wait for the lease and run ``async_fn`` again instead of raising.
        options: Durations and callbacks.
    """
    elector = LeaderElector(client, name=name, namespace=namespace, identity=identity, options=options)
    return await elector.run(async_fn, again_after_loss=again_after_loss)


def leadership(
    client: Client,
    *,
    name: str,
    namespace: str,
    identity: str | None = None,
    options: LeaderElectionOptions | None = None,
) -> AbstractAsyncContextManager[Leadership]:
    """Wait for a lease, and hold it for as long as the block runs; see :meth:`LeaderElector.lead`.

    For example::

        async with leadership(client, name="my-controller", namespace="default") as lead:
            ...

    Args:
        client: The client.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Identity of this candidate, unique to the process.  None generates one from the host name and a random
            part.
        options: Durations and callbacks.
    """
    return LeaderElector(client, name=name, namespace=namespace, identity=identity, options=options).lead()
