"""Delays that grow, time limits for retries, and a rate with a burst."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from trioformer._retry import Backoff, BackoffPolicy, TokenBucket


def test_delays_double_up_to_the_maximum_and_start_again_after_a_reset() -> None:
    backoff = Backoff(BackoffPolicy(jitter=0.0))
    assert [backoff.next_delay() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    backoff.reset()
    assert backoff.next_delay() == 0.8


def test_jitter_at_most_doubles_a_delay_by_default() -> None:
    """client-go's reflector has a jitter of 1."""
    delays = [Backoff(BackoffPolicy(), rng=random.Random(seed)).next_delay() for seed in range(200)]
    assert 0.8 <= min(delays) < 0.9
    assert 1.5 < max(delays) < 1.6


def test_a_retry_after_lengthens_a_delay_and_does_not_stop_its_growth() -> None:
    backoff = Backoff(BackoffPolicy(jitter=0.0))
    assert backoff.next_delay(at_least=10) == 10
    assert backoff.next_delay() == 1.6


@pytest.mark.parametrize("wrong", [{"initial": 0}, {"factor": 0.5}, {"maximum": 0}, {"jitter": -0.1}])
def test_a_policy_that_would_not_wait_is_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BackoffPolicy(**wrong)


async def test_a_full_bucket_has_its_burst_and_fills_at_its_rate(autojump_clock: trio.testing.MockClock) -> None:
    bucket = TokenBucket(rate=2, burst=3)
    assert [bucket.take() for _ in range(5)] == [0, 0, 0, 0.5, 1.0]
    await trio.sleep(1.0)
    assert bucket.delay() == 0.5, "both tokens that have come were reserved"
    await trio.sleep(100)
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 0.5]


@pytest.mark.parametrize("period", [1, 3, 49, 98, 103, 107, 300])
async def test_one_period_after_a_bucket_was_emptied_a_token_is_available(
    period: int, autojump_clock: trio.testing.MockClock
) -> None:
    bucket = TokenBucket(rate=1 / period, burst=1)
    for _ in range(5):
        assert bucket.take() == 0
        await trio.sleep(period)
