"""Hold the Leases of a member and of its ranges.

Each range has a Lease, and the Lease alone decides which member owns the range.  Each member has another Lease, which
shows that it is live, and whose annotation contains the ranges that the member asks for.  The annotation is not on the
Lease of the range, because each renewal would then conflict with the writes of other members.

An informer shows all these Leases to :mod:`._plan`, which decides what to do next.  The informer's cache may be late or
broken: each attempt to acquire a range reads its Lease, and waits until the Lease has not changed for its duration.

The states of a range on one member::

    ELSEWHERE ──▶ ACQUIRING ──▶ HELD ──▶ GIVING_UP
      ▲ ▲ ▲           │           │           │
      │ │ └───────────┘           │           │    another member holds it, or a request failed
      │ └─────────────────────────┘           │    the lease was lost
      └───────────────────────────────────────┘    drained and released, or the lease was lost

A task of :meth:`Ownership.run` exists for each range that is not ELSEWHERE.
"""

from __future__ import annotations

import enum
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio

from .._retry import REQUEST_ERRORS
from ..cache import ApiListWatch, Deleted, ReflectorOptions, SharedInformer, Subscription, Updated
from ..client import Client
from ..errors import DecodeError
from ..leaderelection import LeaderElector, Leadership
from ..leaderelection._internal import LeaseRecord, claim_of, try_run
from ..models.coordination_v1 import Lease
from ._plan import Plan, RangeView, View, make_plan
from ._shares import Shares

QUIET_PERIOD: Final = 10.0
"""The time without a change of the live members before ranges are moved between them, in seconds."""
KEPT_DURATIONS: Final = 10
"""The number of lease durations after which the Lease of a member that ended is deleted."""
SHARES: Final = "trioformer.dev/shares"
"""The label of all Leases: the name of the shares."""
RANGES: Final = "trioformer.dev/ranges"
"""The label of all Leases: the number of ranges, and how objects are divided."""
RANGE: Final = "trioformer.dev/range"
"""The label of the Lease of a range: its number."""
ASKS: Final = "trioformer.dev/asks"
"""The annotation of the Lease of a member: the numbers of the ranges that it asks for."""

logger = logging.getLogger("trioformer.sharding")


class RangeState(enum.Enum):
    """The state of a range on one member."""

    ELSEWHERE = "not held"
    ACQUIRING = "being acquired"
    HELD = "held"
    GIVING_UP = "being given up"


OWN: Final = (RangeState.HELD, RangeState.GIVING_UP)


Hold: TypeAlias = Callable[[int, Leadership, trio.Event], Awaitable[None]]
"""The leader code of a range: its number, its leadership, and an event that is set when the range is given up."""


@final
@attrs.define(eq=False)
class _Range:
    """A range on this member."""

    elector: LeaderElector
    state: RangeState = RangeState.ELSEWHERE
    giving_up: trio.Event = attrs.field(factory=trio.Event)  # replaced with each acquisition
    retry_at: float = -math.inf


@final
@attrs.frozen(kw_only=True)
class _Sighting:
    """What the informer has shown of a Lease.  Equal sightings lead to the same plan, until they expire."""

    holder: str
    ranges: str
    is_range: bool
    asks: frozenset[int]
    created: tuple[str, str]
    """When the Lease was created, and its name."""
    version: str = attrs.field(eq=False)
    changed_at: float = attrs.field(eq=False)
    duration: float = attrs.field(eq=False)

    @property
    def expires_at(self) -> float:
        return self.changed_at + self.duration if self.holder else -math.inf


