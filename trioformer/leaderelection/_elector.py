"""Leader election on a Lease, as structured concurrency.

The problem: only one of several processes may run the leader code, but the lease only names it.  client-go does
not wait for the leader code (``OnStartedLeading``), so the lease can be released, or expire, while it still runs.
Here the leader code runs in a cancel scope, and the lease is renewed for as long as it runs.  There are three parts::

    acquire ──▶ hold ┬─ renewer: renews the lease ────────────────────────────────────────┐
                     │  watchdog: cancels the leader code 10 s after the last renewal     ├──▶ release ──▶ the outcome
                     └─ leader code ── returns, raises, or is cancelled ─ cleans up ──────┘

- ``_acquire.py`` waits for the lease; ``_lease_watch.py`` tells it of a release.
- ``_hold.py`` has the renewer and the watchdog.  They are shielded from the caller's cancellation, but the leader code
  is not, so the lease is renewed until the leader code has ended.
- ``_release.py`` empties the lease then, so that the next leader does not wait for its expiry.

The leader code runs in the caller's task, and no nursery wraps its exceptions (``_background.py``).

The protocol on the Lease is client-go's (``tools/leaderelection/leaderelection.go``).
"""

from __future__ import annotations

import enum
import logging
import math
import socket
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar, final

import attrs
import trio

from .._util import opened_by
from ..client import Client
from ..client._internal import without_retries
from ..errors import LeadershipLostError
from ..models.coordination_v1 import Lease
from ._acquire import Acquisition
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
    """The phase of a candidate."""

    IDLE = "not running"
    ACQUIRING = "a candidate"
    HOLDING = "leading"
    RELEASING = "releasing the lease"


def _identity_or_random(identity: str | None) -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}" if identity is None else identity


def _options_or_default(options: LeaderElectionOptions | None) -> LeaderElectionOptions:
    return LeaderElectionOptions() if options is None else options


