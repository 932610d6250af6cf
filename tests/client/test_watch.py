"""Watches: events, errors, and the end of a watch."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support.clients import client_of
from tests.support.scripted_http import (
    CHUNKED,
    Loopback,
    Step,
    chunk,
    response,
    suspended_generators,
)
from trioformer.client import Client, WatchEvent, WatchStream, open_client
from trioformer.errors import (
    ConnectionFailedError,
    ExpiredError,
    UnexpectedResponseError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod


def event(type_: str, name: str = "web-0", version: int = 1) -> bytes:
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": str(version)}}
    return json.dumps({"type": type_, "object": obj}, separators=(",", ":")).encode() + b"\n"


def error(code: int, reason: str, **fields: object) -> bytes:
    status = {"kind": "Status", "code": code, "reason": reason, "message": "no", **fields}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def words(events: list[WatchEvent[Pod]]) -> list[str]:
    return [f"{type_} {pod.name}@{pod.resource_version}" for type_, pod in events]


@asynccontextmanager
async def watching(*steps: Step) -> AsyncIterator[WatchStream[Pod]]:
    async with client_of(response(200, *steps)) as (client, _), client.api(Pod, "shop").watch() as events:
        yield events


async def test_events_arrive_one_by_one_until_the_server_ends_the_watch() -> None:
    """Of every type; the end of the body is the end, without an error.

    client-go: TestDecoder, TestDecoder_SourceClose
    """
    both = event("ADDED") + event("MODIFIED", version=2)
    async with watching(both[:30], both[30:], event("DELETED", version=3) + event("BOOKMARK", "", 9)) as events:
        seen = [found async for found in events]
    assert words(seen) == ["ADDED web-0@1", "MODIFIED web-0@2", "DELETED web-0@3", "BOOKMARK @9"]
    assert all(type(found.object) is Pod for found in seen)


async def test_a_batch_has_all_complete_events() -> None:
    third = event("ADDED", "c")
    async with watching(event("ADDED", "a") + event("ADDED", "b") + third[:9], third[9:-1], third[-1:]) as events:
        assert words(await events.receive_batch()) == ["ADDED a@1", "ADDED b@1"]
        assert words(await events.receive_batch()) == ["ADDED c@1"]
        for _ in range(2):
            with pytest.raises(trio.EndOfChannel):
                await events.receive_batch()


async def test_a_watch_sends_its_options() -> None:
    async with client_of(response(200), response(200), response(200)) as (client, transport):
        pods = client.api(Pod, "shop")
        async with pods.watch(
            resource_version="5",
            label_selector={"app": "web"},
            field_selector="spec.nodeName=n",
            timeout_seconds=300,
            allow_bookmarks=True,
            send_initial_events=True,
        ):
            pass
        async with pods.watch(send_initial_events=False):
            pass
        async with client.api(Pod).watch() as events:
            assert repr(events) == "<WatchStream: watch pods>"
    assert [dict(request.url.params) for request in transport.requests] == [
        {
            "watch": "true",
            "labelSelector": "app=web",
            "fieldSelector": "spec.nodeName=n",
            "resourceVersion": "5",
            "resourceVersionMatch": "NotOlderThan",
            "timeoutSeconds": "300",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
        },
        {"watch": "true", "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "false"},
        {"watch": "true"},
    ]
    assert transport.requests[0].extensions["timeout"]["read"] is None
    assert transport.requests[0].headers["accept-encoding"] == "identity"


async def test_an_error_event_is_raised_after_earlier_events_and_again() -> None:
    body = event("ADDED", "a") + error(410, "Expired") + event("ADDED", "b")
    async with watching(body, None) as events:
        assert words(await events.receive_batch()) == ["ADDED a@1"]
        for _ in range(2):
            with pytest.raises(ExpiredError, match=r"^watch pods in namespace shop: no"):
                await events.receive_batch()
        with pytest.raises(ExpiredError):
            await anext(events)


async def test_half_an_event_at_the_end_is_a_failed_connection() -> None:
    async with watching(event("ADDED", "a") + b'{"type":"ADD') as events:
        assert words(await events.receive_batch()) == ["ADDED a@1"]
        with pytest.raises(ConnectionFailedError, match="in the middle of an event"):
            await events.receive_batch()


async def test_a_lost_connection_raises_after_earlier_events() -> None:
    async with watching(event("ADDED", "a"), httpx.ReadError("reset")) as events:
        assert (await anext(events)).object.name == "a"
        for _ in range(2):
            with pytest.raises(ConnectionFailedError):
                await anext(events)


async def test_another_success_code_of_a_watch_is_unexpected() -> None:
    for code in [201, 204, 302]:
        async with client_of(response(code, "x")) as (client, _):
            text = rf"^unexpected response \(HTTP {code}\) to watch pods in namespace shop: "
            with pytest.raises(UnexpectedResponseError, match=text):
                async with client.api(Pod, "shop").watch():
                    pass


async def test_a_watch_may_be_silent_for_hours(autojump_clock) -> None:
    async with watching(event("ADDED", "a"), 7_200.0, event("ADDED", "b"), None) as events:
        assert words(await events.receive_batch()) == ["ADDED a@1"]
        assert words(await events.receive_batch()) == ["ADDED b@1"]
        assert trio.current_time() == pytest.approx(7_200.0)


async def test_a_watch_without_a_response_fails_after_its_timeout(autojump_clock) -> None:
    async with client_of(86_400.0, response(200)) as (client, _):
        with pytest.raises(
            ConnectionFailedError,
            match=r"^watch pods in namespace shop: https://api\.test: no response within 330 s; watch again$",
        ):
            async with client.api(Pod, "shop").watch(timeout_seconds=300):
                pass
        assert trio.current_time() == pytest.approx(330.0)


async def test_a_closed_watch_raises_after_its_received_events() -> None:
    async with watching(event("ADDED", "a") + event("ADDED", "b"), None) as events:
        await anext(events)
    assert words(await events.receive_batch()) == ["ADDED b@1"]  # an event that has arrived is not lost
    with pytest.raises(trio.ClosedResourceError):
        await events.receive_batch()


async def test_two_tasks_cannot_receive_at_the_same_time(nursery: trio.Nursery) -> None:
    async with watching(None) as events:
        nursery.start_soon(events.receive_batch)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await events.receive_batch()
        nursery.cancel_scope.cancel()


async def test_receiving_can_be_cancelled_and_loses_no_event() -> None:
    async with watching(event("ADDED", "a") + event("ADDED", "b"), event("ADDED", "c"), None) as events:
        assert (await anext(events)).object.name == "a"
        for receive in (events.__anext__, events.receive_batch):
            with trio.CancelScope() as scope:
                scope.cancel()
                await receive()
            assert scope.cancelled_caught
        assert (await anext(events)).object.name == "b"
        assert (await anext(events)).object.name == "c"


async def test_a_reader_of_many_events_lets_other_tasks_run(mock_clock: trio.testing.MockClock) -> None:
    """The clock stands still, so it is the number of events that makes it let go, and not the time that they take."""
    body = b"".join(event("MODIFIED", version=number) for number in range(2_000))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with watching(body) as events, trio.open_nursery() as nursery:
        await anext(events)
        nursery.start_soon(count)
        async for _ in events:
            pass
        nursery.cancel_scope.cancel()
    assert turns >= 1


async def test_each_end_of_a_watch_block_closes_the_connection() -> None:
    server = Loopback(lambda _: [CHUNKED, chunk(event("ADDED", "a")), None])
    error_of_block = KeyError("mine")

    async def leave_by_error(client: Client) -> None:
        async with client.api(Pod, "shop").watch() as events:
            async for _ in events:
                raise error_of_block

    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_client(ClusterConfig(server=server.url)) as client:
            async with client.api(Pod, "shop").watch() as events:
                async for _ in events:
                    break
            with pytest.raises(KeyError) as caught:
                await leave_by_error(client)
            assert caught.value is error_of_block
            with trio.CancelScope() as scope:
                async with client.api(Pod, "shop").watch() as events:
                    async for _ in events:
                        scope.cancel()  # takes effect while the next one is waited for
            assert scope.cancelled_caught
            assert client._transport._generations.present.watches.connections == []  # type: ignore[attr-defined]  # of Connections
            assert suspended_generators() == []
        nursery.cancel_scope.cancel()
    assert server.connections == 3
