"""Many events: combining similar ones, rate limits, a full queue, and the sum of the statistics."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
import trio
import trio.testing
from hypothesis import event, given
from hypothesis import strategies as st

from tests.support.event_recorders import CONTROLLER, WEB, count_of, counts, pod, record, recording, running, stored
from tests.support.lease_candidates import Fault
from trioformer.events import _writer
from trioformer.events._recorder import EventRecorder
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Node, ObjectReference
from trioformer.testing import APIServer

COMBINED = "(combined from similar events): "


# --- similar events ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notes", "interval", "expected"),
    [
        (["me"], 5, [("me", 1)]),
        (["me", "me"], 5, [("me", 2)]),
        (["me"] * 11, 30, [("me", 11)]),
        ([*"abcdefghi"], 5, [(note, 1) for note in "abcdefghi"]),
        ([*"abcdefghij"], 5, [*((note, 1) for note in "abcdefghi"), (f"{COMBINED}j", 1)]),
        ([*"abcdefghijkl"], 5, [*((note, 1) for note in "abcdefghi"), (f"{COMBINED}j", 3)]),
        ([*"abcdefghijb"], 5, [("a", 1), ("b", 2), *((note, 1) for note in "cdefghi"), (f"{COMBINED}j", 1)]),
        ([*"abcdefghij"], 600, [*((note, 1) for note in "abcdefghi"), (f"{COMBINED}j", 1)]),
        ([*"abcdefghij"], 601, [(note, 1) for note in "abcdefghij"]),
    ],
    ids=[
        "a single event",
        "a repetition is counted",
        "more repetitions than max_similar",
        "nine similar ones",
        "the tenth is combined",
        "the combined one is counted",
        "a known series continues",
        "within the period",
        "after the period",
    ],
)
async def test_events_that_differ_only_in_their_note_are_combined_from_the_tenth_on(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    notes: list[str],
    interval: float,
    expected: list[tuple[str, int]],
) -> None:
    """client-go: TestEventCorrelator, TestEventAggregatorByReasonMessageFunc"""
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for note in notes:
            record(recorder, note)
            await trio.sleep(interval)
    assert counts(api_server) == expected
    assert recorder.statistics().combined == sum(count for note, count in expected if note.startswith(COMBINED))


async def test_only_similar_events_are_combined(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestEventCorrelator, TestEventAggregatorByReasonFunc"""
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for number in range(9):
            record(recorder, str(number))
        for part in "ab":
            reference = ObjectReference(
                kind="Pod", name="web", namespace="default", field_path=f"spec.containers{{{part}}}"
            )
            recorder.event(reference, reason="Tested", action="Testing", note="another part")
        record(recorder, "another reason", reason="Killed")
        record(recorder, "another action", action="Killing")
        record(recorder, "another object", regarding=pod("other"))
        for number in range(30):
            record(recorder, f"object {number}", regarding=pod(f"pod-{number}"))
    assert recorder.statistics().combined == 0
    assert len(stored(api_server)) == 44


