"""Rate limiters, and the queue that repeats what failed."""

from __future__ import annotations

import math
from collections.abc import Hashable

import attrs
import pytest
import trio
import trio.testing

from trioformer.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    RateLimitingQueue,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
    default_item_based_rate_limiter,
)

Clock = trio.testing.MockClock


def delays(limiter: RateLimiter[str], key: str, count: int) -> list[float]:
    return [limiter.when(key) for _ in range(count)]


# --- limiters ---


def test_delays_of_a_key_double_and_begin_anew_when_it_is_forgotten() -> None:
    """client-go: TestItemExponentialFailureRateLimiter"""
    limiter = ItemExponentialFailureRateLimiter(0.001, 1)
    assert delays(limiter, "one", 5) == [0.001, 0.002, 0.004, 0.008, 0.016]
    assert limiter.num_requeues("one") == 5
    assert delays(limiter, "two", 2) == [0.001, 0.002]
    assert limiter.num_requeues("two") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == 0.001
    assert limiter.when("two") == 0.004


def test_a_key_may_fail_more_often_than_a_number_can_double() -> None:
    """client-go: TestItemExponentialFailureRateLimiterOverFlow"""
    limiter = ItemExponentialFailureRateLimiter(0.001, 1_000)
    delays(limiter, "one", 5)
    assert limiter.when("one") == 0.032
    assert delays(limiter, "overflow1", 5_000)[999:] == [1_000.0] * 4_001
    limiter = ItemExponentialFailureRateLimiter(60, 1_000 * 3_600)
    delays(limiter, "two", 2)
    assert limiter.when("two") == 4 * 60
    delays(limiter, "overflow2", 1_000)
    assert limiter.when("overflow2") == 1_000 * 3_600


@pytest.mark.parametrize("base_delay", [5e-324, 1e-300, 0.005, 0.3, 1.0, 7.0, 999.9, 1_000.0, 1_001.0, 1e300])
@pytest.mark.parametrize("max_delay", [5e-324, 0.005, 1.0, 1_000.0, 1.7e308])
def test_a_delay_is_the_doubled_one_or_the_longest_whatever_the_numbers(base_delay: float, max_delay: float) -> None:
    limiter = ItemExponentialFailureRateLimiter(base_delay, max_delay)
    expected = base_delay
    for delay in delays(limiter, "a", 2_200):
        assert delay == min(expected, max_delay)
        expected *= 2


@pytest.mark.parametrize("wrong", [{"base_delay": 0}, {"base_delay": -1}, {"max_delay": 0}, {"max_delay": math.inf}])
def test_delays_are_positive_and_finite(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ItemExponentialFailureRateLimiter(**wrong)


def test_the_first_delays_are_short_and_the_others_long() -> None:
    """client-go: TestItemFastSlowRateLimiter"""
    limiter = ItemFastSlowRateLimiter(0.005, 10, 3)
    assert delays(limiter, "one", 5) == [0.005, 0.005, 0.005, 10, 10]
    assert limiter.num_requeues("one") == 5
    assert delays(limiter, "two", 2) == [0.005, 0.005]
    assert limiter.num_requeues("two") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == 0.005


def test_the_longest_delay_of_several_limiters_counts() -> None:
    """client-go: TestMaxOfRateLimiter"""
    limiter = MaxOfRateLimiter(ItemFastSlowRateLimiter(0.005, 3, 3), ItemExponentialFailureRateLimiter(0.001, 1))
    assert delays(limiter, "one", 5) == [0.005, 0.005, 0.005, 3, 3]
    assert limiter.num_requeues("one") == 5
    assert delays(limiter, "two", 2) == [0.005, 0.005]
    assert limiter.num_requeues("two") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == 0.005


def test_the_longest_of_no_delays_is_none() -> None:
    limiter = MaxOfRateLimiter[str]()
    limiter.forget("a")
    assert (limiter.when("a"), limiter.num_requeues("a")) == (0, 0)


class Steps:
    """Like the limiter of client-go's own test."""

    def __init__(self) -> None:
        self.count = 0
        self.forgotten: list[Hashable] = []

    def when(self, key: Hashable) -> float:
        self.count += 1
        return 0.005 if self.count <= 100 else 1_000

    def forget(self, key: Hashable) -> None:
        self.forgotten.append(key)

    def num_requeues(self, key: Hashable) -> int:
        return 42


def test_no_delay_is_longer_than_the_longest_wait() -> None:
    """client-go: TestWithMaxWaitRateLimiter"""
    steps = Steps()
    limiter = WithMaxWaitRateLimiter[str](steps, 500)
    assert delays(limiter, "a", 200) == [0.005] * 100 + [500] * 100
    limiter.forget("a")
    assert steps.forgotten == ["a"]
    assert limiter.num_requeues("a") == 42


async def test_the_bucket_gives_a_burst_and_then_so_many_a_second(mock_clock: Clock) -> None:
    limiter = BucketRateLimiter(10, 100)
    assert delays(limiter, "a", 100) == [0] * 100
    assert delays(limiter, "b", 5) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    mock_clock.jump(0.3)
    assert limiter.when("a") == pytest.approx(0.3)
    mock_clock.jump(0.3 + 0.45)
    assert delays(limiter, "a", 6) == pytest.approx([0, 0, 0, 0, 0.05, 0.15])
    mock_clock.jump(1_000)
    assert delays(limiter, "a", 101) == pytest.approx([0] * 100 + [0.1])
    assert limiter.num_requeues("a") == 0
    limiter.forget("a")


async def test_the_bucket_does_not_run_out_of_precision(mock_clock: Clock) -> None:
    limiter = BucketRateLimiter(10, 100)
    assert delays(limiter, "a", 100_100)[-1] == 10_000


def test_a_bucket_that_meets_an_earlier_clock_keeps_its_tokens() -> None:
    limiter = BucketRateLimiter(10, 5)

    async def use(seconds: float) -> list[float]:
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, Clock)
        clock.jump(seconds)
        return delays(limiter, "a", 3)

    assert trio.run(use, 1_000, clock=Clock()) == [0, 0, 0]
    assert trio.run(use, 1, clock=Clock()) == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize("wrong", [{"qps": 0}, {"qps": math.inf}, {"burst": 0}])