@final
class Ownership:
    """The ranges that one member owns, by their Leases.

    The member takes free ranges, asks for ranges that it should have, and gives up ranges that another member should
    have.  See :mod:`._plan` for the rules.

    Args:
        client: The client, which should not share its rate limit with the reconciles.
        shares: The arguments.  Members that divide the objects in different ways do not own ranges at the same time.
        identity: The identity of this member.
        hold: The leader code of one range.  It must run until it is cancelled, or until its event is set. Then it must
            end everything that it does for the range, and return.
    """

    def __init__(self, client: Client, shares: Shares, identity: str, hold: Hold) -> None:
        name, namespace = shares.name, shares.namespace
        self._name, self._identity, self._hold = name, identity, hold
        self._division = f"{shares.ranges}-by-{shares.by}"
        self._options = options = attrs.evolve(shares.options, on_new_leader=None)
        labels = {**options.labels, SHARES: name, RANGES: self._division}

        def elector(lease: str, labels: Mapping[str, str], grace_period: float) -> LeaderElector:
            own = attrs.evolve(options, labels=labels, grace_period=grace_period)
            made = LeaderElector(client, name=lease, namespace=namespace, identity=identity, options=own)
            claim_of(made).group = f"shares {namespace}/{name}"
            return made

        self._api = client.api(Lease, namespace=namespace)
        self._member_lease = f"{name}-member-{identity}"
        self._member = elector(self._member_lease, labels, options.grace_period)
        self._numbers = {f"{name}-range-{number}": number for number in range(shares.ranges)}
        self._ranges = [
            _Range(elector(lease, {**labels, RANGE: str(number)}, math.inf)) for lease, number in self._numbers.items()
        ]
        self._informer = SharedInformer(
            ApiListWatch(self._api, label_selector=f"{SHARES}={name}"),
            options=ReflectorOptions(grace_period=options.grace_period),
        )
        self._sightings: dict[str, _Sighting] = {}
        self.members: Mapping[str, frozenset[int]] = {}
        """The live members, and the ranges that each asks for."""
        self._quiet_at = self._live_since = math.inf
        self._plan: Plan | None = None
        self.waits_for: str = ""
        """A live holder of other ranges, for which this member waits, or an empty string."""
        self._yields = False  # to an older member that divides the objects in another way
        self._starting = trio.CancelScope()
        self.moves: int = 0
        """How often this member has acquired a range."""
        self._stopping = trio.Event()
        self._has_left = False
        self._ended: trio.Event | None = None  # of the run
        self._changed = trio.Event()  # replaced with each plan

    def __repr__(self) -> str:
        own = sorted(self.own)
        return f"<{type(self).__name__} of {self._name!r}: {self._identity!r} owns {own} of {len(self._ranges)} ranges>"

    @property
    def own(self) -> frozenset[int]:
        """The ranges that this member holds."""
        return frozenset(number for number, each in enumerate(self._ranges) if each.state in OWN)

    @property
    def owners(self) -> Mapping[int, str]:
        """The holders of the ranges, without the ranges that are free."""
        views, now = map(self._view_of, self._ranges), trio.current_time()
        return {number: each.holder for number, each in enumerate(views) if each.holder and now < each.free_at}

    def stop(self) -> None:
        """Leave: end the membership, then give up all ranges.  :meth:`run` returns when they are released."""
        self._stopping.set()
        self._changed.set()
        self._starting.cancel()

    async def leave(self) -> None:
        """Stop, and wait until :meth:`run` has returned, if it was called."""
        self.stop()
        if self._ended is not None:
            await self._ended.wait()

    def not_ready_reason(self) -> str:
        """Return why this member does not take part yet, or an empty string.  One that waits for others is ready."""
        return "" if self.waits_for or self._identity in self.members else "this replica does not take part yet"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own ranges until cancelled, or until everything is given up after :meth:`stop`.

        ``nursery.start()`` returns when the Leases have been listed.  An ownership can be run only once.

        Raises:
            ExceptionGroup: The function ``hold`` raised an exception.  Or all responses during ``grace_period`` seconds
                were permanent errors, and no response before that was a success.

        Cancellation: each ``hold`` is cancelled, and its Lease is renewed until ``hold`` has ended.  Then the Lease is
            released, which takes at most ``renew_deadline`` seconds.
        """
        self._ended = trio.Event()
        try:
            # subscribed before the start, because the informer ends at once if it is cancelled
            with self._informer.subscribe() as notifications:
                await self._run(notifications, task_status)
        finally:
            self._ended.set()

    async def _run(self, notifications: Subscription[Lease], task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            with self._starting:
                await nursery.start(self._informer.run)
            if self._starting.cancelled_caught:
                return  # the Leases cannot be listed, and nothing is owned
            for lease in self._informer.lister:  # before the first plan
                self._see(lease)
            nursery.start_soon(self._follow, notifications)
            nursery.start_soon(self._be_member)
            task_status.started()
            await self._follow_plans(nursery)
            nursery.cancel_scope.cancel()

    # --- membership -------------------------------------------------------------------------------------------------

    async def _be_member(self) -> None:
        async def be_live(leadership: Leadership) -> None:
            self._live_since = trio.current_time()
            self._member.options = attrs.evolve(self._options, grace_period=math.inf)  # a request has succeeded
            self._changed.set()
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(self._member.run, be_live, again_after_loss=True))
            await self._stopping.wait()
            nursery.cancel_scope.cancel()
        await self._delete(self._member_lease)
        self._has_left = True
        self._changed.set()

    async def _delete(self, lease: str, version: str | None = None) -> None:
        try:
            with trio.move_on_after(self._options.request_deadline):
                await self._api.delete(lease, resource_version=version)
        except REQUEST_ERRORS as error:  # the holder of range 0 tries again
            logger.debug("lease %s of a member that has ended is not deleted: %s", lease, error)

    # --- observations -----------------------------------------------------------------------------------------------

    async def _follow(self, notifications: Subscription[Lease]) -> None:
        async for each in notifications:
            if isinstance(each, Deleted):
                # The holder of a range that was deleted creates its Lease again, so this is not a release.
                self._sightings.pop(each.object.name, None)
                self._changed.set()
            else:
                self._see(each.new if isinstance(each, Updated) else each.object)

    def _see(self, lease: Lease) -> None:
        last = self._sightings.get(lease.name)
        if last is not None and last.version == lease.resource_version:
            return
        try:
            record = LeaseRecord.of(lease)
        except DecodeError:
            return  # the next attempt reports it
        if (number := self._numbers.get(lease.name)) is not None:
            claim_of(self._ranges[number].elector).observe_event(record)
        asks = lease.metadata.annotations.get(ASKS, "").split(",")
        sighting = _Sighting(
            created=(str(lease.metadata.creation_timestamp or ""), lease.name),
            version=lease.resource_version,
            holder=record.holder_identity,
            ranges=lease.metadata.labels.get(RANGES, ""),
            is_range=RANGE in lease.metadata.labels,
            asks=frozenset(number for number in self._numbers.values() if str(number) in asks),
            changed_at=trio.current_time(),
            duration=max(float(record.lease_duration_seconds), self._options.lease_duration),
        )
        self._sightings[lease.name] = sighting
        if last is None or last != sighting or sighting.changed_at >= last.expires_at:
            self._changed.set()

    def _view_of(self, each: _Range) -> RangeView:
        if each.state in OWN:
            return RangeView(holder=self._identity, free_at=math.inf)
        claim = claim_of(each.elector)
        # A range without a Lease, and a range that is held by a former process with this identity, are free.
        free_at = max(claim.free_at, self._live_since) if claim.holder != self._identity else -math.inf
        return RangeView(holder=claim.holder, free_at=free_at, retry_at=each.retry_at)

    # --- plans ------------------------------------------------------------------------------------------------------

    async def _follow_plans(self, nursery: trio.Nursery) -> None:
        while not self._has_left or any(each.state is not RangeState.ELSEWHERE for each in self._ranges):
            self._changed = trio.Event()  # no checkpoint between here and the wait
            with trio.move_on_at(self._follow_plan(nursery)):
                await self._changed.wait()

    def _follow_plan(self, nursery: trio.Nursery) -> float:
        """Make a plan, and start to follow it.  Return the time of the next plan."""
        now = trio.current_time()
        live = self._live_members(now)
        if live.keys() != self.members.keys():
            self._quiet_at = now + QUIET_PERIOD
        self.members = live
        plan = self._plan = make_plan(
            View(
                identity=self._identity,
                asks=live,
                ranges=[self._view_of(each) for each in self._ranges],
                giving_up=[n for n, each in enumerate(self._ranges) if each.state is RangeState.GIVING_UP],
                quiet_at=self._quiet_at,
                now=now,
                retry_period=self._options.retry_period,
                lease_duration=self._options.lease_duration,
            )
        )
        claim_of(self._member).annotate({ASKS: ",".join(map(str, plan.ask))})
        for number in plan.take:
            self._ranges[number].state, self._ranges[number].retry_at = RangeState.ACQUIRING, math.inf
            nursery.start_soon(self._own, number)
        for number in self._numbers.values() if self._has_left or self._yields else plan.give_up:
            if self._ranges[number].state is RangeState.HELD:
                self._ranges[number].state = RangeState.GIVING_UP
                self._ranges[number].giving_up.set()
        return min(plan.wake_at, self._clean_up(nursery, now))

    def _live_members(self, now: float) -> Mapping[str, frozenset[int]]:
        """Return the live members with the same number of ranges, and the ranges that each asks for."""
        live: dict[str, frozenset[int]] = {}
        seen = [each for each in self._sightings.values() if now < each.expires_at]
        # The oldest member decides how objects are divided.  A younger one has seen its Lease before its own.
        oldest = min((each for each in seen if not each.is_range), key=lambda each: each.created, default=None)
        self._yields = oldest is not None and oldest.ranges != self._division
        waits_for = oldest.holder if oldest is not None and self._yields else ""
        for each in seen:
            if each.is_range and each.ranges != self._division and each.holder != self._identity:
                waits_for = waits_for or each.holder
            elif not each.is_range and each.ranges == self._division and each.holder != self._identity:
                live[each.holder] = each.asks
        if waits_for and not self.waits_for:
            logger.warning("shares %s: waiting for %r, which divides the objects in another way", self._name, waits_for)
        self.waits_for = waits_for
        is_seen = self._member_lease in self._sightings
        if self._member.is_leader and is_seen and not self._stopping.is_set() and not waits_for:
            live[self._identity] = frozenset(self._plan.ask if self._plan is not None else ())
        return live

    def _clean_up(self, nursery: trio.Nursery, now: float) -> float:
        """Delete the Leases of members that ended long ago.  Return the time when the next Lease expires."""
        times = []
        for name, each in self._sightings.items():
            if now < each.expires_at:
                times.append(each.expires_at)
            elif not each.is_range and name != self._member_lease and self._ranges[0].state is RangeState.HELD:
                delete_at = each.changed_at + KEPT_DURATIONS * each.duration
                if now >= delete_at:
                    self._sightings[name] = attrs.evolve(each, changed_at=now)  # the time of the next attempt
                    nursery.start_soon(self._delete, name, each.version)
                times.append(max(delete_at, now + each.duration))
        return min(times, default=math.inf)

    async def _own(self, number: int) -> None:
        """Try to acquire a range, and hold it."""
        each = self._ranges[number]
        delay = 0.0

        async def hold(leadership: Leadership) -> None:
            each.state, each.giving_up = RangeState.HELD, trio.Event()
            self.moves += 1
            self._changed.set()
            await self._hold(number, leadership, each.giving_up)

        try:
            delay = await try_run(each.elector, hold)
        finally:
            each.state = RangeState.ELSEWHERE
            each.retry_at = trio.current_time() + (delay or self._options.retry_period)
            self._changed.set()
