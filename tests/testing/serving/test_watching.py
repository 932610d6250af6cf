"""Watches of the embedded API server, on virtual time."""

from __future__ import annotations

import httpx
import pytest
import trio
import trio.testing

from tests.support.raw_requests import TABLE, config_map, pod, running, watching
from trioformer.testing import APIServer

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def now(server: APIServer) -> int:
    return server.statistics().revision


@pytest.fixture
async def server(nursery: trio.Nursery) -> APIServer:
    server = APIServer()
    await nursery.start(server.run)
    return server


# --- where a watch begins -------------------------------------------------------------------------------------------


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
async def test_a_watch_from_nowhere_begins_with_what_there_is(server: APIServer, query: dict[str, str]) -> None:
    server.create(config_map("b"))
    server.create(config_map("a"))
    server.patch("configmaps", "b", {"data": {"x": "y"}})
    async with watching(server, CONFIG_MAPS, **query) as watch:
        assert await watch.events(2) == [("ADDED", "a"), ("ADDED", "b")]
        server.create(config_map("c"))
        assert await watch.events(1) == [("ADDED", "c")]


async def test_nothing_that_happens_while_a_watch_opens_is_missed(server: APIServer) -> None:
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


async def test_a_watch_list_without_bookmarks_has_no_end_mark(server: APIServer) -> None:
    server.create(pod("a"))
    listed = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    async with watching(server, PODS, **listed) as watch:
        server.create(pod("b"))
        assert await watch.events(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_list_from_the_future_gets_an_error_event(server: APIServer) -> None:
    listed = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "9999"}
    async with watching(server, PODS, **listed) as watch:
        ((kind, status),) = await watch.rest()
        assert (kind, status["code"]) == ("ERROR", 504)
        assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_initial_events_can_be_declined(server: APIServer) -> None:
    server.create(pod("a"))
    declined = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "0"}
    async with watching(server, PODS, **declined) as watch:
        server.create(pod("b"))
        assert await watch.events(1) == [("ADDED", "b")]


async def test_a_watch_from_the_future_waits_for_it(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS, resourceVersion=now(server) + 2) as watch:
        for name in ("a", "b", "c"):
            server.create(config_map(name))
        assert await watch.events(1) == [("ADDED", "c")]


# --- 410 ------------------------------------------------------------------------------------------------------------


async def test_a_forgotten_revision_is_an_error_event_in_the_stream(server: APIServer) -> None:
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


async def test_a_forgotten_revision_can_be_an_http_status() -> None:
    server = APIServer(expired_as_status=True)
    start = now(server)
    server.compact()
    async with running(server) as http:
        answer = await http.get(f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
        assert answer.status_code == 410
        assert answer.json()["reason"] == "Expired"


async def test_history_is_forgotten_when_it_is_too_long(nursery: trio.Nursery) -> None:
    server = APIServer(history_limit=4)
    await nursery.start(server.run)
    start = now(server)
    for number in range(9):
        server.create(config_map(f"cm-{number}"))
    async with watching(server, CONFIG_MAPS, resourceVersion=start) as watch:
        assert [kind for kind, _ in await watch.rest()] == ["ERROR"]


async def test_a_watch_that_is_up_to_date_outlives_compaction(server: APIServer) -> None:
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


async def test_only_the_namespace_is_watched(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS) as here, watching(server, "/api/v1/configmaps") as everywhere:
        server.create(config_map("elsewhere", namespace="kube-system"))
        server.create(config_map("here"))
        assert await here.events(1) == [("ADDED", "here")]
        assert await everywhere.events(2) == [("ADDED", "elsewhere"), ("ADDED", "here")]


async def test_leaving_a_selection_is_a_deletion_and_entering_it_an_addition(server: APIServer) -> None:
    server.create(pod("a", labels={"app": "web"}))
    server.create(pod("b", labels={"app": "db"}))
    async with watching(server, PODS, labelSelector="app=web", resourceVersion=now(server)) as watch:
        server.patch("pods", "b", {"metadata": {"labels": {"x": "y"}}})
        server.patch("pods", "a", {"metadata": {"labels": {"app": "db"}}, "spec": {"nodeName": "n"}})
        kind, left = await watch.event()
        assert kind == "DELETED"
        # The state that the watcher knows, under the revision of the change.
        assert left["metadata"]["labels"] == {"app": "web"}
        assert left["metadata"]["resourceVersion"] == str(now(server))
        assert "nodeName" not in left["spec"]
        server.patch("pods", "a", {"metadata": {"labels": {"y": "z"}}})
        server.patch("pods", "a", {"metadata": {"labels": {"app": "web"}}})
        server.patch("pods", "a", {"metadata": {"labels": {"z": "z"}}})
        server.delete("pods", "b")
        server.delete("pods", "a")
        assert await watch.events(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_one_object_is_watched_by_name(server: APIServer) -> None:
    server.create(pod("a"))
    server.create(pod("b"))
    async with watching(server, PODS, fieldSelector="metadata.name=b") as watch:
        server.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})
        server.delete("pods", "b")
        assert await watch.events(2) == [("ADDED", "b"), ("DELETED", "b")]


