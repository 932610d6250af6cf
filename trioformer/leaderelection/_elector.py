"""Leader election on a Lease, with structured concurrency.

The problem: only one of several processes may run the leader code, but a lease only records the name of this process.
client-go does not wait for its leader code (``OnStartedLeading``), so the lease can be released, or expire, while the
leader code still runs.
Here the leader code runs in a cancel scope, and the lease is renewed until the leader code has ended.  An election has
three parts::

    acquire ──▶ hold ┬─ renewer: renews the lease ────────────────────────────────────────┐
                     │  watchdog: cancels the leader code 10 s after the last renewal     ├──▶ release ──▶ the outcome
                     └─ leader code ── returns, raises, or is cancelled ─ cleans up ──────┘

- ``_acquire.py`` waits for the lease.  ``_lease_watch.py`` notifies ``_acquire.py`` of a release.
- ``_hold.py`` contains the renewer and the watchdog.  If the caller is cancelled, the leader code is cancelled first.
  These two tasks are cancelled only when the leader code has ended.
- ``_release.py`` then clears the holder of the lease, so that the next leader does not wait for its expiry.

The leader code runs in the caller's task, and no nursery wraps its exceptions (``_background.py``).

The protocol is the same as in client-go's ``tools/leaderelection/leaderelection.go``, so candidates of both libraries
can share a Lease.
"""

from __future__ import annotations

import enum
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar, final

import attrs
import trio

from .._surroundings import host_name, new_uuid
from .._util import opened_by
from ..client import Client
from ..client._internal import without_retries
from ..errors import LeadershipLostError
from ..models.coordination_v1 import Lease
from ._acquire import Acquisition, NotAcquiredError
from ._background import background
from ._hold import Hold
from ._leadership import (
    LeaderElectionOptions,
    LeaderElectionStatistics,
    Leadership,
    Loss,
    Term,
    TermCounts,
)
from ._lease_claim import LeaseClaim
from ._lease_lock import LeaseLock
from ._lease_watch import LeaseWatch
from ._release import release

T = TypeVar("T")

logger = logging.getLogger("trioformer.leaderelection")


class CandidateState(enum.Enum):
    """The current phase of a candidate."""

    IDLE = "not running"
    ACQUIRING = "a candidate"
    HOLDING = "leading"
    RELEASING = "releasing the lease"


def _identity_or_random(identity: str | None) -> str:
    return f"{host_name()}_{new_uuid()}" if identity is None else identity


def _options_or_default(options: LeaderElectionOptions | None) -> LeaderElectionOptions:
    return LeaderElectionOptions() if options is None else options


