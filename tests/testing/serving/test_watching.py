"""Watches of the embedded API server, on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from tests.support.raw_requests import TABLE, config_map, pod, running, watching
from trioformer.testing import APIServer
from trioformer.testing._serving import _messages, _rendering, _watching

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def now(server: APIServer) -> int:
    return server.statistics().revision


@pytest.fixture
async def server(nursery: trio.Nursery) -> APIServer:
    server = APIServer()
    await nursery.start(server.run)
    return server


# --- the beginning of a watch ---------------------------------------------------------------------------------------


async def test_a_watch_resumes_after_a_revision(server: APIServer) -> None:
    server.create(config_map("before"))
    start = now(server)
    server.create(config_map("a"))
    server.patch("configmaps", "a", {"data": {"x": "y"}})
    async with watching(server, CONFIG_MAPS, resourceVersion=start) as watch:
        assert await watch.events(2) == [("ADDED", "a"), ("MODIFIED", "a")]
        server.delete("configmaps", "a")
        kind, last = await watch.event()
        assert (kind, last["kind"], last["apiVersion"]) == ("DELETED", "ConfigMap", "v1")
        assert last["metadata"]["resourceVersion"] == str(now(server))
        assert last["data"] == {"x": "y"}


@pytest.mark.parametrize("query", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}])
async def test_a_watch_without_a_revision_begins_with_the_current_objects(
    server: APIServer, query: dict[str, str]
) -> None:
    server.create(config_map("b"))
    server.create(config_map("a"))
    server.patch("configmaps", "b", {"data": {"x": "y"}})
    async with watching(server, CONFIG_MAPS, **query) as watch:
        assert await watch.events(2) == [("ADDED", "a"), ("ADDED", "b")]
        server.create(config_map("c"))
        assert await watch.events(1) == [("ADDED", "c")]


async def test_no_change_is_missed_while_a_watch_opens(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS) as watch:
        server.create(config_map("a"))
        server.delete("configmaps", "a")
        assert await watch.events(2) == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_watch_list_ends_its_initial_events_with_a_bookmark(server: APIServer) -> None:
    server.create(pod("a"))
    listed = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    async with watching(server, PODS, **listed) as watch:
        assert await watch.events(1) == [("ADDED", "a")]
        end = await watch.chunk()
        assert end == (
            b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d",'
            b'"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}\n'
            % now(server)
        )
        server.create(pod("b"))
        assert await watch.events(1) == [("ADDED", "b")]


async def test_a_watch_list_without_bookmarks_does_not_mark_the_end(server: APIServer) -> None:
    server.create(pod("a"))
    listed = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    async with watching(server, PODS, **listed) as watch:
        server.create(pod("b"))
        assert await watch.events(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_list_from_a_future_revision_gets_an_error_event(server: APIServer) -> None:
    listed = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "9999"}
    async with watching(server, PODS, **listed) as watch:
        ((kind, status),) = await watch.rest()
        assert (kind, status["code"]) == ("ERROR", 504)
        assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_watch_without_initial_events_sends_only_changes(server: APIServer) -> None:
    server.create(pod("a"))
    declined = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "0"}
    async with watching(server, PODS, **declined) as watch:
        server.create(pod("b"))
        assert await watch.events(1) == [("ADDED", "b")]


async def test_a_watch_from_a_future_revision_waits_for_it(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS, resourceVersion=now(server) + 2) as watch:
        for name in ("a", "b", "c"):
            server.create(config_map(name))
        assert await watch.events(1) == [("ADDED", "c")]


# --- 410 ------------------------------------------------------------------------------------------------------------


async def test_a_watch_from_a_compacted_revision_gets_an_error_event(server: APIServer) -> None:
    server.create(config_map())
    start = now(server)
    server.compact()
    async with watching(server, CONFIG_MAPS, resourceVersion=start) as watch:
        assert watch.response.status_code == 200
        ((kind, status),) = await watch.rest()
        assert kind == "ERROR"
        assert status == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"too old resource version: {start} ({now(server)})",
            "reason": "Expired",
            "code": 410,
        }


async def test_a_watch_from_a_compacted_revision_can_get_an_http_status() -> None:
    server = APIServer(expired_as_status=True)
    start = now(server)
    server.compact()
    async with running(server) as http:
        response = await http.get(f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
        assert response.status_code == 410
        assert response.json()["reason"] == "Expired"


async def test_history_beyond_its_limit_is_compacted(nursery: trio.Nursery) -> None:
    server = APIServer(history_limit=4)
    await nursery.start(server.run)
    start = now(server)
    for number in range(9):
        server.create(config_map(f"cm-{number}"))
    async with watching(server, CONFIG_MAPS, resourceVersion=start) as watch:
        assert [kind for kind, _ in await watch.rest()] == ["ERROR"]


async def test_a_watch_that_is_up_to_date_continues_after_compaction(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS) as watch:
        server.create(config_map("a"))
        assert await watch.events(1) == [("ADDED", "a")]
        await trio.testing.wait_all_tasks_blocked()
        server.compact()
        server.create(config_map("b"))
        assert await watch.events(1) == [("ADDED", "b")]


async def test_a_watch_that_compaction_overtakes_gets_an_error_event(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS) as watch:
        await trio.testing.wait_all_tasks_blocked()
        server.create(config_map("a"))
        server.compact()
        events = await watch.rest()
        assert [(kind, status["code"]) for kind, status in events] == [("ERROR", 410)]


# --- selectors ------------------------------------------------------------------------------------------------------


async def test_leaving_a_selection_is_a_deletion_and_entering_it_an_addition(server: APIServer) -> None:
    server.create(pod("a", labels={"app": "web"}))
    server.create(pod("b", labels={"app": "db"}))
    async with watching(server, PODS, labelSelector="app=web", resourceVersion=now(server)) as watch:
        server.patch("pods", "b", {"metadata": {"labels": {"x": "y"}}})
        server.patch("pods", "a", {"metadata": {"labels": {"app": "db"}}, "spec": {"nodeName": "n"}})
        kind, left = await watch.event()
        assert kind == "DELETED"
        # The state before the change, with the revision of the change.
        assert left["metadata"]["labels"] == {"app": "web"}
        assert left["metadata"]["resourceVersion"] == str(now(server))
        assert "nodeName" not in left["spec"]
        server.patch("pods", "a", {"metadata": {"labels": {"y": "z"}}})
        server.patch("pods", "a", {"metadata": {"labels": {"app": "web"}}})
        server.patch("pods", "a", {"metadata": {"labels": {"z": "z"}}})
        server.delete("pods", "b")
        server.delete("pods", "a")
        assert await watch.events(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


# --- time -----------------------------------------------------------------------------------------------------------


async def test_a_watch_ends_cleanly_after_its_timeout(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    server.create(pod("a"))
    async with watching(server, PODS, timeoutSeconds=300) as watch:
        assert [kind for kind, _ in await watch.rest()] == ["ADDED"]
    assert trio.current_time() == 300


async def test_a_watch_without_timeout_ends_after_that_of_the_server(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    async with watching(server, PODS) as watch:
        assert await watch.rest() == []
    assert trio.current_time() == 1_800


@pytest.mark.parametrize("change", ["another kind", "none"])
async def test_bookmarks_are_sent_every_minute_and_before_the_end(
    autojump_clock: trio.testing.MockClock, server: APIServer, change: str
) -> None:
    """Also for a kind without changes: kube-apiserver 1.36.3 was seen to send them after 60, 120 and 148 s."""
    seen: list[tuple[float, str, str]] = []
    async with watching(server, PODS, timeoutSeconds=150, allowWatchBookmarks="true") as watch:
        if change == "another kind":
            server.create(config_map())  # a write of another kind increases the revision
        while True:
            try:
                kind, obj = await watch.event()
            except StopAsyncIteration:
                break
            seen.append((trio.current_time(), kind, obj["metadata"]["resourceVersion"]))
    revision = str(now(server))
    assert seen == [(60, "BOOKMARK", revision), (120, "BOOKMARK", revision), (148, "BOOKMARK", revision)]
    assert trio.current_time() == 150


async def test_a_very_short_watch_has_no_bookmark(autojump_clock: trio.testing.MockClock, server: APIServer) -> None:
    async with watching(server, PODS, timeoutSeconds=2, allowWatchBookmarks="true") as watch:
        server.create(config_map())
        assert await watch.rest() == []


async def test_the_bookmark_period_can_be_chosen(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    server = APIServer(bookmark_period=5, watch_timeout=13)
    await nursery.start(server.run)
    async with watching(server, CONFIG_MAPS, allowWatchBookmarks="true") as watch:
        server.create(pod())
        bookmarks = await watch.rest()
    assert [obj for _, obj in bookmarks] == [
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": str(now(server))}}
    ] * 3


# --- tables and metadata --------------------------------------------------------------------------------------------


async def test_a_table_watch_sends_the_column_definitions_once(server: APIServer) -> None:
    server.create(pod("a"))
    async with watching(server, PODS, accept=TABLE) as watch:
        _, first = await watch.event()
        server.delete("pods", "a")
        _, second = await watch.event()
    assert [column["name"] for column in first["columnDefinitions"]][:2] == ["Name", "Ready"]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][:3] == ["a", "0/1", "Terminating"]
    assert second["metadata"] == {"resourceVersion": str(now(server))}


@pytest.mark.parametrize(("kind", "expected"), [("Table", "Table"), ("PartialObjectMetadata", "PartialObjectMetadata")])
async def test_bookmarks_are_sent_in_every_format(
    autojump_clock: trio.testing.MockClock, server: APIServer, kind: str, expected: str
) -> None:
    accept = f"application/json;as={kind};v=v1;g=meta.k8s.io"
    async with watching(server, PODS, accept=accept, timeoutSeconds=62, allowWatchBookmarks="true") as watch:
        server.create(config_map())
        ((_, obj),) = await watch.rest()
    assert (obj["kind"], obj["metadata"]) == (expected, {"resourceVersion": str(now(server))})


# --- ends caused by a test ------------------------------------------------------------------------------------------


async def test_watches_can_be_ended_immediately(server: APIServer) -> None:
    async with watching(server, PODS) as watch, watching(server, CONFIG_MAPS, resourceVersion=now(server)) as other:
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().open_watches == 2
        server.create(pod("unsent"))
        assert server.disconnect_watches(kind="pods") == 1
        assert await watch.rest() == []
        assert server.statistics().open_watches == 1
        server.create(config_map())
        assert await other.events(1) == [("ADDED", "cm")]


async def test_watches_can_be_reset(server: APIServer) -> None:
    async with watching(server, PODS) as watch:
        await trio.testing.wait_all_tasks_blocked()
        assert server.disconnect_watches(how="reset") == 1
        with pytest.raises(httpx.RemoteProtocolError, match="before the end of the body"):
            await watch.rest()


async def test_watches_can_be_ended_with_an_error_event(server: APIServer) -> None:
    async with watching(server, PODS) as watch:
        await trio.testing.wait_all_tasks_blocked()
        server.disconnect_watches(status=500)
        ((kind, status),) = await watch.rest()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 500, "InternalError")


async def test_a_stalled_watch_sends_nothing_more(autojump_clock: trio.testing.MockClock, server: APIServer) -> None:
    async with watching(server, PODS, timeoutSeconds=10) as watch:
        await trio.testing.wait_all_tasks_blocked()
        server.disconnect_watches(how="stall")
        server.create(pod())
        with trio.move_on_after(10_000) as scope:
            await watch.event()
        assert scope.cancelled_caught
        assert server.statistics().open_watches == 1
    await trio.testing.wait_all_tasks_blocked()
    assert server.statistics().open_watches == 0


async def test_a_watch_can_be_ended_during_its_initial_events(server: APIServer) -> None:
    for number in range(100):
        server.create(config_map(f"cm-{number}"))
    async with watching(server, CONFIG_MAPS) as watch:
        await watch.events(1)
        server.disconnect_watches()
        assert len(await watch.rest()) < 50  # what was buffered


async def test_a_slow_reader_misses_no_event(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS) as watch:
        for number in range(500):
            server.create(config_map(f"cm-{number:03}"))
        await trio.testing.wait_all_tasks_blocked()  # the buffer is full and the watch blocks
        assert await watch.events(500) == [("ADDED", f"cm-{number:03}") for number in range(500)]


async def test_many_unselected_changes_do_not_block_other_tasks(server: APIServer) -> None:
    start = now(server)
    for number in range(300):
        server.create(config_map(f"cm-{number}", namespace="kube-system"))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await trio.lowlevel.checkpoint()
            ticks += 1

    async with watching(server, CONFIG_MAPS, resourceVersion=start) as watch, trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        server.create(config_map("mine"))
        assert await watch.events(1) == [("ADDED", "mine")]
        assert ticks > 100
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("accept", "encoder"),
    [("application/json", "object_json"), (METADATA, "_partial"), ("application/vnd.kubernetes.protobuf", "object_of")],
)
async def test_an_event_is_encoded_once_for_all_watches(
    server: APIServer, monkeypatch: pytest.MonkeyPatch, accept: str, encoder: str
) -> None:
    calls: list[str] = []

    def counted(module: Any, name: str) -> None:
        encode: Callable[..., Any] = getattr(module, name)

        def count(*args: Any) -> Any:
            calls.append(name)
            return encode(*args)

        monkeypatch.setattr(module, name, count)

    counted(_messages if encoder == "object_of" else _rendering, encoder)
    counted(_watching, "body_of")
    async with AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(
                watching(server, CONFIG_MAPS, accept=accept, resourceVersion=now(server), labelSelector="a")
            )
        await trio.testing.wait_all_tasks_blocked()
        calls.clear()
        server.create({**config_map("x"), "metadata": {"name": "x", "labels": {"a": "b"}}})
        await trio.testing.wait_all_tasks_blocked()
        assert calls.count(encoder) == 1
        server.patch("configmaps", "x", {"metadata": {"labels": None}})
        await trio.testing.wait_all_tasks_blocked()
        assert calls.count(encoder) == 2
        assert calls.count("body_of") == 1
