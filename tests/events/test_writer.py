"""Writing Events: rejections, failures, hanging requests, an unreachable server, and the shutdown of the recorder."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from tests.support.event_recorders import CONTROLLER, EPOCH, count_of, counts, pod, record, recording, running, stored
from tests.support.lease_candidates import Fault, SlowPlugin
from trioformer.errors import ConnectionFailedError
from trioformer.events._writer import is_transient
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Namespace
from trioformer.models.events_v1 import Event
from trioformer.testing import APIServer


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


# --- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "failures", "attempts", "dropped"),
    [
        (422, 1_000, 1, 1),
        (403, 1_000, 1, 1),
        (400, 1_000, 1, 1),
        (500, 1_000, 12, 1),
        (503, 1_000, 12, 1),
        (429, 1_000, 12, 1),
        (409, 1_000, 12, 1),
        (500, 2, 3, 0),
        (500, 11, 12, 0),
    ],
)
async def test_transient_errors_are_retried_and_rejections_are_not(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    status: int,
    failures: int,
    attempts: int,
    dropped: int,
) -> None:
    """client-go: TestWriteEventError"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        api_server.fail_next(failures, verb="create", status=status)
        record(recorder)
        await trio.sleep(1_000)
        assert transport.methods == ["POST"] * attempts
        assert recorder.statistics().dropped == dropped
        assert recorder.statistics().written == 1 - dropped
        assert len(stored(api_server)) == 1 - dropped