def test_a_bucket_has_a_rate_and_a_burst(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        BucketRateLimiter(**wrong)


async def test_the_default_limiter_is_that_of_client_gos_controllers(mock_clock: Clock) -> None:
    limiter = default_controller_rate_limiter()
    assert delays(limiter, "a", 20)[:3] == [0.005, 0.01, 0.02]
    assert limiter.when("a") == 1_000
    for number in range(79):
        assert limiter.when(f"k{number}") == 0.005
    assert limiter.when("the burst is over") == pytest.approx(0.1)
    assert limiter.num_requeues("a") == 21


def test_the_default_limiter_of_single_keys_begins_with_a_millisecond() -> None:
    limiter = default_item_based_rate_limiter()
    assert delays(limiter, "a", 3) == [0.001, 0.002, 0.004]
    assert delays(limiter, "a", 20)[-1] == 1_000


# --- the queue ---


@pytest.fixture
def queue() -> RateLimitingQueue[str]:
    return RateLimitingQueue(ItemExponentialFailureRateLimiter(1, 1_000))


async def test_a_key_that_is_rate_limited_comes_after_the_limiters_delay(mock_clock: Clock) -> None:
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


async def test_a_key_that_is_delayed_already_merges_and_counts(
    queue: RateLimitingQueue[str], mock_clock: Clock
) -> None:
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    assert queue.due_time("a") == 1
    assert queue.num_requeues("a") == 2


async def fail(queue: RateLimitingQueue[str]) -> str:
    """Take a key, and fail."""
    with pytest.raises(KeyError) as caught:
        async with queue.take() as key:
            raise KeyError(key)
    return str(caught.value.args[0])


async def test_a_failed_block_brings_the_key_again_later_and_later(
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


async def test_a_failed_key_keeps_its_priority(queue: RateLimitingQueue[str], mock_clock: Clock) -> None:
    queue.add("a", priority=-100)
    await fail(queue)
    mock_clock.jump(1)
    assert queue.statistics().depth_by_priority == {-100: 1}


async def test_a_block_that_ends_normally_forgets_the_failures(
    queue: RateLimitingQueue[str], mock_clock: Clock
) -> None:
    queue.limiter.when("a")
    queue.add("a")
    async with queue.take() as key:
        assert queue.num_requeues(key) == 1
    assert queue.num_requeues("a") == 0


async def test_a_block_that_is_cancelled_neither_forgets_nor_counts(queue: RateLimitingQueue[str]) -> None:
    queue.limiter.when("a")
    queue.add("a", priority=3)
    with trio.CancelScope() as scope:
        async with queue.take():
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert queue.num_requeues("a") == 1
    assert queue.remaining().ready == ("a",)
    assert queue.statistics().depth_by_priority == {3: 1}


async def test_an_error_beside_a_cancellation_does_not_make_it_a_failure(queue: RateLimitingQueue[str]) -> None:
    queue.add("a")

    async def handle(key: str) -> None:
        try:
            scope.cancel()
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            raise BaseExceptionGroup("what a nursery raises", [cancelled, KeyError(key)]) from None

    with pytest.raises(ExceptionGroup), trio.CancelScope() as scope:
        await queue.process(handle)
    assert queue.num_requeues("a") == 0
    assert queue.remaining().ready == ("a",)


async def test_a_worker_that_rate_limits_inside_the_block_has_decided(
    queue: RateLimitingQueue[str], autojump_clock: Clock
) -> None:
    tries = []

    async def reconcile(key: str) -> None:
        """Five times, then give up: the classic program."""
        try:
            tries.append(trio.current_time())
            int(key)
        except ValueError:
            if queue.num_requeues(key) < 5:
                queue.add_rate_limited(key)
            else:
                queue.forget(key)

    queue.add("a")
    with trio.move_on_after(100):
        await queue.process(reconcile)
    assert tries == [0, 1, 3, 7, 15, 31]
    assert queue.num_requeues("a") == 0
    assert not queue.remaining()


async def test_a_failure_is_counted_once_when_the_block_rate_limits_and_raises(
    queue: RateLimitingQueue[str], mock_clock: Clock
) -> None:
    queue.add("a")
    with pytest.raises(ExceptionGroup):
        await queue.process(lambda key: rate_limit_and_fail(queue, key))
    assert queue.num_requeues("a") == 1
    assert queue.due_time("a") == 1


async def rate_limit_and_fail(queue: RateLimitingQueue[str], key: str) -> None:
    queue.add_rate_limited(key)
    raise KeyError(key)


async def test_the_decision_is_for_one_block(queue: RateLimitingQueue[str], mock_clock: Clock) -> None:
    queue.add("a")
    async with queue.take() as key:
        queue.add_rate_limited(key)
    mock_clock.jump(1)
    async with queue.take():
        pass
    assert queue.num_requeues("a") == 0


async def test_a_plain_delay_in_the_block_is_a_success(queue: RateLimitingQueue[str], mock_clock: Clock) -> None:
    queue.limiter.when("a")
    queue.add("a")
    async with queue.take() as key:
        queue.add_after(key, 600)
    assert queue.num_requeues("a") == 0
    assert queue.due_time("a") == 600


async def test_a_failed_key_that_was_added_meanwhile_comes_at_once(
    queue: RateLimitingQueue[str], mock_clock: Clock
) -> None:
    queue.add("a")
    with pytest.raises(ExceptionGroup):
        await queue.process(lambda key: add_and_fail(queue, key))
    assert queue.num_requeues("a") == 1
    assert queue.remaining().ready == ("a",)


async def add_and_fail(queue: RateLimitingQueue[str], key: str) -> None:
    queue.add(key)
    raise KeyError(key)


async def test_adding_a_failed_key_brings_it_now_and_keeps_its_failures(
    queue: RateLimitingQueue[str], mock_clock: Clock
) -> None:
    queue.add("a")
    await fail(queue)
    queue.add("a")
    assert queue.remaining().ready == ("a",)
    await fail(queue)
    assert queue.due_time("a") == 2


async def test_after_the_shutdown_a_failure_is_not_counted_but_told(queue: RateLimitingQueue[str]) -> None:
    for key in ("fails", "decides"):
        queue.add(key)
    queue.shut_down()
    assert not queue.add_rate_limited("other")
    assert await fail(queue) == "fails"
    async with queue.take() as key:
        assert not queue.add_rate_limited(key)
    assert queue.num_requeues("fails") == queue.num_requeues("other") == 0
    assert (await queue.drain()).unfinished == ("fails", "decides")


@attrs.define
class Grumpy:
    """A limiter that raises when it is told to."""

    is_grumpy: bool = False

    def when(self, key: str) -> float:
        if self.is_grumpy:
            raise OSError(key)
        return 1

    def forget(self, key: str) -> None:
        self.when(key)

    def num_requeues(self, key: str) -> int:
        return 0


@pytest.mark.parametrize("fails", [False, True])
async def test_a_limiter_that_raises_does_not_keep_a_key_from_being_done(fails: bool) -> None:
    queue = RateLimitingQueue[str](Grumpy(is_grumpy=True))
    queue.add("a")

    async def handle(key: str) -> None:
        if fails:
            raise KeyError(key)

    with pytest.raises(ExceptionGroup) as caught:
        await queue.process(handle)
    assert isinstance(caught.value.exceptions[0], OSError)
    assert queue.remaining().processing == ()


async def test_the_limiter_is_the_default_unless_given() -> None:
    queue = RateLimitingQueue[str]()
    assert [queue.limiter.when("a") for _ in range(3)] == [0.005, 0.01, 0.02]
    assert isinstance(queue.limiter, MaxOfRateLimiter)
