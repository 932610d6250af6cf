"""Leader election on a Lease, as structured concurrency.

The problem: of several processes one is to work, and the lease only says who *may*.  In client-go the two come apart:
the work is not waited for, so the lease can be released, or run out, while it goes on.  Here the work is a body in a
cancel scope, and the lease is kept around it::

    ──acquire──┬─ keeper: renews ───────────────────────────────────────┐
               │          guards: 10 s without a renewal cancel the body ├─release──▶ the body's outcome
               └─ body ────────── ends, fails, or is cancelled ─ cleans up ┘

- The keeper is shielded from the caller's cancellation and the body is not, so the lease is renewed until the body has
  ended; only then is it released, and the next leader need not wait.
- The keeper runs before the body begins.
- A renewal counts from when it was sent.  The others count from when they saw it, which is later; so if the body ends
  within the lease duration, no two bodies overlap, whatever the clocks of the machines say.
- The guard knows nothing of requests.  An API server that hangs cannot hold up the cancellation.
- The body runs in the caller's task.  Its exception is kept aside until the keeper's nursery is closed and then goes
  on as it is: that nursery makes no group of it, nor of the caller's cancellation.

What it does with the Lease is client-go's (``tools/leaderelection/leaderelection.go``).
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

from .._retry import REQUEST_ERRORS, ErrorClass, classify_error, retry_after
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
)
from ._lease_claim import LeaseClaim
from ._lease_lock import LeaseLock

T = TypeVar("T")

logger = logging.getLogger("trioformer.controller")

HAIR: Final = 1e-6
"""Seconds too short to sleep for: with what is left by rounding, a virtual clock would not move."""

AT_ONCE: Final = 0.1
"""Seconds that a body has to end in when the lease had run out before it could be told, as after a SIGCONT."""


def _given_or_some(identity: str | None) -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}" if identity is None else identity


def _given_or_default(options: LeaderElectionOptions | None) -> LeaderElectionOptions:
    return LeaderElectionOptions() if options is None else options


@final
@attrs.define(eq=False, repr=False)
class LeaderElector:
    """One candidate for one Lease.

    For a program that has nothing to ask of it, :func:`run_as_leader` is enough.

    Whatever candidates' clocks say, no two bodies overlap, as long as

    - a body that is cancelled ends within ``lease_duration - renew_deadline``, and does not keep the event loop from
      running; what runs in a thread is not cancelled at all;
    - no machine sleeps, and no process is stopped, while it leads.  Its body may then take one step, up to the next
      ``await``, before it is cancelled; after a machine's sleep that may be ``retry_period`` later.
      :attr:`Leadership.is_held` is False at once;
    - nobody changes the Lease by hand.  An edit that names another holder cancels the body at the next renewal.
      A Lease that was deleted or emptied is taken again at the next renewal if nobody was quicker; candidates that saw
      who held it leave a deleted one alone for as long as it would have been valid;
    - no two candidates have the same identity.

    Where that is not enough, use :attr:`Leadership.transitions` as a fencing token, and ``on_overrun``.

    The client must stay open until the lease is released, so its block belongs outside.

    Args:
        client: The connection.  One of its own, since a renewal waits for its turn like every request: behind a
            ``qps`` that the work uses up, or a hundred requests that hang, it comes too late.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Who this is; unique to the process.  None makes one of the host's name and a random part.
        options: The times, and whom to tell what.

    Ownership:
        It keeps no task; :meth:`run` and :meth:`lead` have theirs, for as long as they run.
    """

    _client: Client
    _name: str = attrs.field(kw_only=True, alias="name")
    _namespace: str = attrs.field(kw_only=True, alias="namespace")
    identity: str = attrs.field(default=None, kw_only=True, converter=_given_or_some)
    """Who this is."""
    options: LeaderElectionOptions = attrs.field(default=None, kw_only=True, converter=_given_or_default)
    """The times, and whom it tells what."""
    _claim: LeaseClaim = attrs.field(init=False)
    _is_running: bool = attrs.field(default=False, init=False)
    _term: Leadership | None = attrs.field(default=None, init=False)  # until its body has ended
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

    # --- what can be asked of it --------------------------------------------------------------------------------------

    @property
    def leader(self) -> str:
        """Who held the lease when it was last seen; empty for nobody, or before it was."""
        return self._claim.holder

    @property
    def is_leader(self) -> bool:
        """Whether this one leads: it has a body that was not told to end, and nobody else can have taken over yet."""
        return self._term is not None and self._term.is_held

    def is_healthy(self, *, grace: float = 20.0) -> bool:
        """Whether it does what it should (client-go's ``HealthzAdaptor``).

        It does not when a body still runs although the lease ran out more than ``grace`` seconds ago.
        A candidate is always healthy.
        """
        return self._term is None or self._term._age() <= self.options.lease_duration + grace

    def statistics(self) -> LeaderElectionStatistics:
        """Return its figures."""
        return LeaderElectionStatistics(
            leader=self.leader,
            is_leader=self.is_leader,
            terms=self._terms,
            losses=self._losses,
            overruns=self._overruns,
            renewals=self._claim.renewals,
            failures=self._claim.failures,
            renewal_age=math.inf if self._term is None else self._term._age(),
            last_error=self._claim.last_error,
        )

    # --- leading ------------------------------------------------------------------------------------------------------

    async def run(self, body: Callable[[Leadership], Awaitable[T]], *, again_after_loss: bool = False) -> T:
        """Wait for the lease, then run ``body`` and hold the lease for as long as it runs.

        Args:
            body: What the leader does; given the :class:`Leadership`.
            again_after_loss: When leadership is lost, wait for it and run ``body`` again instead of raising.

        Returns:
            What ``body`` returned, even if it was told to end meanwhile.

        Raises:
            LeadershipLostError: The lease could not be kept, and the body was cancelled for it.
            StatusError: While waiting, there was nothing but such answers for ``grace_period``.
            Exception: What ``body`` raised, as it is, and not in a group unless it was in one.  The lease was released.
                Or what ``on_new_leader`` or ``on_overrun`` raised; when ``body`` has raised too, a note of its error
                and the log have the other's words.
            trio.BusyResourceError: It is running already.

        Cancellation:
            Cancels the body, keeps the lease until the body has ended, then releases it.  The release takes
            ``renew_deadline`` at most, and cannot be cancelled.
        """
        while True:
            try:
                async with self.lead() as term:
                    return await body(term)
            except LeadershipLostError as error:
                # One of another election is the body's own.
                if error is not self._last_loss or not again_after_loss:
                    raise

    @asynccontextmanager
    async def lead(self) -> AsyncGenerator[Leadership, None]:
        """Wait for the lease, and hold it for as long as the block runs: :meth:`run` for a block.

        What the block raises leaves it as it is.
        When leadership is lost, the block is cancelled, and :class:`LeadershipLostError` leaves it instead.
        """
        if self._is_running:
            raise trio.BusyResourceError(f"the candidate {self.identity!r} for lease {self._claim} is running already")
        self._is_running = True
        try:
            try:
                term = await self._acquire()
            except BaseException:
                if self._claim.may_hold:  # a write was under way, or on_new_leader has failed
                    await self._claim.release()
                raise
            async with self._holding(term):
                yield term
        finally:
            self._is_running = False

    @asynccontextmanager
    async def _holding(self, term: Leadership) -> AsyncGenerator[None, None]:
        self._term = term
        self._terms += 1
        raised: BaseException | None = None
        keeping, kept = trio.Event(), trio.Event()
        keeper, scope = trio.CancelScope(shield=True), trio.CancelScope()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep, term, scope, keeper, keeping, kept)
                with trio.CancelScope(shield=True):
                    await keeping.wait()
                try:
                    with scope:
                        yield
                except BaseException as error:  # noqa: BLE001  # raised below, when no nursery can wrap it
                    raised = error
                # The nursery must not be left while the keeper runs, or the caller's cancellation would be its own.
                term._is_over = True
                keeper.cancel()
                with trio.CancelScope(shield=True):
                    await kept.wait()
            self._term = None
            try:
                if not term._has_successor:
                    await self._claim.release()
            finally:
                if raised is not None:
                    if term._crash is not None and raised is not term._crash:
                        self._tell_crash(term._crash, raised)
                    raise raised
            if term._crash is not None:
                raise term._crash
            if scope.cancelled_caught:
                await trio.lowlevel.checkpoint_if_cancelled()  # if the caller was cancelled too, that is the outcome
                text = f"lease {self._claim}: {self.identity!r} does not lead any more: {term._loss}"
                self._last_loss = LeadershipLostError(text)
                raise self._last_loss from term._cause
        finally:
            self._term = None
            del raised

    def _tell_crash(self, crash: Exception, raised: BaseException) -> None:
        """Tell why the body was cancelled where what it raised meanwhile is what leaves it."""
        text = f"lease {self._claim}: {self.identity!r} failed while renewing: {crash!r}"
        logger.error("%s", text)
        raised.add_note(text)

    # --- waiting for the lease ----------------------------------------------------------------------------------------

    async def _acquire(self) -> Leadership:
        """Try until the lease is ours (client-go ``acquire``)."""
        self._claim.may_hold = False
        waiting_for = ("", 0.0)
        hopeless_since: float | None = None
        while True:
            delay, put_off = self.options.retry_period * self.options.rng.uniform(*RETRY_FACTORS), 0.0
            try:
                term = await self._claim.try_acquire()
                hopeless_since = None
            except ConflictError as error:
                self._claim.failed(error, "another candidate was quicker", logging.INFO)
                term, hopeless_since = None, None
            except REQUEST_ERRORS as error:
                self._claim.failed(error, "cannot be acquired, trying again")
                term = None
                delay = self.options.retry_period * (1 + JITTER * self.options.rng.random())
                put_off = retry_after(error, self.options.rng)
                if classify_error(error) is not ErrorClass.PERMANENT:
                    hopeless_since = None
                else:
                    now = trio.current_time()
                    hopeless_since = now if hopeless_since is None else hopeless_since
                    if now - hopeless_since >= self.options.grace_period:
                        error.add_note(f"while {self.identity!r} waited for lease {self._claim}")
                        raise
            if term is not None:
                self._claim.calm()
                return term
            held = (self.leader, self._claim.duration)
            if self.leader and held != waiting_for:
                waiting_for = held
                logger.info(
                    "lease %s: held by %r, %r waits until it was not renewed for %g s",
                    self._claim,
                    self.leader,
                    self.identity,
                    self._claim.duration,
                )
            now = trio.current_time()
            # Not only at the next look: who is silent until the lease runs out is gone.
            await trio.sleep_until(max(min(now + delay, self._claim.runs_out_at), now + put_off))

    # --- holding it ---------------------------------------------------------------------------------------------------

    async def _keep(
        self,
        term: Leadership,
        scope: trio.CancelScope,
        keeper: trio.CancelScope,
        keeping: trio.Event,
        kept: trio.Event,
    ) -> None:
        """Renew and guard until ``keeper`` is cancelled, which happens when the body has ended."""

        async def run(work: Callable[[Leadership, trio.CancelScope], Awaitable[None]]) -> None:
            try:
                await work(term, scope)
            except Exception as error:  # noqa: BLE001  # leaves run() as it is, when the body has ended
                term._crash = error
                self._lose(term, scope, "it failed while renewing", error)

        try:
            with keeper:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(run, self._renew)
                    nursery.start_soon(run, self._guard)
                    keeping.set()
        finally:
            keeping.set()
            kept.set()

    async def _renew(self, term: Leadership, scope: trio.CancelScope) -> None:
        """Renew every retry period; after a loss too, since every renewal keeps the others away from the body."""
        period = self.options.retry_period
        due = term._renewed.trio + period
        while True:
            # From one try's beginning to the next one's, so that a slow server does not make renewals rare too.
            await trio.sleep_until(max(due, trio.current_time() + period / 4))
            due = trio.current_time() + period
            self._check_age(term, scope)
            try:
                is_ours = await self._claim.try_renew(term)
            except REQUEST_ERRORS as error:
                self._claim.failed(error, "cannot be renewed, trying again")
                continue
            if not is_ours:
                term._has_successor = True
                self._lose(term, scope, f"it is held by {self.leader!r}" if self.leader else "it was emptied")
                return
            self._check_age(term, scope)
            self._claim.calm()

    def _check_age(self, term: Leadership, scope: trio.CancelScope) -> None:
        # The guard's sleep does not count the time that the machine slept for; here that counts, too.
        if term._age() >= self.options.renew_deadline - HAIR:
            self._lose(term, scope, f"it was not renewed for {term._age():.1f} s")

    async def _guard(self, term: Leadership, scope: trio.CancelScope) -> None:
        """Cancel the body in time, and say so if it does not end in time."""
        while not term._lost.is_set():
            with trio.move_on_after(self.options.renew_deadline - term._age()):
                await term._lost.wait()
            self._check_age(term, scope)
        if term._age() >= self.options.lease_duration:
            await trio.sleep(AT_ONCE)
        while True:
            left = self.options.lease_duration - term._age()
            if left <= HAIR:
                break
            await trio.sleep(left)  # and look again: it may have been renewed meanwhile
        if term._is_over:
            return
        self._overruns += 1
        logger.critical(
            "lease %s: the body of %r was cancelled and still runs, %.1f s after the last renewal: others may lead now",
            self._claim,
            self.identity,
            term._age(),
        )
        if self.options.on_overrun is not None:
            self.options.on_overrun()

    def _lose(self, term: Leadership, scope: trio.CancelScope, reason: str, cause: Exception | None = None) -> None:
        # The body may just have ended: the keeper hears of that at its next checkpoint only.
        if term._loss or term._is_over:
            return
        term._loss = reason
        term._cause = cause if cause is not None or term._has_successor else self._claim.failure
        term._lost.set()
        self._losses += 1
        logger.error(
            "lease %s: %r does not lead any more: %s; its body is cancelled", self._claim, self.identity, reason
        )
        scope.cancel()


async def run_as_leader(
    client: Client,
    body: Callable[[Leadership], Awaitable[T]],
    *,
    name: str,
    namespace: str,
    identity: str | None = None,
    again_after_loss: bool = False,
    options: LeaderElectionOptions | None = None,
) -> T:
    """Wait for a lease, then run ``body`` and hold the lease for as long as it runs.

    :class:`LeaderElector` says what is promised; :meth:`LeaderElector.run` what is returned, raised, and done when it
    is cancelled.  For example::

        async def work(lead: Leadership) -> None: ...

        await run_as_leader(client, work, name="my-controller", namespace="default")

    Args:
        client: The connection.
        body: What the leader does.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Who this is; unique to the process.  None makes one of the host's name and a random part.
        again_after_loss: When leadership is lost, wait for it and run ``body`` again instead of raising.
        options: The times, and whom to tell what.
    """
    elector = LeaderElector(client, name=name, namespace=namespace, identity=identity, options=options)
    return await elector.run(body, again_after_loss=again_after_loss)


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
        client: The connection.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Who this is; unique to the process.  None makes one of the host's name and a random part.
        options: The times, and whom to tell what.
    """
    return LeaderElector(client, name=name, namespace=namespace, identity=identity, options=options).lead()
