"""Which Event is written next: failures of one object, of many, and of the server; requests that hang; the end."""

from __future__ import annotations

import itertools
import logging
import random
import re
from collections.abc import Callable
from typing import cast

import httpx
import pytest
import trio
import trio.testing

from tests.support.event_recorders import CONTROLLER, counts, pod, record, recording, running, stored
from tests.support.lease_candidates import Fault
from trioformer.events._write_loop import MAX_FAILING, MAX_UNDER_WAY
from trioformer.testing import APIServer


def failing(name: str, fault: Fault) -> Callable[[httpx.Request], Fault]:
    """Inject a fault into the requests about an object."""
    return lambda request: fault if f'"name":"{name}'.encode() in request.content else "none"


def notes(server: APIServer) -> list[str | None]:
    return [note for note, _ in counts(server)]


# --- one that fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["refuse", "hang", "lose response", "429"])
async def test_an_event_that_fails_does_not_hold_up_those_of_other_objects(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, how: str
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        if how.isdecimal():
            api_server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bad"}})
            api_server.fail_next(
                1_000, verb="create", status=lambda request: int(how) if request.namespace == "bad" else None
            )
        else:
            transport.fault = failing("bad", cast("Fault", how))
        record(recorder, "bad", regarding=pod("bad", namespace="bad"))
        for number in range(20):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        await trio.sleep(0.5)
        assert notes(api_server) == [str(number) for number in range(20)]
        for number in range(20, 100):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
            await trio.sleep(1)
            assert str(number) in notes(api_server)
        assert recorder.statistics().written == 100


async def test_the_events_of_an_object_wait_for_each_other_and_keep_their_order(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    sent: list[str] = []

    def fault(request: httpx.Request) -> Fault:
        sent.extend(match.decode() for match in re.findall(rb'"note":"(.*?)"', request.content))
        return "refuse" if sent.count("first") < 4 else "none"

    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = fault
        for note in ("first", "second", "third"):
            record(recorder, note)
        await trio.sleep(60)
        assert sent == ["first"] * 4 + ["second", "third"]
        assert notes(api_server) == ["first", "second", "third"]


async def test_ten_objects_that_fail_do_not_hold_up_the_others(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = failing("bad", "refuse")
        for number in range(10):
            record(recorder, "bad", regarding=pod(f"bad-{number}"))
        for number in range(10):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        await trio.sleep(0.1)
        assert notes(api_server) == [str(number) for number in range(10)]


async def test_failures_between_successes_do_not_make_the_server_count_as_unavailable(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = failing("bad", "refuse")
        for number in range(2 * MAX_FAILING):
            record(recorder, "bad", regarding=pod(f"bad-{number}"))
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
            await trio.sleep(0.1)
            assert str(number) in notes(api_server)


async def test_an_event_that_always_fails_is_dropped_while_others_succeed(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = failing("bad", "refuse")
        record(recorder, "bad", regarding=pod("bad"))
        for number in range(140):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
            await trio.sleep(1)
        statistics = recorder.statistics()
        assert (statistics.written, statistics.dropped, statistics.queued) == (140, 1, 0)


async def test_a_slow_response_is_not_waited_for_and_requests_are_limited(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = lambda _: "slow"  # 4 s
        transport.latency = lambda: 14.9
        for number in range(100):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        await trio.sleep(29)
        assert [at for _, at in transport.sent] == [number * 0.25 for number in range(MAX_UNDER_WAY)]
        await trio.sleep(60)
        assert recorder.statistics().written == 100


async def test_events_that_hang_hold_up_the_others_for_a_quarter_of_a_second(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    hanging = 30
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = failing("bad", "hang")
        for number in range(hanging):
            record(recorder, "bad", regarding=pod(f"bad-{number}"))
        await trio.sleep(hanging * 0.25)
        for number in range(20):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
            await trio.sleep(0.3)
            assert str(number) in notes(api_server)
            await trio.sleep(5)


@pytest.mark.parametrize("how", ["hang", "refuse"])
async def test_events_of_new_objects_that_all_fail_do_not_hold_up_the_others(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, how: Fault
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = failing("bad", how)
        for number in range(60):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
            for other in range(6):
                record(recorder, "bad", regarding=pod(f"bad-{number}-{other}"))
                await trio.sleep(5)
            assert len(notes(api_server)) >= number - 2, "after two minutes at most"


async def test_one_request_at_a_time_is_sent_while_responses_are_fast(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault, transport.latency = lambda _: "slow", lambda: 0.05
        for number in range(5):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        await trio.sleep(2)
        assert [round(at, 3) for _, at in transport.sent] == [0, 0.1, 0.2, 0.3, 0.4]


# --- the server fails -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["hang", "500"])
@pytest.mark.parametrize(("objects", "requests"), [(15, 15 * 60), (200, 250)])
async def test_an_outage_of_ten_minutes_costs_few_events_and_few_requests(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    how: str,
    objects: int,
    requests: int,
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        if how == "500":
            api_server.fail_next(10_000, verb="create", status=lambda request: 500 if request.time < 600 else None)
        else:
            transport.fault = lambda _: "none" if trio.current_time() >= 600 else cast("Fault", how)
        for number in range(objects):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        await trio.sleep(600)
        in_outage = len(transport.sent)
        await trio.sleep(60)
        statistics = recorder.statistics()
        assert statistics.dropped <= 5
        assert statistics.written == objects - statistics.dropped
    assert in_outage <= requests


async def test_while_the_server_fails_one_event_is_tried_at_a_time(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    # Seeded: 300 s have 60 delays on average, and any bound near that is exceeded at times.
    rng = random.Random(1)
    async with recording(api_server, nursery, rng=rng) as (recorder, transport), running(recorder):
        transport.fault = lambda _: "refuse"
        for number in range(100):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        await trio.sleep(300)
        times = [at for _, at in transport.sent]
        assert times[MAX_FAILING - 1] == 0
        later = times[MAX_FAILING:]
        assert all(0 <= after - before <= 10 for before, after in itertools.pairwise(later))
        assert len(later) <= 300 / 5 + 10


async def test_a_retry_after_of_an_overloaded_server_is_obeyed_for_all(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        api_server.fail_next(10_000, verb="create", status=429, retry_after=60)
        for number in range(100):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        await trio.sleep(59)
        assert len(transport.sent) == MAX_FAILING


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_an_event_that_hangs_does_not_hold_up_the_others_at_shutdown(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            transport.fault = failing("bad", "hang")
            record(recorder, "bad", regarding=pod("bad"))
            for number in range(100):
                record(recorder, str(number), regarding=pod(f"pod-{number}"))
        assert trio.current_time() == 5
        assert recorder.statistics().written == 100
    assert caplog.records[-1].getMessage() == (
        f"event recorder {CONTROLLER}: events not written at shutdown: 1: Tested of Pod default/bad (1)"
    )


@pytest.mark.parametrize(("running_for", "hanging"), [(30, 60), (0, 8)])
async def test_events_that_hang_do_not_hold_up_the_others_at_shutdown(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    running_for: float,
    hanging: int,
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        transport.fault = failing("bad", "hang")
        async with running(recorder):
            for number in range(hanging):
                record(recorder, "bad", regarding=pod(f"bad-{number}"))
            await trio.sleep(running_for)
            for number in range(100):
                record(recorder, str(number), regarding=pod(f"pod-{number}"))
        assert trio.current_time() == running_for + 5
        assert recorder.statistics().written == 100


async def test_a_thousand_events_are_written_at_shutdown_over_a_slow_connection(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        transport.fault, transport.latency = lambda _: "slow", lambda: 0.015
        async with running(recorder):
            for number in range(1_000):
                record(recorder, str(number), regarding=pod(f"pod-{number}"))
        assert trio.current_time() <= 5
        assert recorder.statistics().written == 1_000


async def test_a_delayed_event_is_tried_once_more_at_shutdown(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            api_server.fail_next(1, verb="create", status=429, retry_after=300)
            record(recorder)
            record(recorder, "behind it")
            await trio.sleep(10)
            assert len(transport.sent) == 1
        assert notes(api_server) == ["it happened", "behind it"]


async def test_events_recorded_after_the_end_are_said_once_a_minute(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with recording(api_server, nursery) as (recorder, _):
        record(recorder, "before run() it is normal that events wait")
        async with running(recorder):
            pass
        assert caplog.records == []
        for number in range(3):
            record(recorder, str(number))
    (line,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert line == f"event recorder {CONTROLLER}: events not written, because run() has ended: 1"


async def test_a_client_that_is_closed_too_early_ends_the_run_and_what_waits_is_said(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with recording(api_server, nursery) as (recorder, _):
        pass
    record(recorder)
    with pytest.raises(trio.ClosedResourceError):
        await recorder.run()
    assert [each.getMessage() for each in caplog.records] == [
        f"event recorder {CONTROLLER}: events not written when run() failed: 1"
    ]
    assert recorder.statistics().waiting == 1
    assert stored(api_server) == []


async def test_a_client_that_is_closed_before_the_shutdown_keeps_the_cancellation(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with recording(api_server, nursery) as (recorder, _):
        pass
    record(recorder)
    with trio.CancelScope() as scope:
        scope.cancel()
        await recorder.run()
    assert scope.cancelled_caught
    dropped, lost = [each.getMessage() for each in caplog.records]
    assert "cannot be written: this client is closed" in dropped
    assert lost == f"event recorder {CONTROLLER}: events not written at shutdown: 1: Tested of Pod default/web (1)"
    assert recorder.statistics().dropped == 1


async def test_a_second_cancellation_does_not_shorten_the_flush(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        transport.fault = lambda _: "slow"
        with trio.CancelScope() as outer, trio.CancelScope() as inner:
            inner.cancel()
            outer.cancel()
            record(recorder)
            await recorder.run()
        assert trio.current_time() == 4
        assert recorder.statistics().written == 1
