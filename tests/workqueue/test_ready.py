"""Priorities, as in controller-runtime's queue: the highest first, adds of a key merge, equal ones keep their order."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer.workqueue import RateLimitingQueue, WorkQueue
from trioformer.workqueue._ready import ReadyKeys


def order(queue: WorkQueue[str]) -> str:
    """The ready keys in order."""
    return " ".join(queue.remaining().ready)


async def taken(queue: WorkQueue[str]) -> str:
    """Take every key that is ready, in order."""
    found = []
    while len(queue):
        async with queue.take() as key:
            found.append(key)
    return " ".join(found)


async def test_keys_come_by_priority_and_then_in_the_order_of_their_adds() -> None:
    queue = WorkQueue[str]()
    for number in range(3):
        for priority in (10, -10, 5, 0, -5):
            queue.add(f"{priority}.{number}", priority=priority)
    expected = " ".join(f"{priority}.{number}" for priority in (10, 5, 0, -5, -10) for number in range(3))
    assert order(queue) == expected
    assert await taken(queue) == expected


async def test_a_raised_key_is_placed_behind_the_other_keys_of_its_priority() -> None:
    queue = WorkQueue[str]()
    queue.add("foo")
    queue.add("bar", priority=1)
    queue.add("foo", priority=1)
    assert await taken(queue) == "bar foo"


async def test_a_raised_key_comes_before_keys_of_its_former_priority() -> None:
    queue = WorkQueue[str]()
    for key in ("foo", "bar", "baz"):
        queue.add(key)
    queue.add("baz", priority=1)
    assert await taken(queue) == "baz foo bar"


async def test_adding_a_key_with_a_lower_priority_does_not_change_it() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=2)
    queue.add("b", priority=1)
    queue.add("a", priority=-5)
    assert await taken(queue) == "a b"


async def test_adding_a_key_with_the_same_priority_keeps_its_place() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=-100)
    queue.add("b", priority=-100)
    queue.add("a", priority=-100)
    assert await taken(queue) == "a b"


async def test_the_priority_of_a_key_may_rise_while_it_is_processed() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    async with queue.take() as key:
        queue.add(key, priority=-5)
        queue.add(key, priority=5)
        queue.add("b")
    assert await taken(queue) == "a b"


async def test_merged_delays_keep_the_earliest_time_and_the_highest_priority(
    mock_clock: trio.testing.MockClock,
) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 5, priority=1)
    queue.add_after("a", 50, priority=7)
    queue.add_after("b", 5, priority=2)
    assert queue.due_time("a") == 5
    mock_clock.jump(5)
    assert order(queue) == "a b"
    assert queue.statistics().depth_by_priority == {7: 1, 2: 1}


async def test_a_delayed_key_that_is_added_now_keeps_the_higher_priority() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 5, priority=3)
    queue.add("b", priority=2)
    queue.add("a")
    assert await taken(queue) == "a b"


async def test_a_delayed_add_with_a_higher_priority_raises_a_ready_key() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    queue.add_after("b", 3_600, priority=1)
    assert await taken(queue) == "b a"


async def test_a_high_key_that_becomes_due_comes_before_ready_low_ones(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("high", 1, priority=1)
    queue.add("low")
    mock_clock.jump(1)
    assert await taken(queue) == "high low"


async def test_a_high_key_that_becomes_due_within_a_slice_is_next(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("high", 0.0005, priority=1)
    for key in "ab":
        queue.add(key)
    async with queue.take() as key:
        assert key == "a"
    mock_clock.jump(0.0005)
    async with queue.take() as key:
        assert key == "high"


async def test_a_key_raised_after_it_was_due_comes_after_others_of_its_new_priority(
    mock_clock: trio.testing.MockClock,
) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    queue.add_after("b", 2, priority=5)
    mock_clock.jump(3)
    queue.add_after("a", 10, priority=5)
    assert await taken(queue) == "b a"


@pytest.mark.parametrize(("given", "kept"), [(None, -100), (0, 0), (-200, -200)])
async def test_a_delayed_add_in_the_block_keeps_the_priority_by_default(
    given: int | None, kept: int, mock_clock: trio.testing.MockClock
) -> None:
    queue = RateLimitingQueue[str]()
    for add in ("delayed", "rate limited"):
        queue.add(add, priority=-100)
        async with queue.take() as key:
            if key == "delayed":
                queue.add_after(key, 1, priority=given)
            else:
                queue.add_rate_limited(key, priority=given)
        mock_clock.jump(2)
        assert queue.statistics().depth_by_priority == {kept: 1}
        async with queue.take():
            pass


async def test_a_delayed_add_outside_a_block_has_priority_0_by_default(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    mock_clock.jump(1)
    assert queue.statistics().depth_by_priority == {0: 1}


async def test_with_strict_priorities_low_keys_wait_while_high_ones_arrive() -> None:
    queue = WorkQueue[str]()
    queue.add("low", priority=-100)
    queue.add("high 0")
    for number in range(1, 1_000):
        async with queue.take() as key:
            assert key.startswith("high")
            queue.add(f"high {number}")
    assert order(queue) == "high 999 low"


@pytest.mark.parametrize("every", [2, 8])
async def test_with_oldest_every_low_keys_are_taken_while_high_ones_arrive(every: int) -> None:
    queue = WorkQueue[str](oldest_every=every)
    for number in range(100):
        queue.add(f"low {number}", priority=-100)
    log = []
    for number in range(every * 100):
        queue.add(f"high {number}")
        queue.add(f"more {number}")
        async with queue.take() as key:
            log.append(key)
    low = [place for place, key in enumerate(log) if key.startswith("low")]
    assert low == list(range(every - 1, every * 100, every))
    assert [log[place] for place in low] == [f"low {number}" for number in range(100)]
    assert log[0] == "high 0"


async def test_the_oldest_key_is_chosen_from_all_priorities() -> None:
    queue = WorkQueue[str](oldest_every=2)
    for key, priority in [("middle", 5), ("low", -5), ("high", 10), ("high2", 10), ("high3", 10)]:
        queue.add(key, priority=priority)
    assert await taken(queue) == "high middle high2 low high3"


async def test_raising_a_key_does_not_change_its_age() -> None:
    queue = WorkQueue[str](oldest_every=2)
    for key, priority in [("old", -5), ("low", -7), ("high", 10), ("high2", 10)]:
        queue.add(key, priority=priority)
    queue.add("old", priority=0)
    assert await taken(queue) == "high old high2 low"


async def test_the_oldest_key_is_taken_in_its_turn_also_behind_newer_ones_of_its_priority() -> None:
    queue = WorkQueue[str](oldest_every=2)
    for key, priority in [("old", -5), ("newer", 0), ("newest", 0), ("high", 10), ("high2", 10)]:
        queue.add(key, priority=priority)
    queue.add("old", priority=0)
    assert await taken(queue) == "high old high2 newer newest"


async def test_takes_among_one_priority_do_not_count_for_oldest_every() -> None:
    queue = WorkQueue[str](oldest_every=2)
    for key in "abc":
        queue.add(key)
    assert await taken(queue) == "a b c"
    queue.add("low", priority=-1)
    queue.add("high")
    assert await taken(queue) == "high low"


@pytest.mark.parametrize("every", [1, 0, -1])
def test_oldest_every_must_be_at_least_two(every: int) -> None:
    with pytest.raises(ValueError, match="oldest_every must be None or at least 2"):
        WorkQueue[str](oldest_every=every)


def test_levels_exist_only_while_they_hold_a_key() -> None:
    ready = ReadyKeys[int]()
    for number in range(100):
        ready.push(number, number % 10)
    for number in range(50):
        ready.move(number, number % 10, 20)
    assert (ready.size, list(ready)[:50]) == (100, list(range(50)))
    while ready.size:
        ready.pop()
    assert (ready._priorities, len(ready._levels)) == ([0], 1)
