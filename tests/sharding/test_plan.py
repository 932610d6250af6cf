"""Plans: an even assignment with few moves, the order in which members take ranges, and when ranges are given up."""

from __future__ import annotations

import collections
import math
from collections.abc import Collection, Mapping, Sequence

import attrs
import hypothesis
import pytest
from hypothesis import strategies as st

from trioformer.sharding._plan import MOVING_FRACTION, Plan, RangeView, View, assign, make_plan

FREE = RangeView(holder="", free_at=0.0)
NAMES = tuple("abcdefgh")
members = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)


def plan_of(
    identity: str,
    holders: Sequence[str],
    *,
    asks: Mapping[str, Collection[int]],
    ranges: Mapping[int, RangeView] | None = None,
    giving_up: Collection[int] = (),
    quiet_at: float = 0.0,
    now: float = 100.0,
) -> Plan:
    """The plan of a member when each holder renews its ranges."""
    views = [RangeView(holder=each, free_at=math.inf if each == identity else now + 15) for each in holders]
    for number, view in (ranges or {}).items():
        views[number] = view
    return make_plan(
        View(
            identity=identity,
            asks=asks,
            ranges=views,
            giving_up=giving_up,
            quiet_at=quiet_at,
            now=now,
            retry_period=2.0,
            lease_duration=15.0,
        )
    )


# --- the assignment ---------------------------------------------------------------------------------------------------


