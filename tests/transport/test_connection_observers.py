"""What an observer of requests is told, and when."""

from __future__ import annotations

import gc
import logging
import socket
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.scripted_http import CHUNKED, InMemory, Reply, chunk, response, serving, suspended_generators
from trioformer.client import open_client
from trioformer.errors import ConflictError, ForbiddenError, LimitExceededError, StatusError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod
from trioformer.testing import APIServer
from trioformer.transport import Limits, ObservedRequest, RequestObserver, TokenBucketRateLimiter
from trioformer.transport._internal import ClientOptions, Transport, open_transport

Clock = trio.testing.MockClock

CONFIG = ClusterConfig(server="http://api.test:6443/prefix")
CONFLICT = '{"kind":"Status","status":"Failure","reason":"AlreadyExists","code":409}'


@attrs.define(eq=False)
class Recorded:
    """An observer that records each of its calls as a line."""

    lines: list[str] = attrs.field(factory=list)

    def request_started(self, request: ObservedRequest) -> None:
        delay = "" if request.throttled is None else f" delayed {request.throttled:g}"
        self.lines.append(f"start {request.method} {request.host}{delay}")

    def request_ended(self, request: ObservedRequest) -> None:
        numbers = f"{request.duration:g} s {request.bytes} bytes attempt {request.attempt}"
        self.lines.append(f"end {request.code} {request.reason or 'ok'} {numbers}")

    @property
    def ends(self) -> list[str]:
        return [each.removeprefix("end ") for each in self.lines if each.startswith("end")]


@attrs.define(eq=False)
class RecordedHeads(Recorded):
    """An observer with the third method."""

    def request_responded(self, request: ObservedRequest) -> None:
        self.lines.append(f"head {request.code} {request.duration:g} s")


@asynccontextmanager
async def transport(observer: RequestObserver, *replies: Reply, qps: float | None = None) -> AsyncIterator[Transport]:
    limiter = None if qps is None else TokenBucketRateLimiter(qps=qps, burst=1)
    options = ClientOptions(limits=Limits(object_bytes=1_000_000))
    async with open_transport(
        CONFIG, http_transport=InMemory([*replies]), observer=observer, rate_limiter=limiter, options=options
    ) as opened:
        yield opened


async def test_a_request_ends_when_its_response_is_complete(autojump_clock: Clock) -> None:
    observer = RecordedHeads()
    async with transport(observer, 2.0, response(201, "he", 3.0, "llo")) as opened:
        await opened.request("POST", "/x", content=b"{}")
        assert observer.lines == [
            "start POST api.test:6443",
            "head 201 2 s",
            "end 201 ok 5 s 5 bytes attempt 1",
        ]


async def test_a_watch_ends_when_its_stream_is_closed(autojump_clock: Clock) -> None:
    observer = Recorded()
    async with transport(observer, 1.0, response(200, 5.0, "event", None)) as opened:
        async with opened.stream("/watch", for_watch=True) as body:
            await body.receive_some()
            await trio.sleep(10)
            assert observer.lines == ["start GET api.test:6443"]
        assert observer.ends == ["200 ok 16 s 5 bytes attempt 1"]
    assert len(observer.ends) == 1


async def test_each_attempt_is_reported_with_the_reason_of_its_failure(autojump_clock: Clock) -> None:
    observer = Recorded()
    refused, cut = httpx.ConnectError("refused"), response(200, "he", httpx.ReadError("reset"))
    busy = response(503, "busy", retry_after="1")
    async with transport(observer, busy, 1.0, refused, cut, response(409, CONFLICT)) as opened:
        await opened.request("GET", "/x")
    assert observer.ends == [
        "503 ok 0 s 4 bytes attempt 1",
        "None ConnectionFailedError 1 s 0 bytes attempt 2",
        "200 ConnectionFailedError 0 s 2 bytes attempt 3",
        f"409 AlreadyExists 0 s {len(CONFLICT)} bytes attempt 4",
    ]


async def test_a_request_whose_caller_is_cancelled_ends(autojump_clock: Clock) -> None:
    observer = Recorded()
    async with transport(observer, 100.0, response(200, "x", None), response(200, None)) as opened:
        for seconds in (10, 95):
            with trio.move_on_after(seconds):
                await opened.request("GET", "/x", retries=False)
        with trio.move_on_after(10):
            async with opened.stream("/watch", for_watch=True) as body:
                await body.receive_some()
    assert [each.split(" s ")[0] for each in observer.ends[:1]] == ["None Cancelled 10"]
    assert observer.ends[-1] == "200 Cancelled 10 s 0 bytes attempt 1"


async def test_a_request_for_the_url_of_the_server_itself_is_observed() -> None:
    observer = Recorded()
    replies = InMemory([response(200, "{}"), response(200, "{}")])
    async with open_client(CONFIG, http_transport=replies, observer=observer) as client:
        for query in ("", "?verbose"):
            await client.http().get(f"{CONFIG.server}{query}")
    assert [each.split()[:2] for each in observer.ends] == [["200", "ok"]] * 2


