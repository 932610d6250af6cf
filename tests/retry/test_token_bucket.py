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


async def test_a_token_that_is_given_back_is_available_again(autojump_clock: trio.testing.MockClock) -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert bucket.take() == 0
    assert bucket.take() == 1
    bucket.give_back()
    assert bucket.take() == 1
    assert bucket.delay() == 2


async def test_tokens_given_back_do_not_exceed_the_burst(autojump_clock: trio.testing.MockClock) -> None:
    bucket = TokenBucket(rate=1, burst=2)
    bucket.take()
    await trio.sleep(10)
    bucket.give_back()
    assert [bucket.take() for _ in range(3)] == [0, 0, pytest.approx(1)]