async def test_events_that_differ_in_their_related_object_are_combined_without_it(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for number in range(12):
            node = Node(metadata=ObjectMeta(name=f"node-{number}"))
            recorder.event(WEB, reason="Tested", action="Testing", note="on a node", related=node)
            await trio.sleep(1)
    *single, combined = stored(api_server)
    assert [each.related and each.related.name for each in single] == [f"node-{number}" for number in range(9)]
    assert combined.related is None
    assert (combined.note, count_of(combined)) == (f"{COMBINED}on a node", 3)


async def test_a_combined_note_is_truncated_to_the_servers_limit(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery, max_similar=1) as (recorder, _), running(recorder):
        record(recorder, "x" * 1_024)
    assert counts(api_server) == [(COMBINED + "x" * (1_024 - len(COMBINED)), 1)]


# --- the rate limit ---------------------------------------------------------------------------------------------------


async def test_an_object_gets_25_events_of_a_type_and_then_one_in_five_minutes(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestEventSpamFilter, TestEventCorrelator"""
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for number in range(30):
            record(recorder, reason=f"Reason{number}")
            await trio.sleep(1)
        assert len(stored(api_server)) == 25
        assert recorder.statistics().filtered == 5
        record(recorder, type="Warning")
        record(recorder, regarding=pod("other"))
        record(recorder, regarding=pod(uid="another uid"))
        await trio.sleep(1)
        assert len(stored(api_server)) == 28

        await trio.sleep(268)
        record(recorder, reason="AfterLessThanFiveMinutes")
        await trio.sleep(1)
        record(recorder, reason="AfterFiveMinutes")
        record(recorder, reason="AndOneMore")
        await trio.sleep(1)
        assert len(stored(api_server)) == 29
        assert recorder.statistics().filtered == 7


async def test_an_object_without_events_for_long_gets_a_burst_of_at_most_25(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestEventSpamFilter"""
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for _ in range(2):
            for number in range(30):
                record(recorder, reason=f"Reason{number}")
            await trio.sleep(80_000)
    assert recorder.statistics().filtered == 10


async def test_the_rate_limit_of_the_least_recently_used_object_is_evicted(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery, cache_size=2, spam_burst=1) as (recorder, _), running(recorder):
        for name, filtered in (("a", 0), ("b", 0), ("a", 1), ("c", 1), ("a", 2), ("b", 2), ("b", 3)):
            record(recorder, f"at {trio.current_time()}", regarding=pod(name))
            assert recorder.statistics().filtered == filtered
            await trio.sleep(1)


async def test_repetitions_do_not_count_for_the_rate_limit(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery, spam_burst=1) as (recorder, transport), running(recorder):
        for _ in range(100):
            record(recorder)
            record(recorder, reason="Other")
            await trio.sleep(1)
    assert counts(api_server) == [("it happened", 100)]
    assert recorder.statistics().filtered == 100
    assert transport.methods == ["POST", "PATCH", "PATCH"]


# --- the queue --------------------------------------------------------------------------------------------------------


async def test_a_full_queue_drops_new_events_and_counts_those_of_known_series(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with recording(api_server, nursery) as (recorder, _):
        for number in range(2_500):
            record(recorder, regarding=pod(f"pod-{number}"))
            record(recorder, regarding=pod("pod-7"))
            await trio.sleep(0.04)
        statistics = recorder.statistics()
        assert (statistics.queued, statistics.dropped, statistics.waiting) == (1_000, 1_500, 3_500)
        lines = [each.getMessage() for each in caplog.records]
        assert len(lines) == 1  # it was full for a minute
        assert lines[0].startswith(
            f"event recorder {CONTROLLER}: events dropped: 1, 1 in total; the queue is full with 1000 Events"
        )
        await trio.sleep(1)
        record(recorder, "one more")
        assert "events dropped: 1, 1501 in total" in caplog.text
        async with running(recorder):
            await trio.sleep(1)
            assert len(stored(api_server)) == 1_000
            assert sum(map(count_of, stored(api_server))) == 3_500


async def test_recording_does_not_block_when_the_server_hangs(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestLotsOfEvents"""
    async with recording(api_server, nursery, queue_size=10) as (recorder, transport), running(recorder):
        transport.fault = lambda request: "hang" if trio.current_time() < 20 else "none"
        for number in range(100):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
            await trio.lowlevel.checkpoint()
        assert trio.current_time() == 0
        assert recorder.statistics().dropped == 90
        await trio.sleep(100)
        assert [note for note, _ in counts(api_server)] == [str(number) for number in range(10)]


async def test_the_least_recently_used_series_ends_when_there_are_too_many(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery, cache_size=3) as (recorder, transport), running(recorder):
        for _ in range(4):
            for name in "abc":
                record(recorder, name, regarding=pod(name))
                await trio.sleep(1)
        record(recorder, "a", regarding=pod("a"))
        transport.sent.clear()
        record(recorder, "d", regarding=pod("d"))
        await trio.sleep(1)
        assert transport.methods == ["POST", "PATCH"]
        assert counts(api_server) == [("a", 2), ("b", 4), ("c", 2), ("d", 1)]
        assert recorder.statistics().series == 3
    assert counts(api_server) == [("a", 5), ("b", 4), ("c", 4), ("d", 1)]


async def test_a_count_that_a_full_queue_delays_is_written_when_its_series_ends(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery, queue_size=2) as (recorder, transport), running(recorder):
        for _ in range(3):
            record(recorder, "many")
        record(recorder, "one")
        await trio.sleep(1)
        transport.fault = lambda request: "refuse" if trio.current_time() < 370 else "none"
        for number in range(2):
            record(recorder, str(number), regarding=pod(f"pod-{number}"))
        for note in ("one", "many"):
            record(recorder, note)
        statistics = recorder.statistics()
        assert (statistics.queued, statistics.dropped, statistics.waiting) == (2, 0, 4)
        await trio.sleep(400)
        assert recorder.statistics().waiting == recorder.statistics().series == 0
        assert dict(counts(api_server)).items() >= {"many": 4, "one": 2}.items()
        assert recorder.statistics().dropped == 2  # the other two, after twelve tries each


async def test_the_count_of_an_evicted_series_is_dropped_when_the_queue_is_full(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery, queue_size=2, cache_size=2) as (recorder, transport), running(recorder):
        for _ in range(4):
            record(recorder, "many")
            await trio.sleep(1)
        transport.fault = lambda request: "hang"
        record(recorder, "a", regarding=pod("a"))
        record(recorder, "b", regarding=pod("b"))
        statistics = recorder.statistics()
        assert (statistics.queued, statistics.series, statistics.dropped) == (2, 2, 2)
        transport.fault = lambda request: "none"
    assert counts(api_server) == [("many", 2), ("a", 1), ("b", 1)]
    assert recorder.statistics().waiting == 0


# --- the statistics ---------------------------------------------------------------------------------------------------

Step: TypeAlias = tuple[str, Any]

EVENTS = st.tuples(
    st.just("record"),
    st.tuples(st.sampled_from("ab"), st.sampled_from("RS"), st.text("uvwxyz", min_size=1, max_size=8)),
)
TIME = st.tuples(st.just("sleep"), st.sampled_from([0, 0.5, 9, 61, 400, 2_000]))
RESTART = st.tuples(st.just("restart"), st.just(None))
STATUSES = st.tuples(
    st.just("fail"), st.tuples(st.integers(1, 14), st.sampled_from([400, 403, 404, 409, 422, 429, 500, 503]))
)
CONNECTION = st.tuples(st.just("fault"), st.tuples(st.integers(1, 14), st.sampled_from(["refuse", "hang", "slow"])))
LOST_RESPONSES = st.tuples(st.just("fault"), st.tuples(st.integers(1, 3), st.sampled_from(["lose response", "slow"])))


async def run_steps(steps: list[Step]) -> None:
    """Run the steps on a recorder with small limits, then compare its statistics with the server."""
    server = APIServer()
    async with (
        trio.open_nursery() as nursery,
        recording(server, nursery, queue_size=3, cache_size=3, max_similar=3, spam_burst=4, flush_period=86_400) as (
            recorder,
            transport,
        ),
    ):
        await nursery.start(server.run)
        faults: list[Fault] = []
        transport.fault = lambda _: faults.pop() if faults else "none"
        recorded = 0
        scope = await nursery.start(run_in_scope, recorder)
        for step, what in steps:
            match step:
                case "record":
                    name, reason, notes = what
                    for note in notes:
                        record(recorder, note, regarding=pod(name), reason=reason)
                    recorded += len(notes)
                case "sleep":
                    await trio.sleep(what)
                case "fail":
                    server.fail_next(what[0], resource="events", status=what[1])
                case "fault":
                    faults.extend([what[1]] * what[0])
                case "restart":
                    await stop(scope)
                    scope = await nursery.start(run_in_scope, recorder)
            statistics = recorder.statistics()
            assert statistics.queued <= 3
            assert statistics.series <= 3
        faults.clear()
        await stop(scope)
        statistics = recorder.statistics()
        assert statistics.recorded == recorded
        assert statistics.waiting == statistics.queued == 0
        assert statistics.written == sum(map(count_of, stored(server)))
        assert statistics.written + statistics.dropped + statistics.filtered == recorded
        for name in ("dropped", "filtered", "combined"):
            event(f"some were {name}: {getattr(statistics, name) > 0}")
        nursery.cancel_scope.cancel()


Running: TypeAlias = tuple[trio.CancelScope, trio.Event]


async def run_in_scope(recorder: EventRecorder, *, task_status: trio.TaskStatus[Running]) -> None:
    ended = trio.Event()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(recorder.run)
            task_status.started((scope, ended))
    ended.set()


async def stop(running: Running) -> None:
    scope, ended = running
    scope.cancel()
    await ended.wait()


@given(st.lists(st.one_of(EVENTS, EVENTS, EVENTS, TIME, STATUSES, CONNECTION, RESTART), max_size=60))
def test_every_event_is_written_dropped_or_filtered_under_server_errors(steps: list[Step]) -> None:
    trio.run(run_steps, steps, clock=trio.testing.MockClock(autojump_threshold=0))


@given(st.lists(st.one_of(EVENTS, EVENTS, EVENTS, TIME, LOST_RESPONSES), max_size=60))
def test_no_event_is_counted_twice_when_responses_are_lost(steps: list[Step]) -> None:
    # With 12 tries, an event whose responses are all lost would count as dropped although the server stored it.
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(_writer, "MAX_TRIES", 1_000)
        trio.run(run_steps, steps, clock=trio.testing.MockClock(autojump_threshold=0))