async def test_a_request_that_is_cancelled_before_its_body_is_read_was_cancelled() -> None:
    scope = trio.CancelScope()

    class Cancelling(Recorded):
        def request_responded(self, request: ObservedRequest) -> None:
            scope.cancel()

    observer = Cancelling()
    async with transport(observer, response(200, "x"), response(200, None)) as opened:
        with scope:
            await opened.request("GET", "/x")
        with trio.CancelScope() as scope:
            async with opened.stream("/watch", for_watch=True) as body:
                await body.receive_some()
    assert [each.split()[:2] for each in observer.ends] == [["200", "Cancelled"]] * 2


async def test_a_request_that_is_cancelled_while_it_connects_was_cancelled() -> None:
    observer = Recorded()
    with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts no connection
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for steps in range(12):
            async with (
                open_transport(ClusterConfig(server=url), observer=observer) as opened,
                trio.open_nursery() as tasks,
            ):
                tasks.start_soon(opened.request, "GET", "/x")
                while len(observer.lines) <= 2 * steps:
                    await trio.lowlevel.checkpoint()
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
    assert {each.split()[1] for each in observer.ends} == {"Cancelled"}


async def test_a_watch_that_continues_after_a_timeout_has_not_failed() -> None:
    observer = Recorded()
    async with (
        transport(observer, response(200, "event")) as opened,
        opened.stream("/watch", for_watch=True) as body,
    ):
        with trio.move_on_after(0):
            await body.receive_some()
        assert await body.receive_some() == b"event"
    assert observer.ends[0].startswith("200 ok ")


async def test_a_body_that_is_too_long_ends_its_request() -> None:
    observer = Recorded()
    async with transport(observer, response(200, "x" * 2_000_000)) as opened:
        with pytest.raises(LimitExceededError):
            await opened.request("GET", "/x")
    assert observer.ends[0].startswith("200 LimitExceededError ")


async def test_a_watch_that_is_cut_off_by_the_end_of_its_client_ends() -> None:
    observer, has_received = Recorded(), trio.Event()
    async with (
        serving(CHUNKED + chunk(b"one"), None) as server,
        trio.open_nursery() as nursery,
        open_transport(ClusterConfig(server=server.url), observer=observer) as opened,
    ):

        async def read() -> None:
            async with opened.stream("/x", for_watch=True) as body:
                await body.receive_some()
                has_received.set()
                with pytest.raises(trio.ClosedResourceError):
                    await body.receive_some()

        nursery.start_soon(read)
        await has_received.wait()
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert observer.ends[0].startswith("200 ClosedResourceError ")


async def test_the_delay_of_the_rate_limiter_is_reported_separately(autojump_clock: Clock) -> None:
    observer = Recorded()
    async with transport(observer, 1.0, response(200), 1.0, response(200), response(200, None), qps=0.25) as opened:
        await opened.request("GET", "/x")
        await opened.request("GET", "/x")
        async with opened.stream("/watch", for_watch=True):
            pass
    assert [each for each in observer.lines if each.startswith("start")] == [
        "start GET api.test:6443 delayed 0",
        "start GET api.test:6443 delayed 3",
        "start GET api.test:6443",
    ]
    assert observer.ends[1].startswith("200 ok 1 s")


async def test_a_closed_client_sends_and_reports_nothing() -> None:
    observer = Recorded()
    async with transport(observer) as opened:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await opened.request("GET", "/x")
    assert observer.lines == []


class Broken:
    """An observer with mistakes."""

    def request_started(self, request: ObservedRequest) -> None:
        raise KeyError("started")

    def request_responded(self, request: ObservedRequest) -> None:
        raise KeyError("responded")

    def request_ended(self, request: ObservedRequest) -> None:
        raise KeyError("ended")


async def test_an_exception_of_an_observer_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        serving(CHUNKED + chunk(b"one") + chunk(b""), keep_alive=True) as server,
        open_transport(ClusterConfig(server=server.url), observer=Broken()) as opened,
    ):
        async with opened.stream("/x", for_watch=True) as body:
            assert await body.receive_some() == b"one"
        for _ in range(2):
            assert (await opened.request("GET", "/x")).body == b"one"
    assert suspended_generators() == []
    logged = [each for each in caplog.records if each.name == "trioformer.transport"]
    assert {each.levelno for each in logged} == {logging.ERROR}
    assert [str((each.exc_info or (0, 0))[1]) for each in logged] == ["'started'", "'responded'", "'ended'"] * 3


