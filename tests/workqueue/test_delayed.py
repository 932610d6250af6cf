"""Delayed keys: the earliest time counts, only a waiting worker has a deadline, and delays can be cancelled."""

from __future__ import annotations

import math
import random

import pytest
import trio
import trio.lowlevel
import trio.testing

from trioformer.workqueue import WorkQueue

Clock = trio.testing.MockClock


async def run(queue: WorkQueue[str], log: list[tuple[float, str]], *, workers: int = 1) -> None:
    """Process keys, and record when each one was taken."""

    async def handle(key: str) -> None:
        log.append((round(trio.current_time(), 3), key))
        await trio.lowlevel.checkpoint()

    await queue.process(handle, workers=workers)


async def test_a_delayed_key_is_ready_once_and_not_before_it_is_due(mock_clock: Clock) -> None:
    """client-go: TestSimpleQueue"""
    queue = WorkQueue[str]()
    assert queue.add_after("foo", 0.05)
    assert len(queue) == 0
    mock_clock.jump(0.06)
    assert len(queue) == 1
    async with queue.take() as key:
        assert key == "foo"
    mock_clock.jump(10)
    assert len(queue) == 0


async def test_keys_that_became_due_while_the_queue_was_not_used_are_in_order(mock_clock: Clock) -> None:
    """client-go: TestCopyShifting"""
    queue = WorkQueue[str]()
    queue.add_after("foo", 1)
    queue.add_after("bar", 0.5)
    queue.add_after("baz", 0.2)
    assert len(queue) == 0
    mock_clock.jump(2)
    assert queue.remaining().ready == ("baz", "bar", "foo")


