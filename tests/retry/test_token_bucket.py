"""A rate with a burst, on trio's clock."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer._retry import TokenBucket


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