@attrs.define(eq=False)
class Described(Recorded):
    """An observer that describes what each request is about."""

    def request_started(self, request: ObservedRequest) -> None:
        what = (request.verb, request.path, request.group, request.resource, request.subresource)
        self.lines.append(" ".join((*what, request.namespace, request.name)))


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", "list /api/v1/pods  pods   "),
        ("GET", "/api/v1/pods?watch=true", "watch /api/v1/pods  pods   "),
        ("GET", "/api/v1/pods?limit=1&watch=1&x=y", "watch /api/v1/pods  pods   "),
        ("GET", "/api/v1/pods?watch=false", "list /api/v1/pods  pods   "),
        ("GET", "/api/v1/namespaces/a/pods/b", "get /api/v1/namespaces/{namespace}/pods/{name}  pods  a b"),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "patch /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale apps deployments scale a b",
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments",
            "deletecollection /apis/apps/v1/namespaces/{namespace}/deployments apps deployments  a ",
        ),
        ("PUT", "/api/v1/namespaces/a", "update /api/v1/namespaces/{name}  namespaces   a"),
        ("DELETE", "/api/v1/namespaces/a", "delete /api/v1/namespaces/{name}  namespaces   a"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update /api/v1/namespaces/{name}/finalize  namespaces finalize  a"),
        ("POST", "/api/v1/namespaces", "create /api/v1/namespaces  namespaces   "),
        (
            "GET",
            "/apis/events.k8s.io/v1/namespaces/a/events/system%3Anode",
            "get /apis/events.k8s.io/v1/namespaces/{namespace}/events/{name} events.k8s.io events  a system:node",
        ),
        (
            "POST",
            "/api/v1/namespaces/a/services/b/proxy/some/path?token=x",
            "create /api/v1/namespaces/{namespace}/services/{name}/proxy/{path}  services proxy a b",
        ),
        ("GET", "/version", "get /version     "),
        ("GET", "/apis/apps/v1", "get /apis/apps/v1     "),
        ("GET", "/readyz/etcd?verbose", "get /readyz/etcd     "),
        ("GET", "/", "get /     "),
    ],
)
async def test_a_request_is_described_as_in_the_audit_log(method: str, path: str, expected: str) -> None:
    observer = Described()
    async with transport(observer, response(200, "{}")) as opened:
        await opened.request(method, path)
    assert observer.lines[0] == expected


async def test_the_requests_of_a_client_have_their_verbs_and_the_reasons_of_the_server() -> None:
    observer, server = Described(), APIServer()
    server.create(Namespace(metadata=ObjectMeta(name="shop")))
    server.create(settings := ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop")))
    async with (
        trio.open_nursery() as nursery,
        open_client(server.config, http_transport=server.http_transport(), observer=observer) as client,
    ):
        await nursery.start(server.run)
        api = client.api(ConfigMap, namespace="shop")
        await api.list()
        async with api.watch(resource_version="1"):
            pass
        with pytest.raises(ConflictError):
            await api.create(settings)  # sent and rejected in protobuf
        with pytest.raises(StatusError):
            await api.replace(settings.evolve(metadata=settings.metadata.evolve(name="other")))
        async with client.stream("GET", "/api/v1/namespaces/shop/configmaps") as stream:
            assert await stream.receive_some()
        nursery.cancel_scope.cancel()
    asked = [each.split()[0] for each in observer.lines if not each.startswith("end")]
    assert asked == ["list", "watch", "create", "update", "list"]
    assert [each.split()[1] for each in observer.ends] == ["ok", "ok", "AlreadyExists", "NotFound", "ok"]


async def test_a_streamed_response_of_an_error_has_its_reason() -> None:
    observer = Recorded()
    denied = response(403, '{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}')
    async with open_client(CONFIG, http_transport=InMemory([denied]), observer=observer) as client:
        with pytest.raises(ForbiddenError):
            await client.api(Pod, namespace="default").list()
    assert observer.ends[0].startswith("403 Forbidden")


async def test_the_error_of_a_proxy_has_no_reason() -> None:
    observer = Recorded()
    async with transport(observer, response(404, "<html>"), response(404, "[]"), response(404, '{"reason": 1}')) as one:
        for _ in range(3):
            await one.request("GET", "/x")
    assert {each.split()[1] for each in observer.ends} == {"ok"}


@attrs.define(eq=False)
class Weak(Recorded):
    """An observer that notices when a request is forgotten."""

    requests: list[weakref.ref[ObservedRequest]] = attrs.field(factory=list)

    def request_started(self, request: ObservedRequest) -> None:
        self.requests.append(weakref.ref(request))


async def test_no_body_is_kept_after_its_request_until_the_garbage_is_collected() -> None:
    observer = Weak()
    gc.disable()
    try:
        async with transport(observer, response(200, "x"), response(200, "y")) as opened:
            await opened.request("GET", "/x")
            async with opened.stream("/y", for_watch=False):
                pass
            del opened
        assert [each() for each in observer.requests] == [None, None]
    finally:
        gc.enable()


async def test_a_request_shows_its_path_without_names() -> None:
    @attrs.define(eq=False)
    class Shown(Recorded):
        def request_started(self, request: ObservedRequest) -> None:
            self.lines.append(repr(request))

    observer = Shown()
    async with transport(observer, response(200, "{}")) as opened:
        await opened.request("GET", "/api/v1/namespaces/a/secrets/b")
    assert observer.lines[0] == ("<ObservedRequest 1: get /api/v1/namespaces/{namespace}/secrets/{name}: None>")
