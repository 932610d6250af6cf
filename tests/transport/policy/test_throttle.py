"""The limit of the request rate: ``qps`` and ``burst``."""

from __future__ import annotations

import logging
import math
from functools import partial

import pytest
import trio
import trio.testing

from trioformer import Client, open_client
from trioformer.testing import APIServer
from trioformer.transport.policy._throttle import TokenBucketRateLimiter, WaitLog


async def send(client: Client, times: list[float]) -> None:
    await client.version()
    times.append(trio.current_time())


async def send_together(client: Client, number: int) -> list[float]:
    """Send requests in tasks of their own; return the seconds that each took."""
    begin = trio.current_time()
    times: list[float] = []
    async with trio.open_nursery() as nursery:
        for _ in range(number):
            nursery.start_soon(send, client, times)
    return [round(time - begin, 6) for time in times]


async def test_after_the_burst_requests_go_at_their_rate(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with open_client(
        api_server.config,
        http_transport=api_server.http_transport(),
        rate_limiter=TokenBucketRateLimiter(qps=4, burst=3),
    ) as client:
        assert await send_together(client, 6) == [0, 0, 0, 0.25, 0.5, 0.75]
        await trio.sleep(0.5)  # two tokens
        assert await send_together(client, 3) == [0, 0, 0.25]
        await trio.sleep(1_000)  # three tokens: the bucket is full
        assert await send_together(client, 5) == [0, 0, 0, 0.25, 0.5]


async def test_the_next_request_gets_the_token_of_a_cancelled_one(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with open_client(
        api_server.config,
        http_transport=api_server.http_transport(),
        rate_limiter=TokenBucketRateLimiter(qps=1, burst=1),
    ) as client:
        await client.version()
        times: list[float] = []
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope(deadline=trio.current_time() + 0.5)
            nursery.start_soon(partial(cancelled_send, client, times, scope))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(send, client, times)
        assert times == [1]


async def cancelled_send(client: Client, times: list[float], scope: trio.CancelScope) -> None:
    with scope:
        await send(client, times)


async def pass_through(throttle: TokenBucketRateLimiter, name: str, passed: list[tuple[str, float]]) -> None:
    await throttle.wait()
    passed.append((name, trio.current_time()))


async def test_requests_leave_in_order_after_a_stall(mock_clock: trio.testing.MockClock) -> None:
    # Trio runs the tasks that wake together in either order, hence the rounds.
    for _ in range(8):
        throttle = TokenBucketRateLimiter(qps=10, burst=1)
        passed: list[tuple[str, float]] = []
        async with trio.open_nursery() as nursery:
            for name in "abcdef":
                nursery.start_soon(pass_through, throttle, name, passed)
                await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(60)
            for _ in "bcdef":
                await trio.testing.wait_all_tasks_blocked()
                mock_clock.jump(0.2)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert [name for name, _ in passed] == list("abcdef")


async def test_requests_behind_a_cancelled_one_move_up(autojump_clock: trio.testing.MockClock) -> None:
    throttle = TokenBucketRateLimiter(qps=1, burst=1)
    passed: list[tuple[str, float]] = []
    scope = trio.CancelScope()

    async def pass_unless_cancelled(name: str) -> None:
        with scope if name == "b" else trio.CancelScope():
            await pass_through(throttle, name, passed)

    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(pass_unless_cancelled, name)
            await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
    assert passed == [("a", 0), ("c", 1), ("d", 2)]
    await pass_through(throttle, "e", passed)
    assert passed[-1] == ("e", 3)


async def test_a_request_that_need_not_wait_is_a_checkpoint() -> None:
    throttle = TokenBucketRateLimiter(qps=1, burst=1)
    with trio.testing.assert_checkpoints():
        await throttle.wait()
    with trio.CancelScope() as scope:
        scope.cancel()
        await throttle.wait()
    assert scope.cancelled_caught


def test_an_invalid_rate_or_burst_raises() -> None:
    for limit in [{"qps": 0}, {"qps": -1}, {"qps": math.inf}, {"qps": math.nan}, {"qps": 1, "burst": 0}]:
        with pytest.raises(ValueError, match="must be"):
            TokenBucketRateLimiter(**limit)


async def test_after_a_stall_no_more_than_the_burst_goes_at_once(mock_clock: trio.testing.MockClock) -> None:
    """A process that was stopped finds that time has passed for all that wait, and yet keeps to its burst."""
    throttle = TokenBucketRateLimiter(qps=5, burst=10)
    passed = 0

    async def request() -> None:
        nonlocal passed
        await throttle.wait()
        passed += 1

    async with trio.open_nursery() as nursery:
        for _ in range(300):
            nursery.start_soon(request)
        await trio.testing.wait_all_tasks_blocked()
        assert passed == 10
        mock_clock.jump(60)
        await trio.testing.wait_all_tasks_blocked()
        assert passed == 20
        nursery.cancel_scope.cancel()


async def test_requests_cancelled_after_a_stall_leave_no_tokens_behind(mock_clock: trio.testing.MockClock) -> None:
    throttle = TokenBucketRateLimiter(qps=1, burst=1)
    await throttle.wait()
    passed = 0

    async def request() -> None:
        nonlocal passed
        await throttle.wait()
        passed += 1

    async with trio.open_nursery() as outer:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(throttle.wait)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(60)
            nursery.cancel_scope.cancel()
            for _ in range(4):
                outer.start_soon(request)
        await trio.testing.wait_all_tasks_blocked()
        assert passed <= 1
        outer.cancel_scope.cancel()


def waits(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records if each.name == "trioformer.transport"]


SUFFIX = "for this client's own rate limit, not for the server's priority and fairness"


async def test_a_long_wait_is_logged_each_ten_seconds_and_others_for_debugging(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """From 50 ms on, and for everybody to see from a second on.

    client-go: TestThrottledLogger
    """
    caplog.set_level(logging.DEBUG)
    log = WaitLog()
    for at, seconds in [(0, 0.01), (0, 0.05), (0, 0.06), (0, 1.0), (0, 1.5), (5, 2), (9.999, 3), (10, 4), (15, 0.5)]:
        await trio.sleep_until(at)
        log.record(seconds, "list pods")
    assert waits(caplog) == [
        (logging.DEBUG, f"list pods: waited 0.06 s {SUFFIX}"),
        (logging.DEBUG, f"list pods: waited 1 s {SUFFIX}"),
        (logging.INFO, f"list pods: waited 1.5 s {SUFFIX}"),
        (logging.DEBUG, f"list pods: waited 2 s {SUFFIX}"),
        (logging.DEBUG, f"list pods: waited 3 s {SUFFIX}"),
        (logging.INFO, f"list pods: waited 4 s {SUFFIX}"),
        (logging.DEBUG, f"list pods: waited 0.5 s {SUFFIX}"),
    ]