async def test_tries_are_ten_seconds_apart_and_the_first_delay_is_random(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestWriteEventError"""
    second_tries = []
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        for number in range(20):
            transport.fault = lambda _: "refuse"
            transport.sent.clear()
            record(recorder, regarding=pod(f"pod-{number}"))
            await trio.sleep(1_000)
            times = [at for _, at in transport.sent]
            delays = [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]
            quick, delays = ([], delays) if number else (delays[:10], delays[10:])
            assert all(0.5 <= delay < 1 for delay in quick), "ten quick tries since the last success"
            assert delays[1:] == [10] * 10
            second_tries.append(delays[0])
    assert all(0 <= delay < 10 for delay in second_tries)
    assert max(second_tries) - min(second_tries) > 5


@pytest.mark.parametrize(("is_permanent", "is_retried"), [(True, False), (False, True)])
def test_a_permanent_connection_failure_is_not_transient(is_permanent: bool, is_retried: bool) -> None:
    assert is_transient(ConnectionFailedError("the certificate does not verify", permanent=is_permanent)) == is_retried


async def test_a_retry_after_header_is_honoured(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        api_server.fail_next(verb="create", status=429, retry_after=60)
        record(recorder)
        await trio.sleep(100)
        assert 60 <= transport.sent[1][1] <= 66
        assert counts(api_server) == [("it happened", 1)]


async def test_hundreds_of_events_that_fail_four_times_are_all_written(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestLotsOfEvents"""
    tries: Counter[bytes] = Counter()

    def refuse_four_times(request: httpx.Request) -> Fault:
        tries[request.content] += 1
        return "refuse" if tries[request.content] < 5 else "none"

    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = refuse_four_times
        for number in range(300):
            record(recorder, str(number), regarding=pod(f"pod-{number}"), reason=f"Reason-{number}")
        await trio.sleep(86_000)
        assert [event.note for event in stored(api_server)] == [str(number) for number in range(300)]
        assert set(tries.values()) == {5}
        assert recorder.statistics().written == 300


async def test_a_request_that_hangs_is_retried_after_its_deadline(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = lambda request: "hang" if len(transport.sent) < 3 else "none"
        record(recorder)
        await trio.sleep(200)
        assert len(transport.sent) == 3
        assert transport.sent[1][1] - transport.sent[0][1] >= 30
        assert 30.5 <= transport.sent[2][1] - transport.sent[1][1] <= 31
        assert counts(api_server) == [("it happened", 1)]


async def test_a_retry_after_longer_than_the_retry_period_is_waited_for(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        api_server.fail_next(2, verb="create", status=429, retry_after=300)
        record(recorder)
        await trio.sleep(1_000)
        times = [at for _, at in transport.sent]
        assert all(300 <= later - earlier <= 330 for earlier, later in itertools.pairwise(times))
        assert counts(api_server) == [("it happened", 1)]


# --- lost responses ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [0, 3])
async def test_an_event_whose_response_was_lost_is_not_created_twice(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, again: int
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = lambda request: "lose response" if len(transport.sent) == 1 else "none"
        record(recorder)
        await trio.sleep(1)
        for _ in range(again):
            record(recorder)
        await trio.sleep(100)
        assert counts(api_server) == [("it happened", 1 + again)]
        assert transport.methods == ["POST", "POST"] + ["PATCH"] * bool(again)
        assert recorder.statistics().waiting == 0
        transport.sent.clear()
        record(recorder)
    assert counts(api_server) == [("it happened", 2 + again)]
    assert transport.methods == ["PATCH"]


async def test_a_count_whose_response_was_lost_is_not_added_twice(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = lambda request: "lose response" if len(transport.sent) == 2 else "none"
        record(recorder)
        await trio.sleep(1)
        record(recorder)
        await trio.sleep(100)
        assert counts(api_server) == [("it happened", 2)]
        assert transport.methods == ["POST", "PATCH", "PATCH"]


async def test_a_name_of_another_clients_event_is_not_used(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    taken = Event(metadata=ObjectMeta(name=f"web.{round(EPOCH * 1e9):x}", namespace="default"), note="another client's")
    api_server.create(taken)
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        record(recorder)
        await trio.sleep(1)
        assert sorted(each.note or "" for each in api_server.list(Event)) == ["another client's", "it happened"]
        assert transport.methods == ["POST", "POST"]
        assert recorder.statistics().written == 1


# --- rejections -------------------------------------------------------------------------------------------------------


async def test_an_event_in_a_terminating_namespace_is_dropped_and_logged(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api_server.create(Namespace(metadata=ObjectMeta(name="doomed", finalizers=("example.com/wait",))))
    api_server.delete(Namespace, "doomed")
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        record(recorder, regarding=pod(namespace="doomed"))
        record(recorder)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 1)]
        assert transport.methods == ["POST", "POST"]
        assert recorder.statistics().dropped == 1
    (line,) = warnings_in(caplog)
    assert line.startswith(f"event recorder {CONTROLLER}: events dropped: 1, 1 in total; event doomed/web.")
    assert "is being terminated" in line


async def test_rejections_are_logged_once_a_minute_and_every_drop_is_counted(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api_server.fail_next(1_000, status=403)
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for number in range(100):
            record(recorder, regarding=pod(f"pod-{number}"))
            await trio.sleep(2)
        assert recorder.statistics().dropped == 100
    totals = [re.findall(r"events dropped: 1, (\d+) in total", line) for line in warnings_in(caplog)]
    assert totals == [["1"], ["31"], ["61"], ["91"]]


async def test_a_repetition_of_a_rejected_event_starts_a_new_series(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        api_server.fail_next(verb="create", status=403)
        record(recorder)
        await trio.sleep(1)
        record(recorder)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 1)]

        api_server.fail_next(verb="patch", status=403)  # the role does not allow patch
        record(recorder)
        await trio.sleep(1)
        record(recorder)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 1), ("it happened", 1)]
        assert recorder.statistics().dropped == 2


async def test_an_event_that_cannot_be_encoded_is_dropped_without_affecting_others(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        record(recorder, "bad", regarding=pod(uid="\udcff"))
        record(recorder, "good")
        await trio.sleep(1)
        assert counts(api_server) == [("good", 1)]
        assert recorder.statistics().dropped == 1


async def test_the_rejection_of_an_ended_series_does_not_affect_the_next_one(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery, cache_size=1) as (recorder, transport):
        record(recorder)
        record(recorder, "something else")  # the cache has one series, so the first one ends
        record(recorder)
        api_server.fail_next(2, status=403)
        async with running(recorder):
            await trio.sleep(1)
            assert counts(api_server) == [("it happened", 1)]
            assert recorder.statistics().series == 1
            record(recorder)
            await trio.sleep(1)
            assert counts(api_server) == [("it happened", 2)]
    assert transport.methods == ["POST", "POST", "POST", "PATCH"]
    assert recorder.statistics().dropped == 2


# --- shutdown ---------------------------------------------------------------------------------------------------------


async def test_queued_events_are_written_at_shutdown(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestBroadcasterShutdown, TestStartEventWatcherExitsOnDirectShutdown"""
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            for _ in range(3):
                record(recorder, "counted")
                await trio.sleep(1)
            for number in range(50):
                record(recorder, str(number), regarding=pod(f"pod-{number}"))
        assert trio.current_time() == 3
        assert counts(api_server) == [("counted", 3)] + [(str(number), 1) for number in range(50)]
        assert len(transport.sent) == 2 + 50 + 1
        assert recorder.statistics().waiting == 0


async def test_a_recorder_that_is_cancelled_before_its_start_flushes(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestStartEventWatcherExitsOnDirectShutdown, TestCancelEvent"""
    async with recording(api_server, nursery) as (recorder, _):
        for _ in range(2):
            record(recorder)
            with trio.CancelScope() as scope:
                scope.cancel()
                await recorder.run()
            assert scope.cancelled_caught
    assert counts(api_server) == [("it happened", 2)]


async def test_an_event_whose_request_is_cancelled_at_shutdown_is_written_once(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            transport.fault = lambda request: "lose response" if len(transport.sent) == 1 else "none"
            record(recorder)
            await trio.sleep(1)
        assert trio.current_time() == 1
        assert counts(api_server) == [("it happened", 1)]
        assert recorder.statistics().written == 1


async def test_every_event_is_tried_once_at_shutdown(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestCancelEvent"""
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            api_server.fail_next(2, status=500)
            for number in range(4):
                record(recorder, str(number), regarding=pod(f"pod-{number}"))
        assert trio.current_time() == 0
        assert transport.methods == ["POST"] * 4
        assert counts(api_server) == [("2", 1), ("3", 1)]
        assert recorder.statistics().dropped == 2


async def test_the_delay_between_two_tries_does_not_delay_the_shutdown(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestCancelEvent"""
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            api_server.fail_next(2, status=500)
            record(recorder)
            await trio.sleep(11)
        assert trio.current_time() == 11
        assert transport.methods == ["POST"] * 3
        assert counts(api_server) == [("it happened", 1)]


@pytest.mark.parametrize("fault", ["hang", "refuse"])
async def test_an_unreachable_server_delays_the_shutdown_by_at_most_the_flush_period(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            record(recorder)
            await trio.sleep(100)
            transport.fault = lambda request: fault
            for _ in range(3):
                record(recorder)
            for number in range(10):
                record(recorder, regarding=pod(f"pod-{number}"))
            await trio.sleep(1)
        assert trio.current_time() == (106 if fault == "hang" else 101)
        statistics = recorder.statistics()
        assert (statistics.written, statistics.dropped, statistics.waiting, statistics.queued) == (1, 13, 0, 0)
        start = f"event recorder {CONTROLLER}: events not written at shutdown: 13: Tested of Pod default/web (3), "
        line = warnings_in(caplog)[-1]
        assert line.startswith(start)
        others = r"(Tested of Pod default/pod-\d \(1\)(, )?){4} and 6 others"
        assert re.fullmatch(others, line.removeprefix(start))


async def test_events_that_are_recorded_during_the_shutdown_are_written(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestNonRacyShutdown"""
    async with recording(api_server, nursery, flush_period=60) as (recorder, transport):

        async def clean_up() -> None:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    for number in range(20):
                        record(recorder, "stopping")
                        record(recorder, str(number))
                        await trio.sleep(0.5)

        async with trio.open_nursery() as inner:
            await inner.start(recorder.run)
            inner.start_soon(clean_up)
            transport.fault = lambda request: "slow"
            record(recorder, "stopping")
            await trio.sleep(1)
            inner.cancel_scope.cancel()
        statistics = recorder.statistics()
        assert (statistics.recorded, statistics.dropped, statistics.waiting) == (41, 0, 0)
        assert sum(map(count_of, stored(api_server))) == statistics.written == 41
        assert counts(api_server)[0] == ("stopping", 21)


async def test_events_that_cannot_be_written_during_the_shutdown_are_counted_as_dropped(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """client-go: TestNonRacyShutdown"""
    async with recording(api_server, nursery) as (recorder, transport):

        async def clean_up() -> None:
            with trio.CancelScope(shield=True):
                await trio.sleep(12)
                record(recorder, "counted")
                record(recorder, "new")

        async with trio.open_nursery() as inner:
            await inner.start(recorder.run)
            inner.start_soon(clean_up)
            for _ in range(2):
                record(recorder, "counted")
                await trio.sleep(5)
            transport.fault = lambda request: "hang"
            record(recorder, "too late")
            inner.cancel_scope.cancel()
        statistics = recorder.statistics()
        assert (statistics.written, statistics.dropped, statistics.waiting, statistics.queued) == (2, 3, 0, 0)
    assert warnings_in(caplog) == [
        f"event recorder {CONTROLLER}: events not written at shutdown: 3: "
        + ", ".join(["Tested of Pod default/web (1)"] * 3)
    ]


async def test_events_may_be_recorded_after_the_shutdown(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestNonRacyShutdown"""
    async with recording(api_server, nursery) as (recorder, _):
        async with running(recorder):
            record(recorder)
        record(recorder)
        record(recorder, "late")
        assert recorder.statistics().waiting == 2


async def test_running_with_a_closed_client_raises(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, _):
        pass
    record(recorder)
    with pytest.raises(trio.ClosedResourceError):
        await recorder.run()
    assert recorder.statistics().waiting == 1


async def test_a_failure_of_a_sibling_task_does_not_lose_events(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async def fail(**_: Any) -> None:
        record(recorder, "about to fail")
        raise KeyError("failed")

    async with recording(api_server, nursery) as (recorder, _):
        with pytest.RaisesGroup(KeyError):
            async with running(recorder):
                await fail()
        assert counts(api_server) == [("about to fail", 1)]


async def test_a_plugin_may_need_longer_than_a_request(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    plugin = SlowPlugin(200)
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        recorder._client._transport._credentials = plugin
        record(recorder)
        await trio.sleep(201)
        assert plugin.runs == [0]
        assert recorder.statistics().written == 1