@final
@attrs.define(eq=False, repr=False)
class LeaderElector:
    """A candidate in a leader election on a Lease.

    A program that does not need the methods of this class can call :func:`run_as_leader` instead.

    Even if their clocks differ, two processes never run the leader code at the same time under these conditions:

    - When the leader code is cancelled, it ends within ``lease_duration - renew_deadline`` seconds.  The leader code
      does not block the event loop, and leaves no code running in threads, because threads are not cancelled.
    - The leader's machine is not suspended, and its process is not stopped.  Otherwise, the leader code may continue
      until its next checkpoint, and after a suspend for up to ``retry_period`` seconds more. In this case,
      :attr:`Leadership.is_held` is nevertheless False immediately.
    - No other client edits the Lease.  If another client sets a different holder, the leader code is cancelled at the
      next renewal.
      If the Lease is deleted or its holder is cleared, the leader acquires it again at the next renewal, unless
      another candidate acquires it first.  Candidates that have observed the holder of a deleted Lease wait until the
      Lease would have expired.
    - No two candidates have the same identity.

    For stronger guarantees, use :attr:`Leadership.transitions` as a fencing token, and set ``on_overrun`` in the
    options.

    The client must stay open until the lease is released, so open it outside the election.

    Args:
        client: The client.  Use a separate client for the election.  Otherwise, renewals share the rate limit and the
            connections with the leader code.  Renewals are late if the leader code uses up the rate limit, or if a
            hundred of its requests hang.
        name: The name of the Lease.
        namespace: The namespace of the Lease.
        identity: The identity of this candidate, which must be unique among all candidates.  The default, None,
            generates an identity from the host name and a random part.
        options: The durations and callbacks of the election.

    Ownership:
        The elector owns no tasks.  :meth:`run` and :meth:`lead` start their tasks and end them.
    """

    _client: Client
    _name: str = attrs.field(kw_only=True, alias="name")
    _namespace: str = attrs.field(kw_only=True, alias="namespace")
    identity: str = attrs.field(default=None, kw_only=True, converter=_identity_or_random)
    """The identity of this candidate."""
    options: LeaderElectionOptions = attrs.field(default=None, kw_only=True, converter=_options_or_default)
    """The durations and callbacks of the election."""
    _claim: LeaseClaim = attrs.field(init=False)
    _watch: LeaseWatch = attrs.field(init=False)
    _state: CandidateState = attrs.field(default=CandidateState.IDLE, init=False)
    _term: Term | None = attrs.field(default=None, init=False)  # until its leader code has ended
    _counts: TermCounts = attrs.field(factory=TermCounts, init=False)
    _raised_by_loss: Exception | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        if not self._name:
            raise ValueError("the name of the lease must not be empty")
        if not self.identity:
            raise ValueError("the identity must not be empty; a lease with an empty identity has no holder")
        # The client must not retry a renewal, because the renewer decides when to send the next one.
        api = without_retries(self._client.api(Lease, namespace=self._namespace))
        lock = LeaseLock(api, self._name, self.options.labels)
        self._claim = LeaseClaim(lock, self.identity, self.options)
        self._watch = LeaseWatch(lock, self.options.rng, self._claim.observe_renewal)

    def __repr__(self) -> str:
        is_lost = self._state is CandidateState.HOLDING and not self.is_leader
        state = "no longer leading" if is_lost else self._state.value
        return f"<{type(self).__name__} {self.identity!r} for lease {self._claim}, {state}>"

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> str:
        """The identity of the last observed holder of the lease.

        The identity is empty if the lease has no holder or has not been read.
        """
        return self._claim.holder

    @property
    def is_leader(self) -> bool:
        """Whether this candidate is the leader: its leader code is not cancelled, and no other candidate can lead."""
        return self._term is not None and self._term.is_held

    def is_healthy(self, *, grace: float = 20.0) -> bool:
        """Return False if the leader code still runs more than ``grace`` seconds after the lease expired.

        A candidate that is not the leader is always healthy, as in client-go's ``HealthzAdaptor``.
        """
        return self._term is None or self._term.age() <= self.options.lease_duration + grace

    def statistics(self) -> LeaderElectionStatistics:
        """Return a snapshot of the statistics, such as the current leader and the counts of terms and failures."""
        return LeaderElectionStatistics(
            leader=self.leader,
            is_leader=self.is_leader,
            terms=self._counts.terms,
            losses=self._counts.losses,
            overruns=self._counts.overruns,
            renewals=self._claim.renewals,
            failures=self._claim.failures,
            renewal_age=math.inf if self._term is None else self._term.age(),
            last_error=self._claim.last_error,
        )

    # --- leading ------------------------------------------------------------------------------------------------------

    async def run(self, async_fn: Callable[[Leadership], Awaitable[T]], *, again_after_loss: bool = False) -> T:
        """Wait for the lease, then run ``async_fn`` and hold the lease while it runs.

        Args:
            async_fn: The leader code, an async function that takes a :class:`Leadership`.
            again_after_loss: Whether to wait for the lease and run ``async_fn`` again when the leadership is lost,
                instead of raising an exception.  If ``async_fn`` then raises an ``Exception`` while it cleans up, the
                exception is logged, and the run continues.

        Returns:
            The result of ``async_fn``.  The result is returned even if ``async_fn`` was cancelled, provided that it
            returned normally.

        Raises:
            LeadershipLostError: The lease could not be renewed in time, or another candidate acquired it, and the
                leader code was cancelled.
            StatusError: While this candidate was waiting for the lease, all responses during ``grace_period`` seconds
                were permanent errors.
            Exception: The function ``async_fn`` raised an exception.  It propagates unchanged and not in a group,
                after the lease has been released.
                If the leadership was lost before the exception, a note explains the loss.  Exceptions from
                ``on_new_leader`` and ``on_overrun`` are raised too.  If ``async_fn`` raises an exception as well, the
                exception of ``async_fn`` is raised, and the callback's exception is logged and added as a note.
            trio.BusyResourceError: This elector is already running.

        Cancellation:
            If this method is cancelled, the leader code is cancelled too. The lease is renewed until the leader code
            has ended, and is then released.
            The release cannot be cancelled, but takes at most ``renew_deadline`` seconds.
        """
        while True:
            try:
                async with self.lead() as leadership:
                    return await async_fn(leadership)
            except Exception as error:  # raised again, unless the loss of this election is its reason
                if not again_after_loss or not self._continues_after(error):
                    raise

    def _continues_after(self, error: Exception) -> bool:
        """Return True if the loss of the leadership is the reason for an exception, so that the run can continue."""
        if error is not self._raised_by_loss:
            return False
        if not isinstance(error, LeadershipLostError):
            if trio.current_effective_deadline() == -math.inf:
                return False  # nothing runs after the caller's cancellation that could replace what has failed
            logger.error(
                "lease %s: the leader code of %r failed as it ended; waiting for the lease again",
                self._claim,
                self.identity,
                exc_info=error,
            )
        return True

    @opened_by("leadership", "async with elector.lead() as leadership:")
    async def lead(self) -> AsyncGenerator[Leadership, None]:
        """Wait for the lease, and hold it during the ``async with`` block, which is the leader code.

        Exceptions raised in the block propagate unchanged.
        If the leadership is lost, the block is cancelled, and :class:`LeadershipLostError` is raised.
        If the block itself raises an exception after the loss, this exception is raised instead, with a note that
        explains the loss.
        """
        async with self._lead(Acquisition.run) as leadership:
            yield leadership

    @asynccontextmanager
    async def _lead(self, acquire: Callable[[Acquisition], Awaitable[Term]]) -> AsyncGenerator[Leadership, None]:
        if self._state is not CandidateState.IDLE:
            raise trio.BusyResourceError(f"the candidate {self.identity!r} for lease {self._claim} is already running")
        try:
            self._state = CandidateState.ACQUIRING
            term = await self._acquire(acquire)
            self._state = CandidateState.HOLDING
            async with self._hold(term):
                yield Leadership._create(term)
        finally:
            self._state = CandidateState.IDLE

    async def _acquire(self, acquire: Callable[[Acquisition], Awaitable[Term]]) -> Term:
        try:
            return await acquire(Acquisition(self._claim, self._watch, self.identity, self.options))
        except BaseException:
            if self._claim.may_hold:  # cancelled during a write, or on_new_leader raised
                await release(self._claim, self.identity, self.options)
            raise

    @asynccontextmanager
    async def _hold(self, term: Term) -> AsyncGenerator[None, None]:
        """Renew the lease during the block, then release it. Raise the block's exception or the loss."""
        self._term, self._raised_by_loss = term, None
        self._counts.terms += 1
        leader_scope = trio.CancelScope()
        hold = Hold(self._claim, self.options, term, self._counts, leader_scope.cancel)
        raised: BaseException | None = None
        try:
            try:
                async with background(hold.run):
                    try:
                        with leader_scope:
                            yield
                    finally:
                        term.end()
            except BaseException as error:  # noqa: BLE001  # raised below, when the lease is released
                raised = error
            self._term, self._state = None, CandidateState.RELEASING
            try:
                if not term.has_successor:
                    await release(self._claim, self.identity, self.options)
            finally:
                if raised is not None:
                    self._explain(term, raised)
                    raise raised
            if term.unexpected_error is not None:
                raise term.unexpected_error
            if leader_scope.cancelled_caught:
                await trio.lowlevel.checkpoint_if_cancelled()  # the caller's cancellation takes precedence
                assert term.loss is not None
                self._raised_by_loss = LeadershipLostError(self._text_of_loss(term.loss))
                raise self._raised_by_loss from term.loss.cause
        finally:
            self._term = None
            del raised

    def _explain(self, term: Term, raised: BaseException) -> None:
        """Add a note to the leader code's exception to explain why the leader code was cancelled."""
        if isinstance(raised, trio.Cancelled) or raised is term.unexpected_error:
            return
        if term.unexpected_error is not None:
            text = f"lease {self._claim}: {self.identity!r} failed while renewing: {term.unexpected_error!r}"
            logger.error("%s", text)
            raised.add_note(text)
        elif term.loss is not None:
            raised.add_note(self._text_of_loss(term.loss))
            if isinstance(raised, Exception):
                self._raised_by_loss = raised

    def _text_of_loss(self, loss: Loss) -> str:
        return f"lease {self._claim}: {self.identity!r} lost the leadership: {loss.reason}"


