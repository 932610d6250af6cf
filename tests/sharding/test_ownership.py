"""Ownership of ranges: one owner at a time, soon after every change of the members, with few moves."""

from __future__ import annotations

import itertools
import logging
import random

import httpx
import hypothesis
import pytest
import trio
import trio.testing
from hypothesis import strategies as st

from tests.support.lease_candidates import Fault
from tests.support.range_owners import BOUND, NAMESPACE, RANGES, RangeOwners, range_owners
from trioformer._util import first_leaf
from trioformer.errors import ForbiddenError, NotFoundError
from trioformer.leaderelection import Leadership
from trioformer.models.coordination_v1 import Lease
from trioformer.sharding._ownership import RangeState

IS_LONG = hypothesis.settings.get_current_profile_name() == "long"
SETTLED = 30.0
"""Seconds after a change of the members, without faults, until the ranges are spread evenly."""


async def settle(ranges: RangeOwners) -> None:
    """Wait until the ranges have settled after a change, and forget what happened."""
    await trio.sleep(BOUND + SETTLED)
    assert ranges.is_even(), ranges.owners
    ranges.forget()


# --- joining ----------------------------------------------------------------------------------------------------------


async def test_a_single_member_owns_all_ranges_immediately(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        member = await ranges.start("a")
        await trio.testing.wait_all_tasks_blocked()
        assert ranges.owners == dict.fromkeys(range(RANGES), "a")
        assert trio.current_time() == 0
        ownership = member.ownership
        assert ownership.own == set(range(RANGES))
        assert ownership.owners == ranges.owners == dict(enumerate(ownership._plan.preferred))
        assert set(ownership.members) == {"a"}
        assert ownership.moves == RANGES
        assert {each.state for each in ownership._ranges} == {RangeState.HELD}
        assert "'a' owns [0, 1" in repr(ownership)


async def test_a_member_that_joins_gets_its_part_a_few_ranges_at_a_time(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners(drain=lambda: 1.0) as ranges:
        for count in range(1, 6):
            await ranges.start()
            await trio.sleep(9.9)
            assert ranges.moves == [] or count == 1, "the members have not been quiet for 10 s"
            await trio.sleep(SETTLED)
            assert ranges.is_even()
            if count > 1:
                assert len(ranges.moves) <= RANGES / count + 1
                assert ranges.most_without_owner <= RANGES // 8
            ranges.forget()
        await trio.sleep(60)
        assert ranges.moves == []


async def test_a_range_keeps_its_owner_while_it_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners(drain=lambda: 60.0) as ranges:
        first = await ranges.start("a")
        await trio.sleep(1)
        await ranges.start("b")
        await trio.sleep(20)
        assert [each.state for each in first.ownership._ranges].count(RangeState.GIVING_UP) == 2
        assert len(first.ownership.own) == RANGES
        assert set(ranges.owners.values()) == {"a"}
        assert len(first.ownership.members["b"]) == RANGES // 2  # what it asks for
        await trio.sleep(60)
        assert sorted(ranges.owners.values()).count("b") == 2


async def test_members_that_start_together_share_the_ranges(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges, trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(ranges.start)
        await trio.sleep(SETTLED)
        assert ranges.loads() == [4, 4, 4, 4]


# --- leaving and dying ------------------------------------------------------------------------------------------------


async def test_the_ranges_of_a_member_that_leaves_are_owned_at_once(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        members = [await ranges.start() for _ in range(4)]
        await settle(ranges)
        before = trio.current_time()
        await members[1].leave()
        assert members[1].error is None
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert trio.current_time() - before < 0.5
        assert ranges.loads() == [6, 5, 5]
        assert len(ranges.moves) == 4
        with pytest.raises(NotFoundError):
            ranges.server.get(Lease, "web-member-pod-1", namespace=NAMESPACE)
        await trio.sleep(100)
        assert len(ranges.moves) == 4


async def test_a_member_that_leaves_owns_its_ranges_until_it_has_drained(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with range_owners(drain=lambda: 40.0) as ranges:
        first = await ranges.start("a")
        await trio.sleep(5)
        await ranges.start("b")
        before = trio.current_time()
        await first.leave()
        assert trio.current_time() - before == pytest.approx(40, abs=1)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert ranges.loads() == [RANGES]
        assert max(ranges.gaps) < 0.5


@pytest.mark.parametrize("seed", range(3))
async def test_ranges_of_a_killed_member_are_owned_again_in_time(
    autojump_clock: trio.testing.MockClock, seed: int
) -> None:
    async with range_owners() as ranges:
        members = [await ranges.start() for _ in range(4)]
        await settle(ranges)
        await trio.sleep(random.Random(seed).uniform(0, 2))
        members[seed % 4].kill()
        await trio.sleep(BOUND)
        assert ranges.loads() == [6, 5, 5]
        await trio.sleep(SETTLED)
        assert len(ranges.moves) == 4


async def test_two_members_that_die_together_leave_no_range_behind(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        members = [await ranges.start() for _ in range(4)]
        await settle(ranges)
        members[0].kill()
        members[3].kill()
        await trio.sleep(BOUND)
        assert len(ranges.owners) == RANGES
        await settle(ranges)
        await trio.sleep(200)
        for name in ("web-member-pod-0", "web-member-pod-3"):  # unchanged for ten lease durations
            with pytest.raises(NotFoundError):
                ranges.server.get(Lease, name, namespace=NAMESPACE)
        ranges.server.get(Lease, "web-member-pod-1", namespace=NAMESPACE)


async def test_a_restarted_member_owns_its_former_ranges_without_a_wait(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        member = await ranges.start("a")
        await trio.sleep(5)
        member.kill()
        await member.ended.wait()
        before = trio.current_time()
        await ranges.start("a")
        await trio.testing.wait_all_tasks_blocked()
        assert len(ranges.owners) == RANGES
        assert trio.current_time() == before


# --- faults -----------------------------------------------------------------------------------------------------------


async def test_a_partitioned_member_stops_before_others_own_its_ranges(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        members = [await ranges.start() for _ in range(4)]
        await settle(ranges)
        members[2].inject("hang")
        await trio.sleep(BOUND)
        assert ranges.loads() == [6, 5, 5]
        assert min(ranges.gaps) >= 4  # lease_duration - renew_deadline, less the jitter of a renewal
        members[2].inject("none")
        ranges.forget()
        await trio.sleep(BOUND + SETTLED)
        assert ranges.loads() == [4, 4, 4, 4]
        assert len(ranges.moves) == 4


async def test_a_server_that_is_down_for_a_minute_causes_no_storm(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        for _ in range(4):
            await ranges.start()
        await settle(ranges)
        for member in ranges.members.values():
            member.inject("refuse")
        await trio.sleep(60)
        assert ranges.owners == {}
        for member in ranges.members.values():
            member.inject("none")
        await trio.sleep(BOUND + SETTLED)
        assert ranges.is_even()
        assert len(ranges.moves) < 2 * RANGES


async def test_a_slow_member_gets_its_part_and_causes_no_oscillation(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        await ranges.start()
        await ranges.start()
        await settle(ranges)
        slow = await ranges.start("slow")
        slow.transport.latency = lambda: 2.0  # so two requests take longer than rank 1 waits
        slow.inject("slow")
        await trio.sleep(60)
        assert ranges.is_even()
        assert len(ranges.moves) <= 5
        await trio.sleep(60)
        assert len(ranges.moves) <= 5


async def test_a_member_that_cannot_write_the_leases_of_ranges_blocks_none(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def fail_for_ranges(request: httpx.Request) -> Fault:
        return "refuse" if "-range-" in request.url.path else "none"

    async with range_owners() as ranges:
        first = await ranges.start("a")
        await trio.sleep(1)
        stuck = await ranges.start("stuck")
        stuck.inject(fail_for_ranges)
        await trio.sleep(5)
        first.kill()
        await first.ended.wait()
        await ranges.start("c")
        await trio.sleep(BOUND)
        assert ranges.owners == dict.fromkeys(range(RANGES), "c")


async def test_a_broken_watch_delays_nothing_and_makes_no_second_owner(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        blind = await ranges.start("blind")
        other = await ranges.start("other")
        await settle(ranges)
        blind.inject(lambda request: "hang" if request.url.path.endswith("/leases") else "none")
        ranges.server.disconnect_watches()
        await trio.sleep(60)
        assert ranges.moves == []
        other.kill()
        await trio.sleep(BOUND + 15)
        assert ranges.loads() == [RANGES]


async def test_a_flapping_member_moves_only_what_it_owned(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        for _ in range(3):
            await ranges.start()
        await settle(ranges)
        for _ in range(6):
            member = await ranges.start("flapping")
            await trio.sleep(8)
            await member.leave()
        assert ranges.moves == []
        for _ in range(3):
            member = await ranges.start("flapping")
            await trio.sleep(SETTLED)
            await member.leave()
        assert len(ranges.moves) <= 3 * 2 * 4


async def test_a_response_that_is_lost_costs_one_attempt(autojump_clock: trio.testing.MockClock) -> None:
    lost = itertools.count()
    async with range_owners() as ranges:
        member = await ranges.start("a")
        member.inject(
            lambda request: (
                "lose response" if "-range-" in request.url.path + str(request.content) and next(lost) < 3 else "none"
            )
        )
        await trio.sleep(BOUND)
        assert ranges.loads() == [RANGES]


# --- rollouts ---------------------------------------------------------------------------------------------------------


async def test_a_rolling_update_moves_each_range_about_once(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners(drain=lambda: 1.0) as ranges:
        old = [await ranges.start() for _ in range(4)]
        await settle(ranges)
        for member in old:
            await ranges.start()
            await trio.sleep(5)  # it is ready
            await member.leave()
        await trio.sleep(1)
        assert len(ranges.owners) == RANGES
        assert max(ranges.gaps) < 1
        await trio.sleep(SETTLED)
        assert ranges.loads() == [4, 4, 4, 4]
        assert len(ranges.moves) <= 2 * RANGES + RANGES // 2


async def test_scaling_to_eight_and_back_moves_only_what_it_must(autojump_clock: trio.testing.MockClock) -> None:
    async with range_owners() as ranges:
        members = [await ranges.start() for _ in range(8)]
        await trio.sleep(2 * SETTLED)
        assert ranges.loads() == [2] * 8
        ranges.forget()
        for member in members[1:]:
            await member.leave()
            await trio.sleep(SETTLED)
            assert ranges.is_even()
        assert len(ranges.moves) <= 2 + 3 + 3 + 4 + 4 + 6 + 8 + 4
        assert max(ranges.gaps) < 0.5


# --- configuration and errors -----------------------------------------------------------------------------------------


async def test_members_with_different_numbers_of_ranges_never_own_some_together(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with range_owners() as ranges:
        first = await ranges.start("old-a")
        await trio.sleep(5)
        second = await ranges.start("old-b")
        second.transport.latency = lambda: 0.1
        third = await ranges.start("new", ranges=8)
        await trio.sleep(3)
        first.kill()
        await trio.sleep(100)
        both = second.ownership, third.ownership
        assert sorted(len(each.own) for each in both) in ([0, 8], [0, RANGES])
        assert [bool(each.waits_for) for each in both].count(True) == 1


async def test_a_member_waits_for_owners_with_another_number_of_ranges(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with range_owners() as ranges:
        old = await ranges.start("old")
        await trio.sleep(1)
        new = await ranges.start("new", ranges=32)
        await trio.sleep(100)
        assert ranges.loads() == [RANGES]
        assert new.ownership.waits_for == "old"
        assert caplog.text.count("in another way") == 1
        await old.leave()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert ranges.owners == dict.fromkeys(range(32), "new")
        assert new.ownership.waits_for == ""


async def test_a_restarted_member_does_not_wait_for_its_former_number_of_ranges(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with range_owners() as ranges:
        member = await ranges.start("a")
        await trio.sleep(1)
        member.kill()
        await member.ended.wait()
        before = trio.current_time()
        await ranges.start("a", ranges=8)
        await trio.testing.wait_all_tasks_blocked()
        assert len(ranges.owners) == 8
        assert trio.current_time() == before


async def test_an_exception_in_hold_ends_the_run_and_releases_the_leases(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def fail(number: int, leadership: Leadership, giving_up: trio.Event) -> None:
        await trio.sleep(1)
        raise ZeroDivisionError

    async with range_owners() as ranges:
        member = await ranges.start("a", hold=fail)
        await member.ended.wait()
        assert isinstance(first_leaf(member.error), ZeroDivisionError)
        await ranges.start("b")
        await trio.testing.wait_all_tasks_blocked()
        assert len(ranges.owners) == RANGES
        assert trio.current_time() < 2


async def test_permanent_errors_are_raised_only_before_the_first_success(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with range_owners() as ranges:
        ranges.server.fail_next(10_000, resource="leases", verb="create", status=403)
        member = await ranges.start("a")
        await member.ended.wait()
        assert isinstance(first_leaf(member.error), ForbiddenError)
        assert trio.current_time() == pytest.approx(30, abs=5)


async def test_later_permanent_errors_are_retried_and_logged_once(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with range_owners() as ranges:
        await ranges.start("a")
        await trio.sleep(10)
        caplog.clear()
        is_forbidden = True
        ranges.server.fail_next(
            10_000, resource="leases", status=lambda record: 403 if is_forbidden and record.verb != "watch" else None
        )
        await trio.sleep(9)
        warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert len(warnings) == 1
        await trio.sleep(100)
        assert ranges.owners == {}
        is_forbidden = False
        await trio.sleep(BOUND)
        assert len(ranges.owners) == RANGES


async def test_each_range_is_logged_once_when_it_is_taken_and_given_up(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="trioformer")
    async with range_owners() as ranges:
        member = await ranges.start("a")
        await trio.sleep(100)
        assert len([each for each in caplog.messages if "-range-" in each]) == RANGES
        await member.leave()
        assert len([each for each in caplog.messages if "-range-" in each]) == 2 * RANGES


# --- random stories ---------------------------------------------------------------------------------------------------


async def run_story(seed: int) -> RangeOwners:
    """Start, kill, stop and disturb members for some minutes; the ranges settle after that."""
    rng = random.Random(seed)
    kinds: tuple[Fault, ...] = ("none", "none", "none", "refuse", "hang", "lose response", "deliver late", "slow")
    ends_at = 150.0
    async with range_owners(drain=lambda: rng.expovariate(1.0)) as ranges:
        while trio.current_time() < ends_at:
            await trio.sleep(rng.expovariate(1 / 8))
            members = list(ranges.members.values())
            if len(members) < rng.randint(1, 5):
                skew = rng.uniform(-1e5, 1e5)
                member = await ranges.start(wall_clock=lambda skew=skew: 1e9 + skew)
                member.transport.latency = lambda: rng.uniform(0, 3)
                member.transport.delivery_delay = lambda: rng.uniform(1, 30)
                continue
            member = rng.choice(members)
            action = rng.random()
            if action < 0.2:
                member.kill()
            elif action < 0.4:
                member.ownership.stop()
            elif action < 0.9:
                fault = rng.choice(kinds)
                member.inject(lambda _, fault=fault: fault if rng.random() < 0.8 else rng.choice(kinds))
            else:
                member.inject("none")
        for member in ranges.members.values():
            if not member.process.cancel_called:
                member.inject("none")
        await ranges.start()
        await trio.sleep(2 * BOUND + SETTLED)
        assert ranges.is_even(), (ranges.owners, ranges.members.keys())
        before = len(ranges.moves)
        await trio.sleep(60)
        assert len(ranges.moves) == before
    return ranges


def check_story(seed: int) -> RangeOwners:
    return trio.run(run_story, seed, clock=trio.testing.MockClock(autojump_threshold=0))


@hypothesis.given(seed=st.integers(0, 2**32))
@hypothesis.settings(max_examples=20 if IS_LONG else 3)
def test_no_range_has_two_owners_whatever_happens(seed: int) -> None:
    ranges = check_story(seed)
    assert len(ranges.moves) > 2 * RANGES
    assert max(ranges.gaps) > 0


@pytest.mark.long
def test_no_range_has_two_owners_in_hundreds_of_stories() -> None:
    for seed in range(200):
        check_story(seed)
