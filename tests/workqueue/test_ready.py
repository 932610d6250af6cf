"""Priorities, as in controller-runtime's queue: the highest first, the same key merges, equals in their order."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer.workqueue import RateLimitingQueue, WorkQueue
from trioformer.workqueue._ready import ReadyKeys


def order(queue: WorkQueue[str]) -> str:
    """The keys that are ready, in the order in which they come."""
    return " ".join(queue.remaining().ready)


async def taken(queue: WorkQueue[str]) -> str:
    found = []
    while len(queue):
        async with queue.take() as key:
            found.append(key)
    return " ".join(found)


async def test_the_highest_priority_comes_first_and_equals_in_their_order() -> None:
    queue = WorkQueue[str]()
    for number in range(3):
        for priority in (10, -10, 5, 0, -5):
            queue.add(f"{priority}.{number}", priority=priority)
    expected = " ".join(f"{priority}.{number}" for priority in (10, 5, 0, -5, -10) for number in range(3))
    assert order(queue) == expected
    assert await taken(queue) == expected


async def test_a_key_that_is_added_with_a_higher_priority_goes_behind_those_that_have_it() -> None:
    queue = WorkQueue[str]()
    queue.add("foo")
    queue.add("bar", priority=1)
    queue.add("foo", priority=1)
    assert await taken(queue) == "bar foo"


async def test_a_raised_key_overtakes_its_former_equals() -> None:
    queue = WorkQueue[str]()
    for key in ("foo", "bar", "baz"):
        queue.add(key)
    queue.add("baz", priority=1)
    assert await taken(queue) == "baz foo bar"


async def test_a_key_never_sinks() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=2)
    queue.add("b", priority=1)
    queue.add("a", priority=-5)
    assert await taken(queue) == "a b"


async def test_the_same_priority_again_leaves_the_place_as_it_is() -> None:
    queue = WorkQueue[str]()
    queue.add("a", priority=-100)
    queue.add("b", priority=-100)
    queue.add("a", priority=-100)
    assert await taken(queue) == "a b"


async def test_a_key_is_raised_while_it_is_processed() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    async with queue.take() as key:
        queue.add(key, priority=-5)
        queue.add(key, priority=5)
        queue.add("b")
    assert await taken(queue) == "a b"


async def test_delay_and_priority_merge_to_the_best_of_both(mock_clock: trio.testing.MockClock) -> None:
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


async def test_a_delay_with_a_higher_priority_raises_a_key_that_is_ready() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    queue.add_after("b", 3_600, priority=1)
    assert await taken(queue) == "b a"


async def test_a_high_key_that_comes_due_overtakes_low_ones_that_wait(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("high", 1, priority=1)
    queue.add("low")
    mock_clock.jump(1)
    assert await taken(queue) == "high low"


async def test_a_high_key_that_comes_due_in_the_middle_of_a_slice_is_next(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("high", 0.0005, priority=1)
    for key in "ab":
        queue.add(key)
    async with queue.take() as key:
        assert key == "a"
    mock_clock.jump(0.0005)
    async with queue.take() as key:
        assert key == "high"


async def test_a_key_that_is_raised_after_it_came_due_stands_behind_what_came_due_with_that_priority(
    mock_clock: trio.testing.MockClock,
) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    queue.add_after("b", 2, priority=5)
    mock_clock.jump(3)
    queue.add_after("a", 10, priority=5)
    assert await taken(queue) == "b a"


@pytest.mark.parametrize(("given", "kept"), [(None, -100), (0, 0), (-200, -200)])
async def test_a_delayed_add_in_the_block_keeps_the_priority_unless_it_says_otherwise(
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


async def test_a_delayed_add_from_elsewhere_has_the_ordinary_priority(mock_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    mock_clock.jump(1)
    assert queue.statistics().depth_by_priority == {0: 1}


async def test_strictly_by_priority_low_keys_wait_as_long_as_high_ones_come() -> None:
    queue = WorkQueue[str]()
    queue.add("low", priority=-100)
    queue.add("high 0")
    for number in range(1, 1_000):
        async with queue.take() as key:
            assert key.startswith("high")
            queue.add(f"high {number}")
    assert order(queue) == "high 999 low"


@pytest.mark.parametrize("every", [2, 8])
async def test_with_oldest_every_low_keys_come_however_many_high_ones_do(every: int) -> None:
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


async def test_a_raised_key_is_as_old_as_it_was() -> None:
    queue = WorkQueue[str](oldest_every=2)
    for key, priority in [("old", -5), ("low", -7), ("high", 10), ("high2", 10)]:
        queue.add(key, priority=priority)
    queue.add("old", priority=0)
    assert await taken(queue) == "high old high2 low"


async def test_takes_without_a_choice_do_not_count() -> None:
    queue = WorkQueue[str](oldest_every=2)
    for key in "abc":
        queue.add(key)
    assert await taken(queue) == "a b c"
    queue.add("low", priority=-1)
    queue.add("high")
    assert await taken(queue) == "high low"


@pytest.mark.parametrize("every", [1, 0, -1])
def test_oldest_every_is_at_least_two(every: int) -> None:
    with pytest.raises(ValueError, match="oldest_every must be at least 2"):
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