def claim_of(elector: LeaderElector) -> LeaseClaim:
    """Return an elector's view of its Lease."""
    return elector._claim


async def try_run(elector: LeaderElector, async_fn: Callable[[Leadership], Awaitable[object]]) -> float:
    """Try to acquire the lease once.  After a success, run ``async_fn`` and hold the lease while it runs.

    Returns:
        0 when ``async_fn`` has ended or the leadership was lost.  If the lease was not acquired, the time until the
        next attempt, in seconds.

    Raises:
        Exception: The function ``async_fn`` raised an exception, as in :meth:`LeaderElector.run`.
    """
    try:
        async with elector._lead(Acquisition.run_once) as leadership:
            await async_fn(leadership)
    except NotAcquiredError as error:
        return error.delay
    except Exception as error:  # raised again, unless the loss of this election is its reason
        if not elector._continues_after(error):
            raise
    return 0


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
    """Wait for a lease, then run ``async_fn`` and hold the lease while it runs.

    See :class:`LeaderElector` for the guarantees, and :meth:`LeaderElector.run` for the result, the exceptions and
    cancellation.  For example::

        async def work(leadership: Leadership) -> None: ...

        await run_as_leader(client, work, name="my-controller", namespace="default")

    Args:
        client: The client.
        async_fn: The leader code, an async function that takes a :class:`Leadership`.
        name: The name of the Lease.
        namespace: The namespace of the Lease.
        identity: The identity of this candidate, which must be unique among all candidates.  The default, None,
            generates an identity from the host name and a random part.
        again_after_loss: Whether to wait for the lease and run ``async_fn`` again when the leadership is lost, instead
            of raising an exception.
        options: The durations and callbacks of the election.
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
    """Wait for a lease, and hold it during the ``async with`` block, as :meth:`LeaderElector.lead` does.

    For example::

        async with leadership(client, name="my-controller", namespace="default") as lead:
            ...

    Args:
        client: The client.
        name: The name of the Lease.
        namespace: The namespace of the Lease.
        identity: The identity of this candidate, which must be unique among all candidates.  The default, None,
            generates an identity from the host name and a random part.
        options: The durations and callbacks of the election.
    """
    return LeaderElector(client, name=name, namespace=namespace, identity=identity, options=options).lead()