@hypothesis.given(live=members, ranges=st.integers(1, 64))
def test_the_numbers_of_ranges_of_two_members_differ_by_at_most_one(live: list[str], ranges: int) -> None:
    loads = collections.Counter(assign(live, [""] * ranges))
    assert {loads[each] for each in live} <= {ranges // len(live), math.ceil(ranges / len(live))}


@hypothesis.given(live=members, holders=st.lists(st.sampled_from(("", *NAMES)), min_size=1, max_size=64))
def test_an_assignment_is_even_and_moves_only_what_is_too_much(live: list[str], holders: list[str]) -> None:
    preferred = assign(live, holders)
    loads = collections.Counter(preferred)
    assert loads.keys() <= set(live)
    assert max(loads.values()) - min(loads[each] for each in live) <= 1
    held = collections.Counter(each for each in holders if each in live)
    quota, extra = divmod(len(holders), len(live))
    surplus = sorted(max(0, held[each] - quota) for each in live)
    moved = sum(was != now for was, now in zip(holders, preferred, strict=True) if was in live)
    assert moved == sum(surplus) - min(extra, sum(each > 0 for each in surplus))
    assert assign(live[::-1], holders) == preferred
    assert assign(live, preferred) == preferred


def test_without_members_no_range_is_assigned() -> None:
    assert assign((), ["a", ""]) == []


@hypothesis.given(live=members, ranges=st.integers(1, 64))
def test_a_range_that_was_given_up_stays_assigned_to_the_same_member(live: list[str], ranges: int) -> None:
    holders = [live[0]] * ranges
    while (preferred := assign(live, holders)) != holders:
        number = next(n for n in range(ranges) if preferred[n] != holders[n])
        holders[number] = ""
        assert assign(live, holders) == preferred
        holders[number] = preferred[number]


def test_different_members_take_over_from_a_member_that_died() -> None:
    holders = assign("abcd", [""] * 16)
    after = assign("abc", holders)
    assert {now for was, now in zip(holders, after, strict=True) if was == "d"} == {"a", "b", "c"}


# --- free ranges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", [FREE, RangeView(holder="dead", free_at=0.0)], ids=["released", "expired"])
def test_live_members_take_a_free_range_one_retry_period_apart(view: RangeView) -> None:
    live = dict.fromkeys("abcd", ())
    firsts = {}
    for identity in live:
        now = 0.0
        while not (plan := plan_of(identity, [""], asks=live, ranges={0: view}, now=now)).take:
            assert plan.wake_at > now
            now = plan.wake_at
        firsts[identity] = now
    assert sorted(firsts.values()) == [0, 2, 4, 6]
    assert firsts[assign(live, [""])[0]] == 0


def test_a_member_that_is_not_live_takes_and_asks_for_nothing() -> None:
    plan = plan_of("a", ["b"] * 4, asks={"b": ()}, ranges={0: FREE})
    assert (plan.take, plan.ask) == ([], [])
    assert plan_of("a", ["b"], asks={}).preferred == []


def test_a_held_range_is_taken_when_its_lease_expires() -> None:
    live: dict[str, Collection[int]] = {"a": ()}
    view = RangeView(holder="dead", free_at=110.0)
    plan = plan_of("a", [""], asks=live, ranges={0: view})
    assert (plan.take, plan.wake_at) == ([], 110.0)
    assert plan_of("a", [""], asks=live, ranges={0: view}, now=110.0).take == [0]


def test_a_range_that_a_live_member_did_not_renew_is_taken_by_another() -> None:
    preferred = assign("ab", [""])[0]
    holder = "b" if preferred == "a" else "a"
    view = RangeView(holder=holder, free_at=110.0)
    before = plan_of(preferred, [""], asks=dict.fromkeys("ab", ()), ranges={0: view}, now=109.0)
    assert (before.preferred, before.take, before.wake_at) == ([holder], [], 110.0)
    after = plan_of(preferred, [""], asks=dict.fromkeys("ab", ()), ranges={0: view}, now=110.0)
    assert (after.preferred, after.take) == ([preferred], [0])


def test_a_failed_attempt_is_repeated_after_its_delay() -> None:
    view = attrs.evolve(FREE, retry_at=103.0)
    plan = plan_of("a", [""], asks={"a": ()}, ranges={0: view})
    assert (plan.take, plan.wake_at) == ([], 103.0)


def test_a_lease_of_a_former_process_with_this_identity_is_taken_at_once() -> None:
    live = dict.fromkeys("abcd", ())
    for identity in live:
        assert plan_of(identity, [""], asks=live, ranges={0: RangeView(holder=identity, free_at=-math.inf)}).take == [0]


def test_a_range_is_left_to_the_member_that_asked_for_it() -> None:
    preferred = assign("ab", [""])[0]
    other = "b" if preferred == "a" else "a"
    asks = {preferred: [0], other: ()}
    assert plan_of(other, [""], asks=asks, ranges={0: FREE}, now=16.9).take == []
    assert plan_of(other, [""], asks=asks, ranges={0: FREE}, now=17.0).take == [0]
    # A range whose holder died is not left to a member that may be stuck.
    expired = RangeView(holder="dead", free_at=0.0)
    assert plan_of(other, [""], asks=asks, ranges={0: expired}, now=2.0).take == [0]


# --- moves ------------------------------------------------------------------------------------------------------------


def test_nothing_is_asked_for_or_given_up_before_the_members_are_quiet() -> None:
    holders = ["a"] * 16
    wanted = [n for n, member in enumerate(assign("ab", holders)) if member == "b"]
    for quiet_at, expected in ((100.0, wanted), (100.1, [])):
        assert plan_of("b", holders, asks=dict.fromkeys("ab", ()), quiet_at=quiet_at).ask == expected
        asks = {"a": (), "b": wanted}
        assert plan_of("a", holders, asks=asks, quiet_at=quiet_at).give_up == expected[:2]
    assert plan_of("a", holders, asks=asks, quiet_at=100.1).wake_at == 100.1


def test_an_eighth_of_the_ranges_moves_at_a_time() -> None:
    holders = ["a"] * 16
    wanted = [n for n, member in enumerate(assign("ab", holders)) if member == "b"]
    asks = {"a": (), "b": wanted}
    assert plan_of("a", holders, asks=asks).give_up == wanted[:2]
    assert plan_of("a", holders, asks=asks, giving_up=wanted[:1]).give_up == wanted[1:2]
    assert plan_of("a", holders, asks=asks, giving_up=wanted[:2]).give_up == []
    free = next(n for n in range(16) if n not in wanted)
    assert plan_of("a", holders, asks=asks, ranges={free: FREE}).give_up == wanted[:1]


def test_a_range_is_given_up_only_to_the_preferred_member() -> None:
    holders = ["a"] * 16
    preferred = assign("abc", holders)
    of_b = [n for n, member in enumerate(preferred) if member == "b"]
    assert plan_of("a", holders, asks={"a": (), "b": (), "c": of_b}).give_up == []
    assert plan_of("a", holders, asks={"a": (), "b": of_b, "c": ()}).give_up == of_b[:2]


@hypothesis.given(
    rounds=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, unique=True), min_size=1, max_size=4),
    ranges=st.sampled_from([1, 4, 16, 40]),
    order=st.randoms(use_true_random=False),
)
def test_members_with_the_same_view_settle_evenly_in_few_moves(
    rounds: list[list[str]], ranges: int, order: object
) -> None:
    owners = [""] * ranges
    for live in rounds:
        owners = [each if each in live else "" for each in owners]  # the others leave
        surplus = sum(was != now for was, now in zip(owners, assign(live, owners), strict=True))
        moves = 0
        while assign(live, owners) != owners:
            order.shuffle(live)  # type: ignore[attr-defined]  # a random.Random
            free = {n: FREE for n, each in enumerate(owners) if not each}
            asks: dict[str, Collection[int]] = dict.fromkeys(live, ())
            for identity in live:
                asks[identity] = plan_of(identity, owners, asks=asks, ranges=free).ask
            moving = set()
            for identity in live:
                plan = plan_of(identity, owners, asks=asks, ranges=free, now=0.0)
                for number in plan.take:
                    assert number in free
                    owners[number] = identity
                    moves += 1
                moving.update(plan.give_up)
            assert len(moving) <= max(1, ranges // MOVING_FRACTION)
            for number in moving:
                owners[number] = ""
        assert moves == surplus
