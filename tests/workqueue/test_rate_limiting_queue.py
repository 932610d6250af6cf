"""The queue that retries failed keys."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer.workqueue import (
    ItemExponentialFailureRateLimiter,
    RateLimitingQueue,
)

Clock = trio.testing.MockClock


@pytest.fixture
def queue() -> RateLimitingQueue[str]:
    return RateLimitingQueue(ItemExponentialFailureRateLimiter(1, 1_000))


async def test_a_rate_limited_key_is_due_after_the_limiters_delay(mock_clock: Clock) -> None:
    """client-go: TestRateLimitingQueue"""
    queue = RateLimitingQueue[str](ItemExponentialFailureRateLimiter(0.001, 1))
    expected = [("one", 0.001), ("one", 0.002), ("two", 0.001), ("two", 0.002)]
    for key, delay in expected:
        assert queue.add_rate_limited(key)
        assert queue.due_time(key) == pytest.approx(delay)
        assert queue.cancel_delayed(key)
    assert queue.num_requeues("one") == 2
    queue.forget("one")
    assert queue.num_requeues("one") == 0
    queue.add_rate_limited("one")
    assert queue.due_time("one") == 0.001


async def fail(queue: RateLimitingQueue[str]) -> str:
    """Take a key, fail, and return the key."""
    with pytest.raises(KeyError) as caught:
        async with queue.take() as key:
            raise KeyError(key)
    return str(caught.value.args[0])


async def test_a_key_that_fails_is_retried_with_growing_delays(
    queue: RateLimitingQueue[str], autojump_clock: Clock
) -> None:
    queue.add("a", priority=-100)
    seen = []
    for _ in range(5):
        await fail(queue)
        seen.append(queue.due_time("a"))
    assert seen == [1, 3, 7, 15, 31]
    assert queue.num_requeues("a") == 5
    async with queue.take():
        assert queue.statistics().depth == 0
    assert queue.num_requeues("a") == 0


async def test_a_block_that_is_cancelled_neither_forgets_nor_counts_failures(queue: RateLimitingQueue[str]) -> None:
    queue.limiter.when("a")
    queue.add("a", priority=3)
    with trio.CancelScope() as scope:
        async with queue.take():
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert queue.num_requeues("a") == 1
    assert queue.remaining().ready == ("a",)
    assert queue.statistics().depth_by_priority == {3: 1}


async def test_an_error_in_a_group_with_a_cancellation_is_not_a_failure(queue: RateLimitingQueue[str]) -> None:
    queue.add("a")

    async def handle(key: str) -> None:
        try:
            scope.cancel()
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            raise BaseExceptionGroup("as a nursery raises it", [cancelled, KeyError(key)]) from None

    with pytest.raises(ExceptionGroup), trio.CancelScope() as scope:
        await queue.process(handle)
    assert queue.num_requeues("a") == 0
    assert queue.remaining().ready == ("a",)


async def test_after_add_rate_limited_the_end_of_the_block_has_no_effect(
    queue: RateLimitingQueue[str], autojump_clock: Clock
) -> None:
    calls = []

    async def reconcile(key: str) -> None:
        """Retry five times, then give up, as client-go's examples do."""
        try:
            calls.append(trio.current_time())
            int(key)
        except ValueError:
            if queue.num_requeues(key) < 5:
                queue.add_rate_limited(key)
            else:
                queue.forget(key)

    queue.add("a")
    with trio.move_on_after(100):
        await queue.process(reconcile)
    assert calls == [0, 1, 3, 7, 15, 31]
    assert queue.num_requeues("a") == 0
    assert not queue.remaining()


class FailingLimiter:
    """A limiter that raises."""

    def when(self, key: str) -> float:
        raise OSError(key)

    def forget(self, key: str) -> None:
        self.when(key)

    def num_requeues(self, key: str) -> int:
        return 0


@pytest.mark.parametrize("fails", [False, True])
async def test_a_key_is_done_even_when_the_limiter_raises(fails: bool) -> None:
    queue = RateLimitingQueue[str](FailingLimiter())
    queue.add("a")

    async def handle(key: str) -> None:
        if fails:
            raise KeyError(key)

    with pytest.raises(ExceptionGroup) as caught:
        await queue.process(handle)
    assert isinstance(caught.value.exceptions[0], OSError)
    assert queue.remaining().processing == ()


async def test_the_limiter_of_controller_runtimes_queue_is_the_default() -> None:
    limiter = RateLimitingQueue[str]().limiter
    assert isinstance(limiter, ItemExponentialFailureRateLimiter)
    assert (limiter.base_delay, limiter.max_delay, limiter.jitter) == (0.005, 1_000, 0.2)


async def test_a_failure_may_have_a_least_delay_and_another_limiter(mock_clock: trio.testing.MockClock) -> None:
    queue, other = RateLimitingQueue[str](ItemExponentialFailureRateLimiter(1, 8)), ItemExponentialFailureRateLimiter(3)
    queue.add_rate_limited("least", at_least=5)
    queue.add_rate_limited("own", at_least=0.5)
    queue.add_rate_limited("other", limiter=other)
    assert [queue.due_time(key) for key in ("least", "own", "other")] == [5, 1, 3]
    assert [queue.num_requeues(key) for key in ("least", "own", "other")] == [1, 1, 0]
    assert other.num_requeues("other") == 1
