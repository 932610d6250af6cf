"""``events``: formats, series, watches, and mistakes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import trio

from tests.support.cli import opener_of, run
from trioformer.cli._main import run_command
from trioformer.models import from_dict
from trioformer.models.core_v1 import Event
from trioformer.testing import APIServer


def event(name: str, kind: str = "Normal", **more: Any) -> Event:
    subject = {"kind": "Pod", "name": f"pod-{name}", "apiVersion": "v1"}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
    head = {"metadata": {"name": name, "namespace": "default"}, "involvedObject": subject}
    return from_dict(Event, {**head, "type": kind, "reason": "Tested", "message": f"of {name}", **times, **more})


async def watched(server: APIServer, *arguments: str) -> str:
    """Return what a watch prints of an event that there is, of two that come, and of one that goes."""
    out = io.StringIO()
    server.create(event("old"))
    async with server.open_client() as client, trio.open_nursery() as nursery:
        given = ["-s", server.config.server, "events", "--watch", *arguments]
        nursery.start_soon(run_command, given, out, io.StringIO(), {}, opener_of(server.http_transport()))
        await trio.sleep(1)
        api = client.api(Event, "default")
        await api.create(event("new"))
        await api.create(event("bad", "Warning"))
        await trio.sleep(1)
        await api.delete("old")
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    return out.getvalue()


async def test_a_watch_prints_each_event_once(api_server: APIServer, autojump_clock: object) -> None:
    lines = [line.split() for line in (await watched(api_server)).splitlines()]
    assert lines[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert [line[1:] for line in lines[1:]] == [
        ["Normal", "Tested", "Pod/pod-old", "of", "old"],
        ["Normal", "Tested", "Pod/pod-new", "of", "new"],
        ["Warning", "Tested", "Pod/pod-bad", "of", "bad"],
    ]


async def test_a_watch_prints_events_of_a_type_and_in_a_format(api_server: APIServer, autojump_clock: object) -> None:
    assert await watched(api_server, "--type=Normal", "-o", "name", "-A") == "event/old\nevent/new\n"


async def test_a_watch_has_events_of_one_object(api_server: APIServer, autojump_clock: object) -> None:
    text = await watched(api_server, "--for=pod/pod-bad", "-A")
    assert [line.split()[0::5] for line in text.splitlines()[1:]] == [["default", "of"]]


async def test_several_events_are_one_list(api_server: APIServer) -> None:
    api_server.create(event("a"))
    listed = json.loads((await run(api_server, "events", "-o", "json")).out)
    assert [(each["kind"], each["metadata"]["name"]) for each in listed["items"]] == [("Event", "a")]


async def test_a_series_says_how_often_it_happened(api_server: APIServer) -> None:
    series = {"count": 7, "lastObservedTime": "2026-01-01T00:10:00.000000Z"}
    api_server.create(event("a", eventTime="2026-01-01T00:00:00.000000Z", series=series))
    api_server.create(event("b", lastTimestamp="2026-01-01T00:05:00Z"))
    _, *rows = (await run(api_server, "events")).out.splitlines()
    assert [row.split()[-1] for row in rows] == ["b", "a"]
    assert "(x7 over " in rows[1]
    assert "over" not in rows[0]


@pytest.mark.parametrize("subject", ["pod/a/b", "foo/a"])
async def test_mistakes_are_errors(api_server: APIServer, subject: str) -> None:
    result = await run(api_server, "events", f"--for={subject}")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert subject.partition("/")[2] in result.err or "foo" in result.err


async def test_without_events_there_is_a_note(api_server: APIServer) -> None:
    assert (await run(api_server, "events")).err == "no events found in namespace default\n"
    assert (await run(api_server, "events", "-A")).err == "no events found\n"
