"""When the next request may be sent: kinds of waits, and what a success resets."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from trioformer._retry import HEALTHY_AFTER, BackoffPolicy, Pacing, Wait

FIXED = BackoffPolicy(jitter=0.0)


class Draws(random.Random):
    """Draws the same share each time."""

    share = 0.0

    def random(self) -> float:
        return self.share


def pacing_of(policy: BackoffPolicy = FIXED, *, share: float = 0.0) -> Pacing:
    rng = Draws()
    rng.share = share
    return Pacing(policy, rng)


def wait_of(pacing: Pacing, wait: Wait, at_least: float = 0.0) -> float:
    """Set a wait, and return its seconds."""
    pacing.set_wait(wait, at_least)
    return pacing.resume_at - trio.current_time()


async def request(pacing: Pacing, *, lasts: float = 0.0, is_accepted: bool = False, delivers: bool = False) -> None:
    """Send a request that ends after ``lasts`` seconds."""
    pacing.record_request()
    if is_accepted:
        pacing.record_accepted()
    if delivers:
        pacing.record_delivery()
    await trio.sleep(lasts)


async def lose(pacing: Pacing, times: int = 1) -> list[float]:
    """Try to connect, in vain; return the waits, which pass."""
    waits = []
    for _ in range(times):
        await request(pacing)
        waits.append(wait_of(pacing, Wait.RECONNECT))
        await trio.sleep(waits[-1])
    return waits


# --- no connection ---


async def test_ten_quick_tries_precede_the_growing_delays(autojump_clock: trio.testing.MockClock) -> None:
    waits = await lose(pacing_of(), 14)
    assert waits == pytest.approx([0.5] * 10 + [0.8, 1.6, 3.2, 6.4])


@pytest.mark.parametrize(("share", "wait"), [(0.0, 0.5), (0.5, 0.75), (0.999, 0.9995)])
async def test_a_quick_try_follows_after_half_a_second_to_one(
    share: float, wait: float, autojump_clock: trio.testing.MockClock
) -> None:
    assert await lose(pacing_of(share=share)) == pytest.approx([wait])


async def test_the_policy_sets_the_number_of_quick_tries(autojump_clock: trio.testing.MockClock) -> None:
    assert await lose(pacing_of(BackoffPolicy(jitter=0.0, quick_tries=0)), 2) == pytest.approx([0.8, 1.6])
    assert await lose(pacing_of(BackoffPolicy(jitter=0.0, quick_tries=2)), 3) == pytest.approx([0.5, 0.5, 0.8])


async def test_a_list_gives_ten_quick_tries_again_and_does_not_reset_delays(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pacing = pacing_of()
    await lose(pacing, 12)
    pacing.record_list()
    assert await lose(pacing, 11) == pytest.approx([0.5] * 10 + [3.2])


@pytest.mark.parametrize(
    ("lasts", "delivers", "waits"),
    [
        (HEALTHY_AFTER, False, [0.5] * 10 + [0.8]),
        (HEALTHY_AFTER - 0.1, False, [3.2, 6.4]),
        (0.1, True, [0.5] * 9 + [0.8]),  # the watch itself was followed by a quick try
    ],
)
async def test_after_a_watch_that_was_a_success_tries_and_delays_begin_again(
    lasts: float, delivers: bool, waits: list[float], autojump_clock: trio.testing.MockClock
) -> None:
    pacing = pacing_of()
    await lose(pacing, 12)
    await request(pacing, lasts=lasts, is_accepted=True, delivers=delivers)
    await trio.sleep(wait_of(pacing, Wait.RECONNECT))
    assert await lose(pacing, len(waits)) == pytest.approx(waits)


async def test_a_request_that_was_not_accepted_is_no_success_however_long_it_took(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pacing = pacing_of()
    await lose(pacing, 10)
    await request(pacing, lasts=9.9, delivers=True)
    assert wait_of(pacing, Wait.RECONNECT) == pytest.approx(0.8)
    await request(pacing, lasts=60, delivers=True)
    assert wait_of(pacing, Wait.RECONNECT) == pytest.approx(1.6)


async def test_eighty_quick_tries_a_minute_are_left_when_each_follows_a_success(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pacing = pacing_of()
    waits = []
    for _ in range(300):
        await request(pacing, is_accepted=True, delivers=True)
        waits.append(wait_of(pacing, Wait.RECONNECT))
        await trio.sleep(waits[-1])
    quick = [wait for wait in waits if wait == pytest.approx(0.5)]
    assert waits[:80] == pytest.approx([0.5] * 80)
    assert 80 <= len(quick) < len(waits)
    assert len(quick) <= 80 + sum(waits) * 80 / 60 + 1, "eighty, and four more each three seconds"


# --- a watch that ended ---


@pytest.mark.parametrize(("lasts", "wait"), [(1.0, 0.1), (6.0, 0.6), (8.0, 0.8), (29.0, 0.8), (30.0, 0.0), (400, 0.0)])
async def test_a_pause_is_a_tenth_of_the_watch_up_to_the_first_delay(
    lasts: float, wait: float, autojump_clock: trio.testing.MockClock
) -> None:
    pacing = pacing_of()
    await request(pacing, lasts=lasts, is_accepted=True)
    assert wait_of(pacing, Wait.PAUSE) == pytest.approx(wait)


async def test_the_wait_is_returned_as_what_it_became(autojump_clock: trio.testing.MockClock) -> None:
    became = {}
    for lasts in (0.5, 1.0):
        for is_accepted in (False, True):
            for wait in Wait:
                pacing = pacing_of()
                await request(pacing, lasts=lasts, is_accepted=is_accepted)
                became[lasts, is_accepted, wait] = pacing.set_wait(wait)
                assert pacing.wait is wait, "the kind that was set decides who is waited for"
    changed = {key: result for key, result in became.items() if key[2] is not result}
    assert changed == {
        (0.5, False, Wait.PAUSE): Wait.BACK_OFF,
        (0.5, True, Wait.PAUSE): Wait.BACK_OFF,
        (1.0, True, Wait.RECONNECT): Wait.PAUSE,
    }


async def test_a_broken_watch_of_more_than_a_second_uses_no_quick_try(autojump_clock: trio.testing.MockClock) -> None:
    pacing = pacing_of()
    await lose(pacing, 10)
    await request(pacing, lasts=2, is_accepted=True)
    assert wait_of(pacing, Wait.RECONNECT) == pytest.approx(0.2)
    assert await lose(pacing) == pytest.approx([0.8])


# --- a response that is an error ---


async def test_delays_grow_from_the_first_response_up_to_thirty_seconds(autojump_clock: trio.testing.MockClock) -> None:
    pacing = pacing_of()
    waits = []
    for _ in range(8):
        await request(pacing)
        waits.append(wait_of(pacing, Wait.BACK_OFF))
    assert waits == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


@pytest.mark.parametrize(
    ("kind", "lasts", "delivers", "wait"),
    [
        (Wait.BACK_OFF, 30, False, 0.8),
        (Wait.BACK_OFF, 29.9, True, 3.2),
        (Wait.BACK_OFF, 0.1, True, 3.2),
        (Wait.PAUSE, HEALTHY_AFTER, False, 0.8),
        (Wait.PAUSE, HEALTHY_AFTER - 0.1, False, 3.2),
        (Wait.RECONNECT, HEALTHY_AFTER, False, 0.8),
        (Wait.RECONNECT, 0.1, True, 0.8),
    ],
)
async def test_delays_begin_again_after_a_watch_of_some_seconds(
    kind: Wait, lasts: float, delivers: bool, wait: float, autojump_clock: trio.testing.MockClock
) -> None:
    """Not after one that has delivered events and was then answered with an error: servers do that for ever."""
    pacing = pacing_of()
    for _ in range(2):
        await request(pacing)
        pacing.set_wait(Wait.BACK_OFF)
    await request(pacing, lasts=lasts, is_accepted=True, delivers=delivers)
    if kind is not Wait.BACK_OFF:
        pacing.set_wait(kind)
        await request(pacing)
    assert wait_of(pacing, Wait.BACK_OFF) == pytest.approx(wait)


async def test_a_retry_after_lengthens_a_delay_only(autojump_clock: trio.testing.MockClock) -> None:
    pacing = pacing_of()
    assert wait_of(pacing, Wait.BACK_OFF, 7) == pytest.approx(7)
    assert wait_of(pacing, Wait.BACK_OFF, 1) == pytest.approx(1.6)
    assert wait_of(pacing, Wait.NONE, 7) == 0


# --- in general ---


async def test_nothing_is_waited_for_before_the_first_request(autojump_clock: trio.testing.MockClock) -> None:
    pacing = pacing_of()
    assert (pacing.is_waiting, pacing.wait) == (False, Wait.NONE)
    pacing.set_wait(Wait.NONE)
    assert not pacing.is_waiting
    pacing.set_wait(Wait.BACK_OFF)
    assert pacing.is_waiting
    await trio.sleep(0.8)
    assert not pacing.is_waiting


async def test_a_wait_begins_a_new_watch(autojump_clock: trio.testing.MockClock) -> None:
    pacing = pacing_of()
    await request(pacing, lasts=6, is_accepted=True, delivers=True)
    pacing.set_wait(Wait.PAUSE)
    assert not pacing.is_accepted
    assert wait_of(pacing, Wait.RECONNECT) == pytest.approx(0.5), "the same watch is not a success again"


async def test_requests_of_a_reader_that_is_cancelled_are_a_second_apart(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pacing = pacing_of()
    await request(pacing, lasts=0.3)
    pacing.limit_rate()
    assert pacing.resume_at - trio.current_time() == pytest.approx(0.7)
    pacing.set_wait(Wait.BACK_OFF, 9)
    pacing.limit_rate()
    assert pacing.resume_at - trio.current_time() == pytest.approx(9)
