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


async def test_the_oldest_key_is_taken_in_its_turn_also_behind_newer_ones_of_its_priority() -> None:
    queue = WorkQueue[str](oldest_every=2)
    for key, priority in [("old", -5), ("newer", 0), ("newest", 0), ("high", 10), ("high2", 10)]:
        queue.add(key, priority=priority)
    queue.add("old", priority=0)
    assert await taken(queue) == "high old high2 newer newest"


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
