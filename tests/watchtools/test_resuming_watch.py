"""A watch that resumes after it ends or fails; against client-go's ``retrywatcher_test.go``, in virtual time."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.raw_requests import config_map
from tests.support.scripted_http import (
    CHUNKED,
    InMemory,
    Loopback,
    Reply,
    Step,
    chunk,
    response,
    suspended_generators,
)
from trioformer.client import Client, ClientOptions, Undecodable, WatchEvent, open_client
from trioformer.errors import (
    BadRequestError,
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    InternalServerError,
    LimitExceededError,
    MethodNotAllowedError,
    NotFoundError,
    SelectorError,
    ServerError,
    ServerTimeoutError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
    UnexpectedResponseError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer
from trioformer.transport import Limits
from trioformer.watchtools import BackoffPolicy, resuming_watch
from trioformer.watchtools._resuming_watch import ResumingWatch

POLICY = BackoffPolicy(jitter=0, quick_tries=0)
"""0.8, 1.6, 3.2 … seconds."""


def event(version: int | str, type_: str = "ADDED", name: str = "web-0") -> bytes:
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": str(version)}}
    return json.dumps({"type": type_, "object": obj}, separators=(",", ":")).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event(version, "BOOKMARK", "")


def status(code: int, reason: str = "", **fields: object) -> str:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": "no", **fields})


def error(code: int, reason: str = "", **fields: object) -> bytes:
    return f'{{"type":"ERROR","object":{status(code, reason, **fields)}}}\n'.encode()


def rejection(code: int, reason: str = "", **fields: object) -> httpx.Response:
    return response(code, status(code, reason, **fields))


def stream(*steps: Step) -> httpx.Response:
    return response(200, *steps)


@attrs.define(eq=False)
class Script(InMemory):
    """Records the time of each request; a watch after the end of the script sends nothing."""

    times: list[float] = attrs.field(factory=list)
    checks: list[Reply] = attrs.field(factory=list)
    """The replies to the question whether the server has a version; otherwise it has."""
    checked: list[str] = attrs.field(factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.params.get("resourceVersionMatch") == "NotOlderThan":
            self.checked.append(request.url.params["resourceVersion"])
            replies = [self.checks.pop(0)] if self.checks else [response(200, "{}")]
            return await InMemory(replies).handle_async_request(request)
        self.times.append(trio.current_time())
        if not self.replies:
            self.replies.append(stream(None))
        return await super().handle_async_request(request)

    @property
    def versions(self) -> list[str]:
        """The resourceVersion of each watch."""
        return [request.url.params["resourceVersion"] for request in self.requests]


@attrs.define(eq=False)
class Play:
    """A resuming watch of a scripted server."""

    events: ResumingWatch[Pod]
    server: Script
    retries: list[Exception]

    async def versions(self, seconds: float = 200.0) -> list[str]:
        """Read for some time, and return the versions of the events."""
        seen: list[str] = []
        with trio.move_on_after(seconds):
            while True:
                seen += [found.object.resource_version for found in await self.events.receive_batch()]
        return seen


@asynccontextmanager
async def playing(*replies: Reply, version: str = "5", policy: BackoffPolicy = POLICY) -> AsyncIterator[Play]:
    server = Script(list(replies))
    retries: list[Exception] = []
    async with (
        open_client(ClusterConfig(server="https://api.test"), http_transport=server) as client,
        resuming_watch(
            client.api(Pod, "shop"), resource_version=version, backoff=policy, on_retry=retries.append
        ) as events,
    ):
        yield Play(events, server, retries)
    assert suspended_generators() == []


def kinds(errors: list[Exception]) -> list[type[Exception]]:
    return [type(found) for found in errors]


def words(events: list[WatchEvent[Pod]]) -> list[str]:
    return [f"{type_} {pod.name}@{pod.resource_version}" for type_, pod in events]


# --- start and parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_version_that_names_no_specific_state_is_rejected(version: str) -> None:
    """A watch cannot be resumed from these versions.

    client-go: TestNewRetryWatcher
    """
    with pytest.raises(ValueError, match="list first"):
        async with playing(version=version):
            pass


async def test_an_invalid_selector_is_raised_before_a_request_is_sent(client: Client) -> None:
    with pytest.raises(SelectorError):
        async with resuming_watch(client.api(Pod), resource_version="5", label_selector="app in"):
            pass


async def test_each_watch_has_the_right_parameters(autojump_clock: MockClock) -> None:
    server = Script([stream(event(6), 40.0) for _ in range(30)])
    async with (
        open_client(ClusterConfig(server="https://api.test"), http_transport=server) as client,
        resuming_watch(
            client.api(Pod, "shop"),
            resource_version="5",
            label_selector={"app": "web"},
            field_selector="spec.nodeName=n",
        ) as events,
    ):
        assert server.targets == []
        assert repr(events) == "<ResumingWatch of pods in namespace shop: not started, at 5>"
        with trio.move_on_after(40 * 30):
            async for _ in events:
                pass
    params = [dict(request.url.params) for request in server.requests]
    timeouts = [int(one.pop("timeoutSeconds")) for one in params]
    constant = {
        "watch": "true",
        "labelSelector": "app=web",
        "fieldSelector": "spec.nodeName=n",
        "allowWatchBookmarks": "true",
    }
    assert params == [{**constant, "resourceVersion": "5"}] + [{**constant, "resourceVersion": "6"}] * 29
    assert len(set(timeouts)) > 10
    assert all(300 <= timeout < 600 for timeout in timeouts)
    assert {request.url.path for request in server.requests} == {"/api/v1/namespaces/shop/pods"}


async def test_events_are_returned_and_bookmarks_only_advance_the_version(autojump_clock: MockClock) -> None:
    first = event(6) + event(7, "MODIFIED") + bookmark(20)
    async with playing(stream(first, event(21, "DELETED"), bookmark(30), 60.0), stream(event(31), None)) as play:
        assert words(await play.events.receive_batch()) == ["ADDED web-0@6", "MODIFIED web-0@7"]
        assert play.events.resource_version == "20"
        assert words(await play.events.receive_batch()) == ["DELETED web-0@21"]
        assert words(await play.events.receive_batch()) == ["ADDED web-0@31"]
        assert all(isinstance(found, str) for found in play.server.versions)
    assert play.server.versions == ["5", "30"]
    assert play.retries == []


async def test_the_version_is_that_of_the_last_returned_event(autojump_clock: MockClock) -> None:
    async with playing(stream(event(6) + event(7) + event(8), None)) as play:
        seen = []
        async for found in play.events:
            seen.append((found.object.resource_version, play.events.resource_version))
            if len(seen) == 3:
                break
    assert seen == [("6", "6"), ("7", "7"), ("8", "8")]


async def test_batches_and_single_events_can_be_mixed(autojump_clock: MockClock) -> None:
    """Events are returned in the server's order by both ways of reading.

    client-go: TestEventProcessorOrdersEvents
    """
    async with playing(stream(event(6) + event(7) + event(8), 1.0, event(9), None)) as play:
        assert (await anext(play.events)).object.resource_version == "6"
        assert words(await play.events.receive_batch()) == ["ADDED web-0@7", "ADDED web-0@8"]
        assert (await anext(play.events)).object.resource_version == "9"


# --- ends ------------------------------------------------------------------------------------------------------------


async def test_a_long_watch_is_resumed_at_once(autojump_clock: MockClock) -> None:
    async with playing(stream(event(6), 100.0), stream(event(7), None)) as play:
        assert await play.versions() == ["6", "7"]
    assert play.server.versions[:2] == ["5", "6"]
    assert play.server.times[:2] == [0, 100]
    assert play.retries == []


@pytest.mark.parametrize(("lived", "pause"), [(1.0, 0.1), (5.0, 0.5), (20.0, 0.8)])
@pytest.mark.parametrize("broken", [False, True])
async def test_a_short_watch_is_resumed_after_a_share_of_its_duration(
    lived: float, pause: float, broken: bool, autojump_clock: MockClock
) -> None:
    end: list[Step] = [httpx.ReadError("reset")] if broken else []
    async with playing(stream(event(6), lived, *end), stream(event(7), None)) as play:
        assert await play.versions() == ["6", "7"]
    assert play.server.times[1] == pytest.approx(lived + pause)
    assert kinds(play.retries) == [ConnectionFailedError] * broken


async def test_watches_that_end_at_once_back_off(autojump_clock: MockClock) -> None:
    async with playing(stream(), stream(), stream(event(6)), stream(event(7), None)) as play:
        assert await play.versions() == ["6", "7"]
    assert play.server.times[:4] == pytest.approx([0, 0.8, 2.4, 5.6])
    assert kinds(play.retries) == [ConnectionFailedError] * 2
    assert "without an event" in str(play.retries[0])


async def test_a_broken_watch_is_resumed_and_half_an_event_is_not_returned(autojump_clock: MockClock) -> None:
    half = event(7)
    replies = (
        stream(event(6) + half[:30], 60.0),
        stream(event(7), 60.0, httpx.ReadError("reset")),
        stream(event(8), None),
    )
    async with playing(*replies) as play:
        assert await play.versions() == ["6", "7", "8"]
    assert play.server.versions[:3] == ["5", "6", "7"]
    assert play.server.times[:3] == [0, 60, 120]
    assert kinds(play.retries) == [ConnectionFailedError] * 2


async def test_events_that_were_returned_before_are_skipped(autojump_clock: MockClock) -> None:
    """A server that sends the event again from which the watch was resumed.

    client-go: TestRetryWatcher
    """
    replies = [
        stream(event(5) + event(6) + event(7), 40.0),
        stream(event(7, "MODIFIED"), event(7), event(8), 40.0),
        stream(bookmark(8) + event(8), event(9), event(9, name="web-1"), event(8, name="web-2"), None),
    ]
    async with playing(*replies) as play:
        # Two objects of one version in one watch are two events; only the first events of a watch can be repetitions.
        assert await play.versions() == ["6", "7", "8", "9", "9", "8"]


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (httpx.ConnectError("refused"), ConnectionFailedError),
        (rejection(500, "InternalError"), InternalServerError),
        (rejection(429, "TooManyRequests"), TooManyRequestsError),
        (rejection(418), StatusError),
        (response(302, "x"), UnexpectedResponseError),
        (response(200, "<html>\n", None), DecodeError),
        (stream(error(504, "Timeout"), None), ServerTimeoutError),
        (stream(error(599), None), ServerError),
        (stream(b'{"type":"ERROR","object":{}}\n', None), InternalServerError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
async def test_a_transient_failure_is_reported_and_retried_after_a_backoff(
    reply: Reply, kind: type[Exception], autojump_clock: MockClock
) -> None:
    """Responses and ERROR events.

    client-go: TestRetryWatcher
    """
    async with playing(reply, stream(event(6), None)) as play:
        assert await play.versions() == ["6"]
    assert kinds(play.retries) == [kind]
    assert play.server.versions[:2] == ["5", "5"]
    assert play.server.times[1] == pytest.approx(0.8)


async def test_delays_grow_and_are_reset_after_a_healthy_watch(autojump_clock: MockClock) -> None:
    refused = httpx.ConnectError("refused")
    healthy = stream(event(6), 30.0, error(500))
    async with playing(refused, refused, refused, healthy, refused, stream(event(7), 4.0, error(500))) as play:
        assert await play.versions() == ["6", "7"]
    times = play.server.times
    gaps = [after - before for before, after in itertools.pairwise(times[:7])]
    assert gaps == pytest.approx([0.8, 1.6, 3.2, 30 + 0.8, 1.6, 4 + 3.2])


async def test_a_request_that_fails_slowly_is_not_a_healthy_watch(autojump_clock: MockClock) -> None:
    failing: list[Reply] = [40.0, httpx.ConnectError("no route")]
    async with playing(stream(event(6), 2.0), *failing, *failing, *failing, stream(event(7), None)) as play:
        assert await play.versions() == ["6", "7"]
    gaps = [after - before for before, after in itertools.pairwise(play.server.times[1:5])]
    assert gaps == pytest.approx([40.8, 41.6, 43.2]), "no immediate retry, and delays that grow"


@pytest.mark.parametrize("as_event", [False, True])
async def test_the_next_request_waits_for_retry_after(as_event: bool, autojump_clock: MockClock) -> None:
    details = {"details": {"retryAfterSeconds": 20}}
    reply = stream(error(429, "TooManyRequests", **details), None) if as_event else rejection(429, **details)
    async with playing(reply, stream(event(6), None)) as play:
        assert await play.versions() == ["6"]
    assert 20 <= play.server.times[1] <= 22


@pytest.mark.parametrize("as_event", [False, True])
@pytest.mark.parametrize("reason", ["Expired", ""])
async def test_an_expired_version_is_the_same_error_as_response_and_as_event(
    reason: str, as_event: bool, autojump_clock: MockClock
) -> None:
    """client-go retries the HTTP response for ever (kubernetes/kubernetes#138295).

    client-go: TestRetryWatcher
    """
    reply = stream(error(410, reason), None) if as_event else rejection(410, reason)
    async with playing(stream(event(6), 60.0), reply) as play:
        await anext(play.events)
        for _ in range(2):
            with pytest.raises(ExpiredError, match=r"^watch pods in namespace shop: ") as caught:
                await anext(play.events)
        assert caught.value.__notes__[1:] == ["the watch had reached resourceVersion 6; list again"]
        assert play.events.resource_version == "6"
    assert len(play.server.requests) == 2
    assert play.retries == []


async def test_after_a_lost_connection_the_version_is_checked_before_the_next_watch(autojump_clock: MockClock) -> None:
    lost = httpx.ReadError("reset")
    async with playing(stream(event(6), 10.0, lost), stream(event(7), 10.0), stream(event(8), None)) as play:
        assert await play.versions() == ["6", "7", "8"]
    assert play.server.checked == ["6"], "after the failure, and not after a clean end"
    assert play.server.versions == ["5", "6", "7"]


async def test_a_server_that_was_restored_from_a_backup_is_noticed(autojump_clock: MockClock) -> None:
    """It accepts a watch from a version that it has not reached, and sends nothing."""
    too_large = rejection(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]})
    async with playing(stream(event(6), 10.0, httpx.ReadError("reset")), stream(None)) as play:
        play.server.checks.append(too_large)
        await anext(play.events)
        with pytest.raises(ExpiredError) as caught:
            await anext(play.events)
        assert caught.value.__notes__[-1:] == ["the watch had reached resourceVersion 6; list again"]
    assert play.server.versions == ["5"]


@pytest.mark.parametrize(
    "reply", [rejection(403, "Forbidden"), rejection(500, "InternalError"), response(502, "<html>")]
)
async def test_a_check_without_a_result_does_not_keep_from_watching(
    reply: httpx.Response, autojump_clock: MockClock
) -> None:
    async with playing(stream(event(6), 10.0, httpx.ReadError("reset")), stream(event(7), None)) as play:
        play.server.checks.append(reply)
        assert await play.versions() == ["6", "7"]


async def test_a_check_that_cannot_connect_is_a_failure_of_the_watch(autojump_clock: MockClock) -> None:
    refused = httpx.ConnectError("refused")
    async with playing(stream(event(6), 10.0, httpx.ReadError("reset")), stream(event(7), None)) as play:
        play.server.checks += [refused, refused]
        assert await play.versions() == ["6", "7"]
    assert play.server.checked == ["6"] * 3
    assert kinds(play.retries) == [ConnectionFailedError] * 3


async def test_events_before_an_expired_version_are_returned(autojump_clock: MockClock) -> None:
    """client-go: TestRetryWatcher"""
    async with playing(stream(event(5) + event(6) + error(410, "Gone") + event(7), None)) as play:
        assert words(await play.events.receive_batch()) == ["ADDED web-0@6"]
        with pytest.raises(ExpiredError):
            await play.events.receive_batch()


async def test_a_version_that_is_too_large_is_an_expired_error(autojump_clock: MockClock) -> None:
    too_large = rejection(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]})
    async with playing(too_large) as play:
        with pytest.raises(ExpiredError) as caught:
            await anext(play.events)
    assert isinstance(caught.value.__cause__, ServerTimeoutError)
    assert caught.value.code == 504


@pytest.mark.parametrize("as_event", [False, True])
@pytest.mark.parametrize(
    ("code", "kind"),
    [(400, BadRequestError), (401, UnauthorizedError), (404, NotFoundError), (405, MethodNotAllowedError)],
)
async def test_a_permanent_error_is_raised_at_once(
    code: int, kind: type[Exception], as_event: bool, autojump_clock: MockClock
) -> None:
    """client-go: TestRetryWatcher"""
    async with playing(stream(error(code), None) if as_event else rejection(code)) as play:
        for _ in range(2):
            with pytest.raises(kind, match=r"^watch pods in namespace shop: "):
                await anext(play.events)
    assert trio.current_time() == 0
    assert len(play.server.requests) == 1
    assert play.retries == []


async def test_an_undecodable_frame_that_is_sent_again_and_again_is_an_error(autojump_clock: MockClock) -> None:
    broken = b'{"type":"ADDED","object":{}}\n'
    before = [b"", b"", event(6), event(7), b"", b""]
    async with playing(*(stream(one + broken, None) for one in before)) as play:
        assert words(await play.events.receive_batch()) == ["ADDED web-0@6"]
        assert words(await play.events.receive_batch()) == ["ADDED web-0@7"]
        for _ in range(2):
            with pytest.raises(DecodeError):
                await anext(play.events)
    assert kinds(play.retries) == [DecodeError] * 5


async def test_a_frame_over_the_limit_is_an_error_without_another_request(autojump_clock: MockClock) -> None:
    large = event(7, name="x" * 2_000)
    server = Script([stream(event(6) + large, None)])
    retries: list[Exception] = []
    async with (
        open_client(
            ClusterConfig(server="https://api.test"),
            http_transport=server,
            options=ClientOptions(limits=Limits(object_bytes=1_000)),
        ) as client,
        resuming_watch(client.api(Pod, "shop"), resource_version="5", on_retry=retries.append) as events,
    ):
        assert words(await events.receive_batch()) == ["ADDED web-0@6"]
        for _ in range(2):
            with pytest.raises(LimitExceededError, match="an event is too large"):
                await anext(events)
    assert kinds(retries) == []
    assert server.versions == ["5"]


async def test_an_undecodable_frame_can_be_ignored(autojump_clock: MockClock) -> None:
    broken = b'{"type":"ADDED","object":{"metadata":{"name":"odd","namespace":7}}}\n'
    server = Script([stream(event(6) + broken + event(7), None)])
    undecodable: list[Undecodable] = []
    async with (
        open_client(ClusterConfig(server="https://api.test"), http_transport=server) as client,
        resuming_watch(client.api(Pod, "shop"), resource_version="5", on_undecodable=undecodable.append) as events,
    ):
        assert [(await anext(events)).object.resource_version for _ in range(2)] == ["6", "7"]
    assert [type(found.error) for found in undecodable] == [DecodeError]


async def test_an_object_without_a_version_ends_the_watch_after_the_events_before_it(autojump_clock: MockClock) -> None:
    async with playing(stream(event(6) + event("") + event(7), None)) as play:
        assert words(await play.events.receive_batch()) == ["ADDED web-0@6"]
        for _ in range(2):
            with pytest.raises(DecodeError, match=r"^watch pods in namespace shop: .* no resourceVersion"):
                await play.events.receive_batch()


async def test_failures_are_logged_without_a_callback(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    server = Script([rejection(500), stream(event(6), None)])
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=server) as client:
        with caplog.at_level(logging.WARNING):
            async with resuming_watch(client.api(Pod), resource_version="5") as events:
                await anext(events)
    assert [(found.name, found.getMessage()) for found in caplog.records] == [
        ("trioformer.watchtools", "watch pods: no (HTTP 500)")
    ]


async def test_an_exception_of_the_callback_propagates_from_the_read(autojump_clock: MockClock) -> None:
    own_error = ConnectionFailedError("enough")

    def give_up(_: Exception) -> None:
        raise own_error

    server = Script([rejection(500), stream(event(6), None)])
    async with (
        open_client(ClusterConfig(server="https://api.test"), http_transport=server) as client,
        resuming_watch(client.api(Pod), resource_version="5", backoff=POLICY, on_retry=give_up) as events,
    ):
        with pytest.raises(ConnectionFailedError) as caught:
            await anext(events)
        assert caught.value is own_error
        await anext(events)  # the next read waits for the rest of the backoff
        assert server.times == pytest.approx([0, 0.8])


# --- silence ---------------------------------------------------------------------------------------------------------


async def test_a_silent_watch_with_bookmarks_is_closed_and_resumed(autojump_clock: MockClock) -> None:
    async with playing(stream(bookmark(6), 89.0, event(7), None), stream(event(8), None)) as play:
        assert [(await anext(play.events)).object.resource_version for _ in range(2)] == ["7", "8"]
    assert play.server.versions[:2] == ["5", "7"]
    assert play.server.times[:2] == [0, 89 + 90]
    assert [str(found).partition(" for ")[2] for found in play.retries] == ["90 s"]


async def test_a_watch_without_bookmarks_may_be_silent_until_its_timeout(autojump_clock: MockClock) -> None:
    async with playing(stream(None), stream(event(6), None)) as play:
        assert (await anext(play.events)).object.resource_version == "6"
    allowed = int(play.server.requests[0].url.params["timeoutSeconds"]) + 30
    assert play.server.times[:2] == [0, allowed]
    assert len(play.retries) == 1


async def test_the_time_between_reads_does_not_count_as_silence(autojump_clock: MockClock) -> None:
    async with playing(stream(bookmark(6) + event(7), 30.0, event(8), None)) as play:
        await anext(play.events)
        await trio.sleep(3_600)
        assert (await anext(play.events)).object.resource_version == "8"
    assert play.retries == []


# --- cancellation and closing ----------------------------------------------------------------------------------------


async def test_a_cancelled_read_loses_no_event_and_the_next_read_resumes(autojump_clock: MockClock) -> None:
    async with playing(stream(event(6) + event(7), None), stream(event(8), None)) as play:
        await anext(play.events)
        for receive in (play.events.__anext__, play.events.receive_batch):
            with trio.move_on_after(0) as scope:
                await receive()
            assert scope.cancelled_caught
        assert (await anext(play.events)).object.resource_version == "7"
        assert ": watching," in repr(play.events)
        with trio.move_on_after(10) as scope:
            await anext(play.events)
        assert scope.cancelled_caught
        assert ": disconnected," in repr(play.events)
        assert (await anext(play.events)).object.resource_version == "8"
    assert play.server.versions == ["5", "7"]
    assert play.server.times == [0, 10]
    assert play.retries == []


async def test_cancelled_reads_send_at_most_one_request_a_second(autojump_clock: MockClock) -> None:
    async with playing(policy=BackoffPolicy(initial=60)) as play:
        while trio.current_time() < 10:
            with trio.move_on_after(0.3):
                await anext(play.events)
    assert play.server.times[:10] == pytest.approx(range(10))


async def test_a_backoff_continues_while_nobody_reads(autojump_clock: MockClock) -> None:
    async with playing(rejection(500), stream(event(6), None), policy=BackoffPolicy(initial=20, jitter=0)) as play:
        with trio.move_on_after(1):
            await anext(play.events)
        await trio.sleep(4)
        await anext(play.events)
    assert play.server.times == [0, 20]


async def test_a_watch_is_closed_by_leaving_its_block(autojump_clock: MockClock) -> None:
    async with playing(stream(event(6) + event(7), None)) as play:
        await anext(play.events)
    with pytest.raises(trio.ClosedResourceError):
        await play.events.receive_batch() and await play.events.receive_batch()


@pytest.mark.parametrize("first", [stream(5.0, b"", event(6), None), rejection(500)], ids=["watching", "backing off"])
async def test_two_tasks_cannot_read_at_the_same_time(first: httpx.Response, autojump_clock: MockClock) -> None:
    seen: list[str] = []

    async def read(events: ResumingWatch[Pod]) -> None:
        seen.append((await anext(events)).object.resource_version)

    async with playing(first, stream(event(6), None)) as play, trio.open_nursery() as nursery:
        nursery.start_soon(read, play.events)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await anext(play.events)
        await trio.sleep(10)
        assert seen == ["6"]
        assert len(play.server.requests) == 1 + len(play.retries)


@pytest.mark.parametrize("when", ["backing off", "connecting", "watching"])
async def test_closing_the_watch_raises_in_a_reader_in_another_task(when: str, autojump_clock: MockClock) -> None:
    replies: dict[str, list[Reply]] = {
        "backing off": [rejection(500), stream(event(6), None)],
        "connecting": [5.0, stream(event(6), None)],
        "watching": [stream(None)],
    }
    errors: list[str] = []

    async def read(events: ResumingWatch[Pod]) -> None:
        try:
            await anext(events)
        except trio.ClosedResourceError as closed:
            errors.append(str(closed))

    async with (
        trio.open_nursery() as nursery,
        open_client(ClusterConfig(server="https://api.test"), http_transport=Script(replies[when])) as client,
    ):
        async with resuming_watch(client.api(Pod), resource_version="5", on_retry=lambda _: None) as events:
            nursery.start_soon(read, events)
            await wait_all_tasks_blocked()
            assert f": {when}," in repr(events)
        await trio.sleep(10)
    assert len(errors) == 1
    assert "closed" in errors[0]
    assert suspended_generators() == []


async def test_leaving_the_block_closes_the_connection_and_wraps_no_exception() -> None:
    """No task is left, with unread events or without.

    client-go: TestRetryWatcherToFinishWithUnreadEvents, TestEventProcessorExit
    """
    server = Loopback(lambda _: [CHUNKED, chunk(event(6) + event(7)), chunk(event(8)), None])
    own_error = KeyError("mine")

    async def leave_by_error(client: Client) -> None:
        async with resuming_watch(client.api(Pod), resource_version="5") as events:
            async for _ in events:
                raise own_error

    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with open_client(ClusterConfig(server=server.url)) as client:
            before = len(nursery.child_tasks)
            async with resuming_watch(client.api(Pod), resource_version="5"):
                pass
            assert server.connections == 0
            async with resuming_watch(client.api(Pod), resource_version="5") as events:
                async for _ in events:
                    break
            with pytest.raises(KeyError) as caught:
                await leave_by_error(client)
            assert caught.value is own_error
            with trio.CancelScope() as scope:
                async with resuming_watch(client.api(Pod), resource_version="5") as events:
                    async for _ in events:
                        scope.cancel()  # takes effect while the next one is waited for
            assert scope.cancelled_caught
            assert client._transport._generations.present.watches.connections == []  # type: ignore[attr-defined]  # of Connections
            assert suspended_generators() == []
            assert len(nursery.child_tasks) == before
        nursery.cancel_scope.cancel()
    assert server.connections == 3


async def test_a_reader_of_many_events_lets_other_tasks_run(autojump_clock: MockClock) -> None:
    body = b"".join(event(number, "MODIFIED") for number in range(6, 5_006))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with playing(stream(body, None)) as play, trio.open_nursery() as nursery:
        await anext(play.events)
        nursery.start_soon(count)
        for _ in range(4_999):
            await anext(play.events)
        nursery.cancel_scope.cancel()
    assert turns >= 2


# --- against the embedded server -------------------------------------------------------------------------------------


async def names_of(events: ResumingWatch[ConfigMap], count: int) -> list[str]:
    return [(await anext(events)).object.name for _ in range(count)]


async def test_a_day_of_faults_loses_and_repeats_no_event(
    api_server: APIServer, client: Client, autojump_clock: MockClock
) -> None:
    maps = client.api(ConfigMap, "default")
    listing = await maps.list()
    wanted: list[str] = []

    async def trouble() -> None:
        for number in range(140):
            match number % 7:
                case 0:
                    api_server.disconnect_watches(how="clean")
                case 1:
                    api_server.disconnect_watches(how="reset")
                case 2:
                    api_server.disconnect_watches(how="stall")
                case 3:
                    api_server.fail_next(3, verb="watch", status=503)
                    api_server.disconnect_watches(status=500)
                case 4:
                    api_server.fail_next(verb="watch", status=429, retry_after=9)
                    api_server.disconnect_watches(status=429)
                case 5:
                    with api_server.unreachable():
                        await trio.sleep(60)
            wanted.append(f"cm-{number}")
            api_server.create(config_map(wanted[-1]))
            await trio.sleep(600)

    retries: list[Exception] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trouble)
        async with resuming_watch(maps, resource_version=listing.resource_version, on_retry=retries.append) as events:
            assert await names_of(events, 140) == [f"cm-{number}" for number in range(140)]
    assert len(retries) > 100
    assert trio.current_time() > 84_000
    await wait_all_tasks_blocked()
    assert api_server.statistics().open_watches == 0


@pytest.mark.parametrize("as_status", [False, True])
async def test_a_compacted_version_is_an_expired_error(
    as_status: bool, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    server = APIServer(expired_as_status=as_status)
    await nursery.start(server.run)
    async with server.open_client() as client:
        maps = client.api(ConfigMap, "default")
        server.create(config_map("a"))
        version = (await maps.list()).resource_version
        async with resuming_watch(maps, resource_version=version) as events:
            server.create(config_map("b"))
            assert await names_of(events, 1) == ["b"]
            await trio.sleep(40)
            server.disconnect_watches()
            server.create(config_map("c"))
            server.compact()
            with pytest.raises(ExpiredError) as caught:
                await anext(events)
            assert events.resource_version == server.get(ConfigMap, "b").resource_version
        assert f"resourceVersion {events.resource_version};" in caught.value.__notes__[-1]