# --- time -----------------------------------------------------------------------------------------------------------


async def test_a_watch_ends_cleanly_after_its_timeout(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    server.create(pod("a"))
    async with watching(server, PODS, timeoutSeconds=300) as watch:
        assert [kind for kind, _ in await watch.rest()] == ["ADDED"]
    assert trio.current_time() == 300


async def test_a_watch_without_timeout_ends_after_the_servers(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    async with watching(server, PODS) as watch:
        assert await watch.rest() == []
    assert trio.current_time() == 1_800


@pytest.mark.parametrize("happens", ["something", "nothing"])
async def test_bookmarks_come_every_minute_and_before_the_end(
    autojump_clock: trio.testing.MockClock, server: APIServer, happens: str
) -> None:
    """Also of a kind that nothing happens to: kube-apiserver 1.36.3 was seen to send them after 60, 120 and 148 s."""
    seen: list[tuple[float, str, str]] = []
    async with watching(server, PODS, timeoutSeconds=150, allowWatchBookmarks="true") as watch:
        if happens == "something":
            server.create(config_map())  # somebody else's write moves the revision on
        while True:
            try:
                kind, obj = await watch.event()
            except StopAsyncIteration:
                break
            seen.append((trio.current_time(), kind, obj["metadata"]["resourceVersion"]))
    revision = str(now(server))
    assert seen == [(60, "BOOKMARK", revision), (120, "BOOKMARK", revision), (148, "BOOKMARK", revision)]
    assert trio.current_time() == 150


async def test_bookmarks_are_not_sent_when_they_are_not_allowed(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    async with watching(server, PODS, timeoutSeconds=150) as watch:
        server.create(config_map())
        assert await watch.rest() == []


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


async def test_a_table_watch_says_its_columns_once(server: APIServer) -> None:
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
async def test_bookmarks_come_in_every_form(
    autojump_clock: trio.testing.MockClock, server: APIServer, kind: str, expected: str
) -> None:
    accept = f"application/json;as={kind};v=v1;g=meta.k8s.io"
    async with watching(server, PODS, accept=accept, timeoutSeconds=62, allowWatchBookmarks="true") as watch:
        server.create(config_map())
        ((_, obj),) = await watch.rest()
    assert (obj["kind"], obj["metadata"]) == (expected, {"resourceVersion": str(now(server))})


# --- ends that a test orders ----------------------------------------------------------------------------------------


async def test_watches_are_ended_cleanly_at_once(server: APIServer) -> None:
    async with watching(server, PODS) as watch, watching(server, CONFIG_MAPS, resourceVersion=now(server)) as other:
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().open_watches == 2
        server.create(pod("unsent"))
        assert server.disconnect_watches(kind="pods") == 1
        assert await watch.rest() == []
        assert server.statistics().open_watches == 1
        server.create(config_map())
        assert await other.events(1) == [("ADDED", "cm")]


async def test_watches_are_reset(server: APIServer) -> None:
    async with watching(server, PODS) as watch:
        await trio.testing.wait_all_tasks_blocked()
        assert server.disconnect_watches(how="reset") == 1
        with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
            await watch.rest()


async def test_watches_end_with_an_error_event(server: APIServer) -> None:
    async with watching(server, PODS) as watch:
        await trio.testing.wait_all_tasks_blocked()
        server.disconnect_watches(status=500)
        ((kind, status),) = await watch.rest()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 500, "InternalError")


async def test_a_stalled_watch_is_silent_for_ever(autojump_clock: trio.testing.MockClock, server: APIServer) -> None:
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


async def test_a_watch_can_end_in_the_middle_of_its_initial_events(server: APIServer) -> None:
    for number in range(100):
        server.create(config_map(f"cm-{number}"))
    async with watching(server, CONFIG_MAPS) as watch:
        await watch.events(1)
        server.disconnect_watches()
        assert len(await watch.rest()) < 50  # what was buffered


async def test_a_client_that_leaves_ends_its_watch(autojump_clock: trio.testing.MockClock, server: APIServer) -> None:
    async with watching(server, PODS) as watch:
        with trio.move_on_after(1):
            await watch.event()
    await trio.testing.wait_all_tasks_blocked()
    assert server.statistics().open_watches == 0


async def test_a_slow_reader_costs_no_memory_and_misses_nothing(server: APIServer) -> None:
    async with watching(server, CONFIG_MAPS) as watch:
        for number in range(500):
            server.create(config_map(f"cm-{number:03}"))
        await trio.testing.wait_all_tasks_blocked()  # the buffer is full, the watch waits
        assert await watch.events(500) == [("ADDED", f"cm-{number:03}") for number in range(500)]


async def test_a_long_stretch_of_foreign_changes_lets_others_run(server: APIServer) -> None:
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
