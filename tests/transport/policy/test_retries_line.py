"""The order and the rate of retries."""

from __future__ import annotations

import math
import random

import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from trioformer.transport.policy._liveness import ServerHealth


def open_line() -> ServerHealth:
    return ServerHealth._create("https://server", None)


async def pass_line(line: ServerHealth, until: float, passed: list[float]) -> None:
    await line.wait_to_retry(until)
    passed.append(trio.current_time())


def most_in_a_second(passed: list[float]) -> int:
    return max(sum(1 for time in passed if begin <= time <= begin + 1) for begin in passed)


async def test_a_caller_that_need_not_wait_checkpoints() -> None:
    line = open_line()
    with trio.testing.assert_checkpoints():
        await line.wait_to_retry(-math.inf)
    with trio.CancelScope() as scope:
        scope.cancel()
        await line.wait_to_retry(-math.inf)
    assert scope.cancelled_caught


async def test_two_hundred_callers_pass_within_4_6_s_of_the_first_response(
    autojump_clock: trio.testing.MockClock,
) -> None:
    times = random.Random(1)
    line = open_line()
    passed: list[float] = []
    during = 0

    async def watch() -> None:
        """Retry until it succeeds, like a reflector, with delays that grow to 30 s."""
        nonlocal during
        delay = 0.8
        while True:
            line.record_failure()
            await line.wait_to_retry(trio.current_time() + delay * times.uniform(1, 2))
            passed.append(trio.current_time())
            if is_up:
                line.record_response()
                return
            during += 1
            delay = min(delay * 2, 30)

    is_up = False
    async with trio.open_nursery() as nursery:
        for _ in range(200):
            nursery.start_soon(watch)
        await trio.sleep(120)
        is_up = True
        line.record_response()
        returned_at = trio.current_time()
    assert passed[-1] - returned_at <= 4.6
    assert most_in_a_second(passed) <= 50
    assert most_in_a_second([time for time in passed if time < returned_at]) <= 6  # both ends of a second count
    assert 100 < during <= 5 * 121


async def test_a_response_speeds_up_the_line_at_once(autojump_clock: trio.testing.MockClock) -> None:
    line = open_line()
    line.record_failure()
    passed: list[float] = []
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(pass_line, line, 0, passed)
        await trio.sleep(0.25)
        assert passed == pytest.approx([0, 0.2])
        line.record_response()
    assert passed == pytest.approx([0, 0.2, 0.25, 0.25 + 1 / 46])


async def test_the_turn_of_a_cancelled_caller_passes_to_the_next(autojump_clock: trio.testing.MockClock) -> None:
    line = open_line()
    line.record_failure()
    await line.wait_to_retry(0)
    passed: list[float] = []
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(0.1) as scope:
            async with trio.open_nursery() as own:
                own.start_soon(line.wait_to_retry, 0)
                await wait_all_tasks_blocked()
                nursery.start_soon(pass_line, line, 0, passed)
        assert scope.cancelled_caught
    assert passed == pytest.approx([0.2])


async def test_nobody_is_woken_within_half_a_second_of_its_call(autojump_clock: trio.testing.MockClock) -> None:
    line = open_line()
    line.record_failure()
    passed: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_line, line, 60, passed)
        nursery.start_soon(pass_line, line, 0.3, passed)
        await trio.sleep(0.1)
        line.record_response()
    assert passed == pytest.approx([0.3, 0.5])


async def test_a_flapping_server_wakes_the_sleepers_every_15_s_at_most(autojump_clock: trio.testing.MockClock) -> None:
    line = open_line()
    passed: list[float] = []

    async def watch() -> None:
        while True:
            await pass_line(line, trio.current_time() + 3600, passed)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        for _ in range(60):
            await trio.sleep(0.5)
            line.record_failure()
            await trio.sleep(0.5)
            line.record_response()
        nursery.cancel_scope.cancel()
    assert passed == pytest.approx([1, 16, 31, 46])


async def test_a_wake_up_of_nobody_does_not_delay_the_next(autojump_clock: trio.testing.MockClock) -> None:
    line = open_line()
    line.record_failure()
    line.record_response()
    passed: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_line, line, 10, passed)
        await trio.sleep(1)
        line.record_failure()
        line.record_response()
    assert passed == [1]


async def test_failures_of_one_path_do_not_slow_down_the_others(autojump_clock: trio.testing.MockClock) -> None:
    """While other requests have responses, the line keeps its rate."""
    line = open_line()
    passed: list[float] = []

    async def fail() -> None:
        while True:
            await line.wait_to_retry(trio.current_time() + 0.5)
            line.record_failure()

    async def succeed() -> None:
        while True:
            await trio.sleep(0.5)
            line.record_response()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(succeed)
        for _ in range(200):
            nursery.start_soon(fail)
        await trio.sleep(30)
        began = trio.current_time()
        await pass_line(line, began, passed)
        nursery.cancel_scope.cancel()
    assert passed[0] - began <= 5
