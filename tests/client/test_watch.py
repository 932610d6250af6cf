"""Watches: their events, their ends, and how they are left."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support.scripted_http import (
    CHUNKED,
    END,
    InMemory,
    Loopback,
    Reply,
    Step,
    answer,
    chunk,
    suspended_generators,
)
from trioformer.client import Client, WatchEvent, WatchStream, open_client
from trioformer.errors import (
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    StatusError,
    TooManyRequestsError,
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
async def client_of(*replies: Reply) -> AsyncIterator[tuple[Client, InMemory]]:
    carrier = InMemory(list(replies))
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=carrier) as client:
        yield client, carrier


@asynccontextmanager
async def watching(*steps: Step) -> AsyncIterator[WatchStream[Pod]]:
    async with client_of(answer(200, *steps)) as (client, _), client.api(Pod, "shop").watch() as events:
        yield events


async def test_events_come_one_by_one_until_the_server_ends_the_watch() -> None:
    both = event("ADDED") + event("MODIFIED", version=2)
    async with watching(both[:30], both[30:], event("DELETED", version=3) + event("BOOKMARK", "", 9)) as events:
        seen = [found async for found in events]
    assert words(seen) == ["ADDED web-0@1", "MODIFIED web-0@2", "DELETED web-0@3", "BOOKMARK @9"]
    assert all(type(found.object) is Pod for found in seen)


async def test_a_batch_is_everything_that_has_been_completed() -> None:
    third = event("ADDED", "c")
    async with watching(event("ADDED", "a") + event("ADDED", "b") + third[:9], third[9:-1], third[-1:]) as events:
        assert words(await events.receive_batch()) == ["ADDED a@1", "ADDED b@1"]
        assert words(await events.receive_batch()) == ["ADDED c@1"]
        for _ in range(2):
            with pytest.raises(trio.EndOfChannel):
                await events.receive_batch()


async def test_batches_and_single_events_can_be_mixed() -> None:
    async with watching(event("ADDED", "a") + event("ADDED", "b") + event("ADDED", "c"), event("ADDED", "d")) as events:
        assert (await anext(events)).object.name == "a"
        assert words(await events.receive_batch()) == ["ADDED b@1", "ADDED c@1"]
        assert (await anext(events)).object.name == "d"
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_what_is_asked_of_a_watch() -> None:
    async with client_of(answer(200), answer(200), answer(200)) as (client, carrier):
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
    assert [dict(request.url.params) for request in carrier.requests] == [
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
    assert carrier.requests[0].extensions["timeout"]["read"] is None
    assert carrier.requests[0].headers["accept-encoding"] == "identity"


async def test_an_error_event_is_raised_after_the_events_before_it_and_again() -> None:
    body = event("ADDED", "a") + error(410, "Expired") + event("ADDED", "b")
    async with watching(body, None) as events:
        assert words(await events.receive_batch()) == ["ADDED a@1"]
        for _ in range(2):
            with pytest.raises(ExpiredError, match=r"^watch pods in namespace shop: no"):
                await events.receive_batch()
        with pytest.raises(ExpiredError):
            await anext(events)


async def test_an_error_event_keeps_its_details() -> None:
    async with watching(error(429, "TooManyRequests", details={"retryAfterSeconds": 4}), None) as events:
        with pytest.raises(TooManyRequestsError) as caught:
            await anext(events)
        assert caught.value.details.retry_after_seconds == 4


async def test_an_error_event_that_is_no_status_is_an_error_all_the_same() -> None:
    async with watching(b'{"type":"ERROR","object":{}}\n', None) as events:
        with pytest.raises(StatusError):
            await anext(events)


@pytest.mark.parametrize("line", [b"<html>\n", b'{"type":"RENAMED","object":{}}\n', b'{"type":"ADDED","object":{}}\n'])
async def test_what_is_no_event_is_a_decode_error_after_the_events_before_it(line: bytes) -> None:
    async with watching(event("ADDED", "a") + line + event("ADDED", "b"), None) as events:
        assert words(await events.receive_batch()) == ["ADDED a@1"]
        for _ in range(2):
            with pytest.raises(DecodeError, match=r"^watch pods in namespace shop: ") as caught:
                await events.receive_batch()
            assert isinstance(caught.value.__cause__, DecodeError)


async def test_half_an_event_at_the_end_is_a_broken_connection() -> None:
    async with watching(event("ADDED", "a") + b'{"type":"ADD') as events:
        assert words(await events.receive_batch()) == ["ADDED a@1"]
        with pytest.raises(ConnectionFailedError, match="inside of an event"):
            await events.receive_batch()


async def test_a_connection_that_breaks_is_told_after_the_events_before_it() -> None:
    async with watching(event("ADDED", "a"), httpx.ReadError("reset")) as events:
        assert (await anext(events)).object.name == "a"
        for _ in range(2):
            with pytest.raises(ConnectionFailedError):
                await anext(events)


@pytest.mark.parametrize("code", [201, 204, 302])
async def test_a_watch_needs_a_200(code: int) -> None:
    async with client_of(answer(code, "x")) as (client, _):
        with pytest.raises(UnexpectedResponseError, match=r"^watch pods in namespace shop: "):
            async with client.api(Pod, "shop").watch():
                pass


async def test_a_watch_that_expired_says_so() -> None:
    async with client_of(answer(410, '{"kind":"Status","code":410,"reason":"Expired","message":"old"}')) as (client, _):
        with pytest.raises(ExpiredError):
            async with client.api(Pod, "shop").watch(resource_version="1"):
                pass


async def test_a_watch_is_silent_for_as_long_as_nothing_happens(autojump_clock) -> None:
    async with watching(event("ADDED", "a"), 7_200.0, event("ADDED", "b"), None) as events:
        assert words(await events.receive_batch()) == ["ADDED a@1"]
        assert words(await events.receive_batch()) == ["ADDED b@1"]
        assert trio.current_time() == pytest.approx(7_200.0)


async def test_a_server_that_does_not_even_begin_to_answer_is_given_up(autojump_clock) -> None:
    async with client_of(86_400.0, answer(200)) as (client, _):
        with pytest.raises(ConnectionFailedError, match=r"https://api\.test: no answer to the watch came within 330 s"):
            async with client.api(Pod, "shop").watch(timeout_seconds=300):
                pass
        assert trio.current_time() == pytest.approx(330.0)


async def test_without_a_timeout_an_answer_is_waited_for(autojump_clock) -> None:
    async with client_of(86_400.0, answer(200)) as (client, _), client.api(Pod, "shop").watch():
        assert trio.current_time() == pytest.approx(86_400.0)


async def test_a_closed_watch_says_so() -> None:
    async with watching(event("ADDED", "a") + event("ADDED", "b"), None) as events:
        await anext(events)
    assert words(await events.receive_batch()) == ["ADDED b@1"]  # what was taken from the connection is not lost
    with pytest.raises(trio.ClosedResourceError):
        await events.receive_batch()


async def test_two_tasks_cannot_receive_at_once(nursery: trio.Nursery) -> None:
    async with watching(None) as events:
        nursery.start_soon(events.receive_batch)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await events.receive_batch()
        nursery.cancel_scope.cancel()


async def test_receiving_is_a_checkpoint_for_cancellation_and_loses_nothing() -> None:
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


async def test_leaving_a_watch_by_any_way_closes_its_connection_and_wraps_nothing() -> None:
    server = Loopback(lambda _: [CHUNKED, chunk(event("ADDED", "a")), None])
    mine = KeyError("mine")

    async def leave_by_error(client: Client) -> None:
        async with client.api(Pod, "shop").watch() as events:
            async for _ in events:
                raise mine

    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_client(ClusterConfig(server=server.url)) as client:
            async with client.api(Pod, "shop").watch() as events:
                async for _ in events:
                    break
            with pytest.raises(KeyError) as caught:
                await leave_by_error(client)
            assert caught.value is mine
            with trio.CancelScope() as scope:
                async with client.api(Pod, "shop").watch() as events:
                    async for _ in events:
                        scope.cancel()  # takes effect while the next one is waited for
            assert scope.cancelled_caught
            assert client._transport._watches._transport._pool.connections == []  # type: ignore[attr-defined]  # httpx's
            assert suspended_generators() == []
        nursery.cancel_scope.cancel()
    assert server.connections == 3


async def test_a_watch_over_a_socket_ends_cleanly_and_its_connection_is_used_again() -> None:
    server = Loopback(lambda _: [CHUNKED, chunk(event("ADDED", "a")), chunk(event("ADDED", "b")), END], keep_alive=True)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_client(ClusterConfig(server=server.url)) as client:
            for _ in range(2):
                async with client.api(Pod, "shop").watch() as events:
                    assert [found.object.name async for found in events] == ["a", "b"]
        nursery.cancel_scope.cancel()
    assert server.connections == 1
    assert server.heads[0].startswith(b"GET /api/v1/namespaces/shop/pods?watch=true HTTP/1.1\r\n")
