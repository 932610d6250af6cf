"""Members that own ranges by the Leases of an embedded server, and a record of which member owned which range."""

from __future__ import annotations

import collections
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx
import trio

from tests.support.lease_candidates import Fault, FaultInjector
from trioformer.client import open_client
from trioformer.leaderelection import LeaderElectionOptions, Leadership
from trioformer.sharding import Shares
from trioformer.sharding._ownership import Ownership
from trioformer.testing import APIServer

NAME = "web"
NAMESPACE = "default"
RANGES = 16
BOUND = 15 + 2 * 2.0
"""Seconds after the death of a member until its ranges are owned again: ``lease_duration + 2 * retry_period``."""


@attrs.define(eq=False)
class Member:
    """A process that owns ranges, with its own client."""

    ownership: Ownership
    transport: FaultInjector
    process: trio.CancelScope
    ended: trio.Event = attrs.field(factory=trio.Event)
    error: Exception | None = None

    def kill(self) -> None:
        """End the process: nothing that it sends reaches the server any more."""
        self.inject("refuse")
        self.process.cancel()

    def inject(self, fault: Fault | Callable[[httpx.Request], Fault]) -> None:
        self.transport.fault = fault if callable(fault) else lambda _: fault

    async def leave(self) -> None:
        self.ownership.stop()
        await self.ended.wait()


@attrs.define(eq=False)
class RangeOwners:
    """Starts members, records which member owns which range, and checks that no range has two owners."""

    server: APIServer
    nursery: trio.Nursery
    drain: Callable[[], float] = lambda: 0.0
    """Seconds that a member needs to give a range up."""
    owners: dict[int, str] = attrs.field(factory=dict)
    members: dict[str, Member] = attrs.field(factory=dict)
    """The members that have not ended."""
    moves: list[tuple[float, int, str]] = attrs.field(factory=list)
    """When a member began to own a range, the range, and the member."""
    gaps: list[float] = attrs.field(factory=list)
    """Seconds in which a range had no owner."""
    most_without_owner: int = 0
    """The largest number of ranges without an owner at a time, since it was set."""
    _free_since: dict[int, float] = attrs.field(factory=dict)
    _names: Any = attrs.field(factory=lambda: map("pod-{}".format, itertools.count()))

    async def start(self, identity: str = "", *, ranges: int = RANGES, hold: Any = None, **options: Any) -> Member:
        """Start a member; it has listed the Leases when this returns."""
        identity = identity or next(self._names)
        return await self.nursery.start(self._run, identity, ranges, hold or self.hold, options)

    async def _run(
        self, identity: str, ranges: int, hold: Any, options: Any, *, task_status: trio.TaskStatus[Member]
    ) -> None:
        transport = FaultInjector(self.server.http_transport(), self.nursery)
        async with open_client(self.server.config, http_transport=transport) as client:
            shares = Shares(NAME, ranges, "uid", namespace=NAMESPACE, options=LeaderElectionOptions(**options))
            ownership = Ownership(client, shares, identity, hold)
            member = Member(ownership, transport, trio.CancelScope())
            self.members[identity] = member
            task_status.started(member)
            try:
                with member.process:
                    await ownership.run()
            except ExceptionGroup as error:
                member.error = error
            finally:
                del self.members[identity]
                member.ended.set()

    async def hold(self, number: int, leadership: Leadership, giving_up: trio.Event) -> None:
        identity = leadership.identity
        assert number not in self.owners, f"{identity} owns range {number}, which {self.owners[number]} still owns"
        assert leadership.is_held
        now = trio.current_time()
        self.owners[number] = identity
        self.moves.append((now, number, identity))
        self.gaps.append(now - self._free_since.pop(number, now))
        try:
            await giving_up.wait()
            await trio.sleep(self.drain())
        finally:
            del self.owners[number]
            self._free_since[number] = trio.current_time()
            self.most_without_owner = max(self.most_without_owner, len(self._free_since))

    def loads(self) -> list[int]:
        """How many ranges each member owns, without members that own none, the largest first."""
        return sorted(collections.Counter(self.owners.values()).values(), reverse=True)

    def is_even(self) -> bool:
        loads = [list(self.owners.values()).count(identity) for identity in self.members]
        return sum(loads) == RANGES and max(loads) - min(loads) <= 1

    def forget(self) -> None:
        """Forget the moves and gaps so far."""
        self.moves.clear()
        self.gaps.clear()
        self.most_without_owner = 0


@asynccontextmanager
async def range_owners(**options: Any) -> AsyncIterator[RangeOwners]:
    """A server, and members that end with the block."""
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with trio.open_nursery() as members:
            yield RangeOwners(server, members, **options)
            members.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
