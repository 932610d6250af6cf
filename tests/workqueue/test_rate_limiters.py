"""Rate limiters: the delays of failed keys."""

from __future__ import annotations

import math
import random

import pytest
import trio
import trio.testing

from trioformer.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    default_controller_rate_limiter,
)
from trioformer.workqueue._internal import default_priority_queue_rate_limiter

Clock = trio.testing.MockClock


def delays(limiter: RateLimiter[str], key: str, count: int) -> list[float]:
    return [limiter.when(key) for _ in range(count)]


def test_delays_of_a_key_double_until_it_is_forgotten() -> None:
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


def test_delays_do_not_overflow_after_many_failures() -> None:
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


@pytest.mark.parametrize("base_delay", [5e-324, 0.005, 0.3, 7.0, 1_000.0, 1e300])
@pytest.mark.parametrize("max_delay", [5e-324, 0.005, 1.0, 1_000.0, 1.7e308])
def test_a_delay_is_the_doubled_one_but_at_most_the_longest(base_delay: float, max_delay: float) -> None:
    limiter = ItemExponentialFailureRateLimiter(base_delay, max_delay)
    expected = base_delay
    for delay in delays(limiter, "a", 2_200):
        assert delay == min(expected, max_delay)
        expected *= 2


@pytest.mark.parametrize("wrong", [{"base_delay": 0}, {"base_delay": -1}, {"max_delay": 0}, {"max_delay": math.inf}])
def test_delays_must_be_positive_and_finite(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ItemExponentialFailureRateLimiter(**wrong)


def test_the_longest_delay_of_several_limiters_counts() -> None:
    """client-go: TestMaxOfRateLimiter"""
    limiter = MaxOfRateLimiter(
        ItemExponentialFailureRateLimiter(0.004, 0.01), ItemExponentialFailureRateLimiter(0.001, 1)
    )
    assert delays(limiter, "one", 6) == [0.004, 0.008, 0.01, 0.01, 0.016, 0.032]
    assert limiter.num_requeues("one") == 6
    assert delays(limiter, "two", 2) == [0.004, 0.008]
    assert limiter.num_requeues("two") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == 0.004


async def test_the_bucket_allows_a_burst_and_then_a_fixed_rate(mock_clock: Clock) -> None:
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


async def test_the_bucket_is_exact_after_many_retries(mock_clock: Clock) -> None:
    limiter = BucketRateLimiter(10, 100)
    assert delays(limiter, "a", 100_100)[-1] == 10_000


def test_a_bucket_keeps_its_tokens_when_the_next_clock_is_earlier() -> None:
    limiter = BucketRateLimiter(10, 5)

    async def use(seconds: float) -> list[float]:
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, Clock)
        clock.jump(seconds)
        return delays(limiter, "a", 3)

    assert trio.run(use, 1_000, clock=Clock()) == [0, 0, 0]
    assert trio.run(use, 1, clock=Clock()) == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize("wrong", [{"qps": 0}, {"qps": math.inf}, {"burst": 0}])
def test_a_bucket_must_have_a_rate_and_a_burst(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        BucketRateLimiter(**wrong)


def test_jitter_only_shortens_a_delay_and_at_most_by_its_share() -> None:
    limiter = ItemExponentialFailureRateLimiter(1, 1_000, 0.25, rng=random.Random(1))
    drawn = [delays(limiter, f"k{n}", 12) for n in range(400)]
    for number, same in enumerate(zip(*drawn, strict=True)):
        longest = min(2.0**number, 1_000)
        assert longest * 0.75 < min(same) < longest * 0.76
        assert longest * 0.99 < max(same) <= longest


@pytest.mark.parametrize("wrong", [-0.1, 1, math.nan])
def test_jitter_must_be_a_share_of_the_delay(wrong: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        ItemExponentialFailureRateLimiter(jitter=wrong)


async def test_the_default_limiter_delays_a_key_by_its_own_failures_only(mock_clock: Clock) -> None:
    limiter = default_priority_queue_rate_limiter()
    for number in range(2_000):
        delays(limiter, f"k{number}", 13)
    assert 0.004 <= limiter.when("another") <= 0.005
    assert 800 <= delays(limiter, "another", 30)[-1] <= 1_000


async def test_the_default_limiter_of_client_gos_controllers_has_a_shared_rate(mock_clock: Clock) -> None:
    limiter = default_controller_rate_limiter()
    assert delays(limiter, "a", 20)[:3] == [0.005, 0.01, 0.02]
    assert limiter.when("a") == 1_000
    for number in range(79):
        assert limiter.when(f"k{number}") == 0.005
    assert limiter.when("after the burst") == pytest.approx(0.1)
    assert limiter.num_requeues("a") == 21