async def test_a_waiting_worker_wakes_exactly_at_the_due_time(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    queue = WorkQueue[str]()
    log: list[tuple[float, str]] = []
    nursery.start_soon(run, queue, log)
    await trio.testing.wait_all_tasks_blocked()
    queue.add_after("late", 1_000)
    queue.add_after("soon", 0.25)
    await trio.sleep(0.1)
    queue.add_after("sooner", 0.1)
    await trio.sleep(2_000)
    assert log == [(0.2, "sooner"), (0.25, "soon"), (1_000, "late")]
    queue.shut_down()


async def test_one_due_key_wakes_one_worker(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    queue = WorkQueue[str]()
    log: list[tuple[float, str]] = []
    nursery.start_soon(lambda: run(queue, log, workers=50))
    await trio.testing.wait_all_tasks_blocked()
    queue.add_after("a", 1)
    steps = 0

    class Count(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            nonlocal steps
            steps += 1

    await trio.sleep(0.5)
    trio.lowlevel.add_instrument(count := Count())
    await trio.sleep(1)
    trio.lowlevel.remove_instrument(count)
    assert log == [(1, "a")]
    assert steps < 15
    assert queue.statistics().tasks_waiting == 50
    queue.shut_down()


async def test_keys_that_are_due_at_the_same_time_wake_as_many_workers(
    autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    queue = WorkQueue[str]()
    busy = most = 0

    async def handle(key: str) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await trio.sleep(1)
        busy -= 1

    nursery.start_soon(lambda: queue.process(handle, workers=8))
    await trio.testing.wait_all_tasks_blocked()
    for key in "abcde":
        queue.add_after(key, 1)
    await trio.sleep(1.5)
    assert most == 5
    queue.shut_down()


async def test_the_next_waiter_has_the_deadline_when_the_first_is_busy_or_cancelled(
    autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    queue = WorkQueue[str]()
    log: list[tuple[float, str]] = []

    async def hold(scope: trio.CancelScope) -> None:
        with scope:
            async with queue.take() as key:
                log.append((trio.current_time(), key))
                await trio.sleep(100)

    scopes = [trio.CancelScope() for _ in range(4)]
    for scope in scopes:
        nursery.start_soon(hold, scope)
        await trio.testing.wait_all_tasks_blocked()
    queue.add_after("due", 10)
    queue.add("now")  # the first waiter receives it
    await trio.sleep(1)
    scopes[1].cancel()  # the second waiter had the deadline
    await trio.sleep(1)
    assert log == [(0, "now")]
    await trio.sleep(20)
    assert log == [(0, "now"), (10, "due")]
    assert queue.statistics().tasks_waiting == 1
    nursery.cancel_scope.cancel()


async def test_a_worker_that_is_cancelled_at_its_deadline_leaves_the_key_to_the_next(
    autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    queue = WorkQueue[str]()
    log: list[tuple[float, str]] = []

    async def cancelled() -> None:
        with trio.move_on_at(5):
            async with queue.take():
                pytest.fail("the take was cancelled")

    nursery.start_soon(cancelled)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(run, queue, log)
    await trio.testing.wait_all_tasks_blocked()
    queue.add_after("a", 5)
    await trio.sleep(6)
    assert log == [(5, "a")]
    queue.shut_down()


async def test_a_worker_that_wakes_after_the_due_key_was_removed_stays_the_first(
    mock_clock: Clock, nursery: trio.Nursery
) -> None:
    queue = WorkQueue[str]()
    log: list[str] = []

    async def work(name: str) -> None:
        while True:
            async with queue.take() as key:
                log.append(name + key)
                await trio.lowlevel.checkpoint()

    for name in "12":
        nursery.start_soon(work, name)
        await trio.testing.wait_all_tasks_blocked()
    queue.add_after("a", 1)

    class Remove(trio.abc.Instrument):
        """Removes the key between the deadline and the first step of the worker that the deadline wakes."""

        def task_scheduled(self, task: trio.lowlevel.Task) -> None:
            if task.name.endswith("work") and not log:
                log.append("removed")
                queue._delayed.remove("a")

    trio.lowlevel.add_instrument(remove := Remove())
    mock_clock.jump(1)
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.remove_instrument(remove)
    assert log == ["removed"]
    queue.add("b")
    await trio.testing.wait_all_tasks_blocked()
    assert log == ["removed", "1b"]
    nursery.cancel_scope.cancel()


async def test_without_a_waiting_worker_trio_has_no_deadline(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 1)
    assert trio.lowlevel.current_statistics().seconds_to_next_deadline == math.inf
    nursery.start_soon(run, queue, [])
    await trio.testing.wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().seconds_to_next_deadline == 1
    queue.cancel_delayed("a")
    assert trio.lowlevel.current_statistics().seconds_to_next_deadline == math.inf
    queue.shut_down()


@pytest.mark.parametrize("delay", [0, 0.0, -1])
async def test_a_delay_that_is_not_positive_adds_the_key_now(delay: float) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", delay)
    assert queue.remaining().ready == ("a",)
    assert queue.statistics().retries == 0


@pytest.mark.parametrize("delay", [math.nan, math.inf, -math.inf])
async def test_a_delay_must_be_a_finite_number(delay: float) -> None:
    queue = WorkQueue[str]()
    with pytest.raises(ValueError, match="finite number of seconds"):
        queue.add_after("a", delay)
    assert not queue.remaining()


async def test_a_delayed_key_can_be_cancelled_until_it_is_due(mock_clock: Clock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 5)
    queue.add_after("b", 5)
    assert queue.cancel_delayed("a")
    assert not queue.cancel_delayed("a")
    assert not queue.cancel_delayed("never seen")
    mock_clock.jump(5)
    assert not queue.cancel_delayed("b")
    assert queue.remaining().ready == ("b",)


async def test_delayed_keys_never_become_due_after_the_shutdown_and_are_listed(mock_clock: Clock) -> None:
    queue = WorkQueue[str]()
    queue.add_after("late", 5)
    queue.add_after("soon", 1)
    queue.add_after("due", 0.5)
    mock_clock.jump(0.5)
    queue.shut_down()
    assert queue.remaining().ready == ("due",)
    mock_clock.jump(10)
    assert queue.remaining().ready == ("due",)
    assert queue.remaining().delayed == ("soon", "late")
    assert queue.cancel_delayed("soon")
    mock_clock.jump(10)
    async with queue.take():
        pass
    assert (await queue.drain()).delayed == ("late",)


async def test_cancelled_and_shortened_delays_do_not_fill_the_heap(mock_clock: Clock) -> None:
    queue = WorkQueue[int]()
    rng = random.Random(0)
    queue.add_after(-1, 0.5)  # stays at the top, above the stale entries of the others
    for _ in range(20_000):
        key = rng.randrange(10)
        if rng.random() < 0.5:
            queue.add_after(key, rng.uniform(1, 100))
        else:
            queue.cancel_delayed(key)
    assert len(queue._delayed._heap) <= 2 * len(queue._delayed) + 65
    for key in range(-1, 10):
        queue.cancel_delayed(key)
    assert queue._delayed._heap == []
    assert queue._delayed.due == math.inf