@final
@attrs.define(eq=False, repr=False)
class LeaderElector:
    """One candidate for one Lease.

    Programs that do not need its methods can use :func:`run_as_leader`.

    Two processes never run the leader code at the same time, even if their clocks differ, provided that

    - leader code that is cancelled ends within ``lease_duration - renew_deadline`` and does not block the event loop;
      code in a thread is not cancelled;
    - no machine is suspended and no process stopped while it leads.  Otherwise its leader code may run until its next
      checkpoint before it is cancelled, after a suspend up to ``retry_period`` later.
      :attr:`Leadership.is_held` is False immediately;
    - no other client edits the Lease.  An edit that names another holder cancels the leader code at the next renewal.
      A Lease that was deleted or emptied is acquired again at the next renewal, unless another candidate was faster;
      candidates that have observed its holder do not acquire a deleted Lease before it would have expired;
    - no two candidates have the same identity.

    For stronger guarantees use :attr:`Leadership.transitions` as a fencing token, and ``on_overrun``.

    The client must stay open until the lease is released, so open it outside the election.

    Args:
        client: The client.  Use a separate one for the election: renewals share its rate limit and its connections, so
            they are late if the leader code uses up the rate limit, or if a hundred of its requests hang.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Identity of this candidate, unique to the process.  None generates one from the host name and a random
            part.
        options: Durations and callbacks.

    Ownership:
        It owns no tasks; :meth:`run` and :meth:`lead` start theirs, and end them.
    """

    _client: Client
    _name: str = attrs.field(kw_only=True, alias="name")
    _namespace: str = attrs.field(kw_only=True, alias="namespace")
    identity: str = attrs.field(default=None, kw_only=True, converter=_identity_or_random)
    """Identity of this candidate."""
    options: LeaderElectionOptions = attrs.field(default=None, kw_only=True, converter=_options_or_default)
    """Durations and callbacks."""
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
            raise ValueError("the identity must not be empty; in a lease, an empty one means that there is no holder")
        # A renewal that waits is worthless: the renewer decides when to send again.
        api = without_retries(self._client.api(Lease, namespace=self._namespace))
        lock = LeaseLock(api, self._name, self.options.labels)
        self._claim = LeaseClaim(lock, self.identity, self.options)
        self._watch = LeaseWatch(lock, self.options.rng)

    def __repr__(self) -> str:
        is_lost = self._state is CandidateState.HOLDING and not self.is_leader
        state = "no longer leading" if is_lost else self._state.value
        return f"<{type(self).__name__} {self.identity!r} for lease {self._claim}, {state}>"

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> str:
        """Identity of the last observed holder of the lease; empty without one, or before the lease was read."""
        return self._claim.holder

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads: its leader code is not cancelled, and no other candidate can lead."""
        return self._term is not None and self._term.is_held

    def is_healthy(self, *, grace: float = 20.0) -> bool:
        """Return False if leader code still runs more than ``grace`` seconds after the lease expired.

        A candidate that does not lead is always healthy (client-go's ``HealthzAdaptor``).
        """
        return self._term is None or self._term.age() <= self.options.lease_duration + grace

    def statistics(self) -> LeaderElectionStatistics:
        """Return a snapshot of the statistics: the holder, and counts of terms, losses, renewals and failures."""
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
            async_fn: The leader code; it receives the :class:`Leadership`.
            again_after_loss: When the leadership is lost, wait for the lease and run ``async_fn`` again instead of
                raising.  An ``Exception`` that ``async_fn`` raises after the loss, such as a failed clean-up, is
                logged, and does not end the run either.

        Returns:
            The result of ``async_fn``, even if it was cancelled before.

        Raises:
            LeadershipLostError: The lease could not be kept, and the leader code was cancelled.
            StatusError: While waiting, every response for ``grace_period`` was a permanent error.
            Exception: From ``async_fn``, unchanged and without a group; the lease was released.  After a loss, it has a
                note of the loss.
                From ``on_new_leader`` or ``on_overrun``; if ``async_fn`` raises as well, its exception is raised, and
                the callback's is in the log and in a note.
            trio.BusyResourceError: The candidate is already running.

        Cancellation:
            Cancels the leader code, keeps the lease until it has ended, and then releases the lease.  The release takes
            at most ``renew_deadline`` and cannot be cancelled.
        """
        while True:
            try:
                async with self.lead() as leadership:
                    return await async_fn(leadership)
            except Exception as error:  # raised again, unless the loss of this election is its reason
                if not again_after_loss or error is not self._raised_by_loss:
                    raise
                if not isinstance(error, LeadershipLostError):
                    if trio.current_effective_deadline() == -math.inf:
                        raise  # nothing runs after the caller's cancellation that could replace what has failed
                    logger.exception(
                        "lease %s: the leader code of %r failed as it ended; waiting for the lease again",
                        self._claim,
                        self.identity,
                    )

    @opened_by("leadership", "async with elector.lead() as leadership:")
    async def lead(self) -> AsyncGenerator[Leadership, None]:
        """Wait for the lease, and hold it during the block; the block is the leader code of :meth:`run`.

        Exceptions of the block are raised unchanged.
        If the leadership is lost, the block is cancelled, and :class:`LeadershipLostError` is raised.
        If the block raises after a loss, its exception is raised with a note of the loss.
        """
        if self._state is not CandidateState.IDLE:
            raise trio.BusyResourceError(f"the candidate {self.identity!r} for lease {self._claim} is already running")
        try:
            self._state = CandidateState.ACQUIRING
            term = await self._acquire()
            self._state = CandidateState.HOLDING
            async with self._hold(term):
                yield Leadership._create(term)
        finally:
            self._state = CandidateState.IDLE

    async def _acquire(self) -> Term:
        try:
            return await Acquisition(self._claim, self._watch, self.identity, self.options).run()
        except BaseException:
            if self._claim.may_hold:  # cancelled during a write, or on_new_leader raised
                await release(self._claim, self.identity, self.options)
            raise

    @asynccontextmanager
    async def _hold(self, term: Term) -> AsyncGenerator[None, None]:
        """Keep the lease during the block, then release it and raise the outcome."""
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
        """Note why the leader code was cancelled: its own exception takes precedence."""
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

    :class:`LeaderElector` documents the guarantees, and :meth:`LeaderElector.run` the result, the exceptions and
    cancellation.  For example::

        async def work(leadership: Leadership) -> None: ...

        await run_as_leader(client, work, name="my-controller", namespace="default")

    Args:
        client: The client.
        async_fn: The leader code; it receives the :class:`Leadership`.
        name: The Lease's name.
        namespace: The Lease's namespace.
        identity: Identity of this candidate, unique to the process.  None generates one from the host name and a random
            part.
        again_after_loss: When the leadership is lost, wait for the lease and run ``async_fn`` again instead of raising,
            even if its clean-up fails.
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
    """Wait for a lease, and hold it during the block; see :meth:`LeaderElector.lead`.

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
