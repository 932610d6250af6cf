"""An event recorder: the fields of Events, series of equal events, and when they are written."""

from __future__ import annotations

import logging
import socket
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from tests.support.event_recorders import (
    CONTROLLER,
    WEB,
    count_of,
    counts,
    pod,
    record,
    recording,
    running,
    seconds_of,
    stored,
)
from trioformer.client import Client
from trioformer.events._options import EventRecorderOptions
from trioformer.events._recorder import EventRecorder
from trioformer.models import KubernetesObject, ObjectMeta, metadata_kind, to_dict, unstructured_kind
from trioformer.models.core_v1 import Node, ObjectReference, Pod
from trioformer.models.events_v1 import Event
from trioformer.models.networking_v1 import IPAddress
from trioformer.testing import APIServer

POD = {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "default", "uid": "12345"}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "node1", "uid": "67890"}


# --- the fields of an Event -------------------------------------------------------------------------------------------


async def test_an_event_has_its_objects_its_reporter_and_its_time(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestEventf"""
    node = Node(metadata=ObjectMeta(name="node1", uid="67890"))
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        await trio.sleep(1.25)
        recorder.event(
            pod(resource_version="7"),
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note="no room on node1",
            related=node,
        )
    (event,) = api_server.list("events.events.k8s.io")
    metadata = event.pop("metadata")
    assert isinstance(metadata, dict)
    assert metadata["namespace"] == "default"
    assert metadata["name"] == f"web.{1_767_225_601_250_000_000:x}"
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-01T00:00:01.250000Z",
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "no room on node1",
        "regarding": POD | {"resourceVersion": "7"},
        "related": NODE,
        "reportingController": CONTROLLER,
        "reportingInstance": "tester-0",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }


@pytest.mark.parametrize(
    ("regarding", "namespace", "reference"),
    [
        (Node(metadata=ObjectMeta(name="node1", uid="67890")), "default", NODE),
        (pod(namespace=None), "default", {key: POD[key] for key in ("apiVersion", "kind", "name", "uid")}),
        (pod(namespace="other"), "other", POD | {"namespace": "other"}),
        (
            ObjectReference(kind="Pod", name="gone", namespace="other", field_path="spec.containers{app}"),
            "other",
            {"kind": "Pod", "name": "gone", "namespace": "other", "fieldPath": "spec.containers{app}"},
        ),
        (
            unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True).of(
                {"metadata": {"name": "w", "namespace": "other"}}
            ),
            "other",
            {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "namespace": "other"},
        ),
        (metadata_kind(Pod)(metadata=WEB.metadata), "default", POD),
    ],
    ids=["cluster-scoped", "without namespace", "namespaced", "reference", "unstructured", "metadata only"],
)
async def test_an_event_is_in_the_namespace_of_its_object(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    regarding: KubernetesObject | ObjectReference,
    namespace: str,
    reference: dict[str, Any],
) -> None:
    """client-go: TestEventf, TestEventfNoNamespace"""
    api_server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        recorder.event(regarding, reason="Tested", action="Testing", note="")
    (event,) = stored(api_server)
    assert event.namespace == namespace
    assert to_dict(event.regarding) == reference


@pytest.mark.parametrize("name", ["x" * 253, "system:node", "-dash"])
async def test_an_object_name_that_is_not_valid_for_events_gives_a_random_event_name(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, name: str
) -> None:
    """client-go: TestGenerateEventName, TestEventf"""
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        recorder.event(
            IPAddress(metadata=ObjectMeta(name=name)), reason="Leaked", action="Allocating", note="it is not assigned"
        )
    (event,) = stored(api_server)
    assert event.regarding.name == name
    assert len(event.name) == 36
    assert count_of(event) == 1


async def test_two_events_at_the_same_time_have_different_names(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        record(recorder, "one")
        record(recorder, "two")
    assert counts(api_server) == [("one", 1), ("two", 1)]
    assert transport.methods == ["POST", "POST"]


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        ("x" * 1_024, "x" * 1_024),
        ("x" * 1_025, "x" * 1_024),
        ("x" + "é" * 512, "x" + "é" * 511),
        ("a\udcffb", "a?b"),
    ],
    ids=["short enough", "too long", "inside a character", "not encodable"],
)
async def test_a_note_is_truncated_to_the_servers_limit(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, note: str, kept: str
) -> None:
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        record(recorder, note)
    assert counts(api_server) == [(kept, 1)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"type": "Error"}, "the type of an event must be 'Normal' or 'Warning', not 'Error'"),
        ({"reason": ""}, "the reason of an event must be 1 to 128 bytes long, not 0"),
        ({"action": "é" * 65}, "the action of an event must be 1 to 128 bytes long, not 130"),
        ({"regarding": Pod()}, "an event must be about an object with a kind and a name"),
        ({"related": ObjectReference(name="x")}, "an event must be about an object with a kind and a name"),
        ({"regarding": pod(namespace="a/b")}, "namespace"),
    ],
    ids=["type", "reason", "action", "nameless", "kindless", "namespace"],
)
async def test_an_argument_that_a_server_would_reject_raises_immediately(
    client: Client, wrong: dict[str, Any], message: str
) -> None:
    recorder = EventRecorder(client, controller=CONTROLLER)
    arguments = {"regarding": WEB, "reason": "Tested", "action": "Testing", "note": "", **wrong}
    with pytest.raises(ValueError, match=message):
        recorder.event(arguments.pop("regarding"), **arguments)
    assert recorder.statistics().recorded == 0


async def test_an_argument_that_is_not_an_object_raises(client: Client) -> None:
    recorder = EventRecorder(client, controller=CONTROLLER)
    with pytest.raises(TypeError, match="str is not a kind"):
        recorder.event("web", reason="Tested", action="Testing", note="")  # type: ignore[arg-type]


@pytest.mark.parametrize("controller", ["", "a/b/c", "x" * 64, "Ex.com/x"])
async def test_a_controller_name_that_a_server_would_reject_raises_immediately(client: Client, controller: str) -> None:
    with pytest.raises(ValueError, match="the controller of an event recorder must be a name"):
        EventRecorder(client, controller=controller)


async def test_the_instance_defaults_to_the_host_name(client: Client) -> None:
    assert EventRecorder(client, controller="x").instance == socket.gethostname()
    assert EventRecorder(client, controller="example.com/x_Y.z", instance="i").instance == "i"
    with pytest.raises(ValueError, match="the reporting instance of an event must be 1 to 128 bytes long, not 0"):
        EventRecorder(client, controller="x", instance="")


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(EventRecorderOptions)][:-2])
def test_a_limit_or_duration_of_zero_raises(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*, not 0"):
        EventRecorderOptions(**{name: 0})


async def test_field_selectors_find_the_events_of_an_object(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """client-go: TestGetFieldSelector"""
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        record(recorder, "of web")
        record(recorder, "of web with another uid", regarding=pod(uid="67890"))
        record(recorder, "of another", regarding=pod("other"))
    events = client.api(Event, namespace="default")
    for selector, found in (
        ("regarding.kind=Pod,regarding.name=web", {"of web", "of web with another uid"}),
        ("regarding.kind=Pod,regarding.name=web,regarding.uid=12345", {"of web"}),
        ("regarding.kind=Node,regarding.name=web", set[str]()),
    ):
        assert {each.note for each in await events.list(field_selector=selector)} == found


# --- series -----------------------------------------------------------------------------------------------------------


async def test_an_equal_event_is_counted_in_the_series_of_the_first_one(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestEventSeriesf, TestRecordEventToSink"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        record(recorder)
        await trio.sleep(2)
        record(recorder)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 2)]
        assert transport.sent == [("POST", 0), ("PATCH", 2)]
        (event,) = stored(api_server)
        assert event.series is not None
        assert seconds_of(event.event_time) == 0
        assert seconds_of(event.series.last_observed_time) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"action": "Stopping"},
        {"reason": "Killed"},
        {"type": "Warning"},
        {"note": "something else"},
        {"regarding": pod("other")},
        {"regarding": pod(uid="another uid")},
        {
            "regarding": ObjectReference(
                api_version="v1",
                kind="Pod",
                name="web",
                namespace="default",
                uid="12345",
                field_path="spec.containers{b}",
            )
        },
        {"related": WEB},
    ],
    ids=["action", "reason", "type", "note", "object", "uid", "part", "related"],
)
async def test_an_event_that_differs_in_any_field_is_another_one(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, other: dict[str, Any]
) -> None:
    """client-go: TestEventSeriesf, TestMultiSinkCache, TestEventAggregatorByReasonFunc"""
    first = {"regarding": WEB, "type": "Normal", "reason": "Tested", "action": "Testing", "note": "it happened"}
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for each in (first, first | other, first):
            arguments = dict(each)
            recorder.event(arguments.pop("regarding"), **arguments)
            await trio.sleep(1)
    assert [count_of(event) for event in stored(api_server)] == [2, 1]


async def test_events_about_different_versions_of_an_object_are_equal(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for version in "123":
            record(recorder, regarding=pod(resource_version=version))
            await trio.sleep(1)
    (event,) = stored(api_server)
    assert count_of(event) == 3
    assert event.regarding.resource_version == "1"


async def test_equal_events_before_the_first_write_cost_one_request(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestEventSeriesWithEventSinkImplRace"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        for _ in range(5):
            record(recorder)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 5)]
    assert transport.methods == ["POST"]


async def test_an_event_that_repeats_during_its_write_is_written_again(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestEventSeriesWithEventSinkImplRace"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        transport.fault = lambda request: "slow"
        record(recorder)
        await trio.sleep(3)
        record(recorder)
        await trio.sleep(10)
        assert counts(api_server) == [("it happened", 2)]
        assert transport.sent == [("POST", 0), ("PATCH", 4)]


async def test_a_series_ends_after_six_idle_minutes(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestFinishSeries"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        for _ in range(10):
            record(recorder)
            await trio.sleep(100)
        assert counts(api_server) == [("it happened", 2)]  # at 1,000 s; the last was at 900 s
        await trio.sleep(259)
        assert counts(api_server) == [("it happened", 2)]
        assert recorder.statistics().waiting == 8
        await trio.sleep(2)
        assert counts(api_server) == [("it happened", 10)]
        (event,) = stored(api_server)
        assert event.series is not None
        assert seconds_of(event.series.last_observed_time) == 900
        assert transport.sent == [("POST", 0), ("PATCH", 100), ("PATCH", 1_260)]
        assert recorder.statistics().series == 0

        record(recorder)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 10), ("it happened", 1)]


async def test_a_series_of_one_event_ends_after_six_minutes_without_another_request(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestFinishSeries"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        record(recorder)
        await trio.sleep(359)
        record(recorder, "something else")
        assert recorder.statistics().series == 2
        await trio.sleep(2)
        assert recorder.statistics().series == 1
        await trio.sleep(1_000)
        assert recorder.statistics().series == 0
    assert transport.methods == ["POST", "POST"]


async def test_the_count_of_an_active_series_is_written_every_half_hour(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestRefreshExistingEventSeries"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        for _ in range(120):
            record(recorder)
            await trio.sleep(60)
        assert transport.sent == [("POST", 0), ("PATCH", 60), ("PATCH", 1_860), ("PATCH", 3_660), ("PATCH", 5_460)]
        assert counts(api_server) == [("it happened", 92)]
    assert counts(api_server) == [("it happened", 120)]


async def test_a_refresh_that_fails_does_not_end_the_series(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestRefreshExistingEventSeries"""
    async with recording(api_server, nursery) as (recorder, _), running(recorder):
        for at in range(31):
            if at == 30:
                api_server.fail_next(verb="patch", status=500)
            record(recorder)
            await trio.sleep(60)
        assert api_server.statistics().pending_faults == 1  # the refresh is half an hour after the second write
        record(recorder)
        await trio.sleep(60)
        assert counts(api_server) == [("it happened", 32)]
        assert recorder.statistics().series == 1


async def test_a_deleted_event_is_created_again_with_its_full_count(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestUpdateExpiredEvent"""
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        record(recorder)
        await trio.sleep(1)
        api_server.delete(stored(api_server)[0])
        record(recorder)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 2)]
        assert transport.methods == ["POST", "PATCH", "POST"]
        record(recorder)
    assert counts(api_server) == [("it happened", 3)]
    assert transport.methods[3:] == ["PATCH"]


async def test_recorders_count_independently(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    """client-go: TestMultiSinkCache"""
    async with (
        recording(api_server, nursery) as (first, _),
        recording(api_server, nursery) as (second, transport),
        running(first),
        running(second),
    ):
        record(first)
        await trio.sleep(1)
        record(second)
        record(second)
        await trio.sleep(1)
        assert counts(api_server) == [("it happened", 1), ("it happened", 2)]
    assert transport.methods == ["POST"]


# --- running ----------------------------------------------------------------------------------------------------------


async def test_events_are_queued_until_the_recorder_runs(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        record(recorder, "early")
        record(recorder, "later")
        await trio.sleep(10_000)
        record(recorder, "early")
        assert transport.sent == []
        assert recorder.statistics().waiting == 3
        async with running(recorder):
            await trio.sleep(1)
            assert counts(api_server) == [("early", 2), ("later", 1)]
            assert recorder.statistics().waiting == 0
            assert [seconds_of(event.event_time) for event in stored(api_server)] == [0, 0]


async def test_a_recorder_cannot_run_twice_at_the_same_time_but_again_later(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, transport):
        async with running(recorder):
            assert recorder.statistics().is_running
            with pytest.raises(
                trio.BusyResourceError, match=f"the event recorder of '{CONTROLLER}' is already running"
            ):
                await recorder.run()
            record(recorder)
        assert not recorder.statistics().is_running
        record(recorder)
        async with running(recorder):
            await trio.sleep(1)
        assert counts(api_server) == [("it happened", 2)]
        assert transport.methods == ["POST", "PATCH"]


async def test_the_repr_of_a_recorder_has_its_state(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    async with recording(api_server, nursery) as (recorder, _):
        record(recorder)
        assert repr(recorder) == f"<EventRecorder of '{CONTROLLER}', not running, 1 queued>"
        assert recorder.statistics().queued == recorder.statistics().series == 1
        async with running(recorder):
            await trio.sleep(1)
            assert repr(recorder) == f"<EventRecorder of '{CONTROLLER}', running, 0 queued>"


async def test_an_idle_recorder_sends_and_logs_nothing(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "trioformer")
    async with recording(api_server, nursery) as (recorder, transport), running(recorder):
        await trio.sleep(10_000)
    assert transport.sent == []
    assert caplog.records == []
    assert api_server.list(Event) == []
