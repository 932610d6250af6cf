"""A range that is held, and the calls in it: who waits for whom when it is given up or lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from trioformer.cache import ApiListWatch
from trioformer.client import Client
from trioformer.leaderelection import Leadership
from trioformer.leaderelection._leadership import Clocks, Loss, Term
from trioformer.models.core_v1 import Pod
from trioformer.sharding import Shares
from trioformer.sharding._caches import ShareCaches
from trioformer.sharding._held import CacheState
from trioformer.sharding._kinds import KindShare
from trioformer.sharding._ranges import range_of

GRACE = 5.0
RANGES = 16
NAMESPACES = {range_of(f"team-{number}-prod", RANGES): f"team-{number}-prod" for number in range(200)}
"""A namespace in each range."""


@attrs.define(eq=False)
class Holding:
    """A range that is held during a block, and calls that take some time."""

    nursery: trio.Nursery
    client: Client
    term: Term = attrs.field(factory=lambda: new_term())
    caches: ShareCaches = attrs.field(factory=lambda: ShareCaches(Shares("tests", RANGES), GRACE))
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    again: list[str] = attrs.field(factory=list)
    ended: list[str] = attrs.field(factory=list)
    """What has ended, and when."""
    giving_up: trio.Event = attrs.field(factory=trio.Event)
    kind: KindShare[Pod] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.kind = KindShare(ApiListWatch(self.client.api(Pod)), "namespace", RANGES, self.caches.held)

    def open_call(self, number: int, name: str) -> AbstractContextManager[trio.CancelScope | None]:
        return self.kind.open_call(f"{NAMESPACES[number]}/web", partial(self.again.append, name))

    async def hold(self) -> None:
        with self.scope:
            await self.caches.hold(3, Leadership._create(self.term), self.giving_up)
        self.ended.append(f"{trio.current_time():g} hold")

    async def call(self, name: str, seconds: float, clean_up: float = 0.0) -> None:
        with self.open_call(3, name) as scope:
            if scope is None:
                self.ended.append(f"{trio.current_time():g} {name} refused")
                return
            try:
                await trio.sleep(seconds)
                self.ended.append(f"{trio.current_time():g} {name}")
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    await trio.sleep(clean_up)
                self.ended.append(f"{trio.current_time():g} {name} cancelled")
                raise

    def lose(self) -> None:
        """Lose the range, as an elector does."""
        self.term.lose(Loss("the test", None))
        self.scope.cancel()


def new_term() -> Term:
    clocks = Clocks(trio.current_time)
    return Term("me", 0, clocks, 15.0, clocks.now())


@asynccontextmanager
async def holding(client: Client) -> AsyncGenerator[Holding, None]:
    async with trio.open_nursery() as nursery:
        held = Holding(nursery, client)
        nursery.start_soon(held.hold)
        await trio.testing.wait_all_tasks_blocked()
        assert held.caches.held[3].state is CacheState.READY
        yield held


async def test_giving_up_waits_for_running_calls_and_begins_no_others(
    client: Client,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with holding(client) as held:
        held.nursery.start_soon(held.call, "a", 3.0)
        held.nursery.start_soon(held.call, "b", 4.0)
        await trio.sleep(1)
        held.giving_up.set()
        await trio.testing.wait_all_tasks_blocked()
        assert held.caches.held[3].leadership.is_held  # the calls may read their objects
        await held.call("late", 1.0)
    assert held.ended == ["1 late refused", "3 a", "4 b", "4 hold"]
    assert held.again == []
    assert held.caches.held == {}


async def test_giving_up_cancels_calls_after_the_grace_and_waits_until_they_have_ended(
    client: Client,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with holding(client) as held:
        held.nursery.start_soon(held.call, "a", 100.0, 2.0)
        await trio.sleep(1)
        held.giving_up.set()
    assert held.ended == ["8 a cancelled", "8 hold"]


@pytest.mark.parametrize("is_given_up", [False, True])
async def test_a_loss_cancels_calls_at_once_and_waits_until_they_have_ended(
    client: Client, autojump_clock: trio.testing.MockClock, is_given_up: bool
) -> None:
    async with holding(client) as held:
        held.nursery.start_soon(held.call, "a", 100.0, 2.0)
        await trio.sleep(1)
        if is_given_up:
            held.giving_up.set()
            await trio.sleep(1)
        held.lose()
        assert not held.caches.held[3].leadership.is_held
        await trio.testing.wait_all_tasks_blocked()
        await held.call("late", 1.0)
    lost = 1 + is_given_up
    assert held.ended == [f"{lost} late refused", f"{lost + 2} a cancelled", f"{lost + 2} hold"]


async def test_no_call_begins_after_the_lease_has_expired(
    client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    async with holding(client) as held:
        await trio.sleep(14.9)
        await held.call("a", 0.0)
        await trio.sleep(0.1)
        await held.call("b", 0.0)  # the elector has not noticed it yet
        assert held.ended == ["14.9 a", "15 b refused"]
        held.scope.cancel()


async def test_a_call_that_comes_too_early_is_requested_again(
    client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    async with holding(client) as held:
        range_ = held.caches.held[3]
        range_.become(CacheState.LISTING)
        await held.call("a", 1.0)
        assert held.ended == ["0 a refused"]
        assert held.again == []
        range_.become(CacheState.READY)
        assert held.again == ["a"]
        range_.become(CacheState.LISTING)
        await held.call("b", 1.0)
        held.lose()
    assert held.again == ["a"]


async def test_calls_in_ranges_of_others_are_refused(client: Client, autojump_clock: trio.testing.MockClock) -> None:
    async with holding(client) as held:
        with held.open_call(4, "a") as scope:
            assert scope is None
        assert held.again == []
        held.scope.cancel()
