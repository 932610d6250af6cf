"""Request observers are called once for each request; the metrics of requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.metric_samples import by_label, samples, value
from tests.support.scripted_http import InMemory, Reply, response
from trioformer.client import open_client
from trioformer.errors import ConnectionFailedError, NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.metrics import Metrics
from trioformer.models.core_v1 import Pod
from trioformer.transport import RequestObserver, TokenBucketRateLimiter
from trioformer.transport._internal import Transport, open_transport

Clock = trio.testing.MockClock

CONFIG = ClusterConfig(server="http://api.test:6443/prefix")
POD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"}}'
LIST = b'{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]}'


@attrs.define(eq=False)
class RecordingObserver:
    """Records the calls of a request observer."""

    requests: list[str] = attrs.field(factory=list)

    def ended(
        self,
        *,
        method: str,
        host: str,
        code: int | None,
        duration: float,
        throttled: float | None,
        for_watch: bool,
        attempt: int,
    ) -> None:
        delay = "" if throttled is None else f" delayed {throttled:g}"
        self.requests.append(
            f"{method} {host} {code} {duration:g}{delay}{' watch' * for_watch}"
            f"{f' attempt {attempt}' if attempt > 1 else ''}"
        )


def check_type(observer: RequestObserver) -> RequestObserver:
    return observer


@asynccontextmanager
async def transport(observer: RecordingObserver, *replies: Reply, qps: float | None = None) -> AsyncIterator[Transport]:
    carrier, checked = InMemory([*replies]), check_type(observer)
    limiter = None if qps is None else TokenBucketRateLimiter(qps=qps, burst=1)
    async with open_transport(CONFIG, http_transport=carrier, observer=checked, rate_limiter=limiter) as opened:
        yield opened


async def test_a_request_is_reported_when_its_response_is_complete(autojump_clock: Clock) -> None:
    observer = RecordingObserver()
    async with transport(observer, 2.0, response(201, "he", 3.0, "llo"), response(404)) as opened:
        await opened.request("POST", "/x", content=b"{}")
        assert observer.requests == ["POST api.test:6443 201 5"]
        await opened.request("DELETE", "/x")
    assert observer.requests[1:] == ["DELETE api.test:6443 404 0"]


async def test_a_streamed_request_is_reported_when_its_response_starts(autojump_clock: Clock) -> None:
    observer = RecordingObserver()
    async with transport(observer, 1.0, response(200, 5.0, "x"), 2.0, response(200, None)) as opened:
        async with opened.stream("/list", for_watch=False) as body:
            assert observer.requests == ["GET api.test:6443 200 1"]
            await body.receive_some()
        async with opened.stream("/watch", for_watch=True):
            assert observer.requests[1:] == ["GET api.test:6443 200 2 watch"]
    assert len(observer.requests) == 2


async def test_a_request_without_a_response_is_reported(autojump_clock: Clock) -> None:
    observer = RecordingObserver()
    refused, broken = httpx.ConnectError("refused"), response(200, "he", httpx.ReadError("reset"))
    async with transport(observer, 1.0, refused, 1.0, broken, 100.0) as opened:
        with pytest.raises(ConnectionFailedError):
            await opened.request("GET", "/x")
        with trio.move_on_after(10):
            await opened.request("GET", "/x")
    first, second, third = observer.requests
    assert (first, second) == ("GET api.test:6443 None 1",) * 2
    assert third.startswith("GET api.test:6443 None 8.")
    assert third.endswith(" attempt 2")


async def test_the_delay_of_the_rate_limiter_is_reported_separately(autojump_clock: Clock) -> None:
    observer = RecordingObserver()
    async with transport(observer, 1.0, response(200), 1.0, response(200), response(200, None), qps=0.25) as opened:
        await opened.request("GET", "/x")
        await opened.request("GET", "/x")
        async with opened.stream("/watch", for_watch=True):
            pass
    assert observer.requests == [
        "GET api.test:6443 200 1 delayed 0",
        "GET api.test:6443 200 1 delayed 3",
        "GET api.test:6443 200 0 watch",
    ]


async def test_a_closed_client_sends_and_reports_nothing() -> None:
    observer = RecordingObserver()
    async with transport(observer) as opened:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await opened.request("GET", "/x")
    assert observer.requests == []


async def test_requests_have_counters_and_durations_except_for_watches(
    autojump_clock: Clock,
) -> None:
    metrics = Metrics()
    ok, missing = response(200, 0.3, POD), response(404, b'{"kind":"Status","code":404,"reason":"NotFound"}')
    carrier = InMemory(
        [ok, 3.0, missing, httpx.ConnectError("refused"), response(200, LIST), 70.0, response(200, None)]
    )
    async with open_client(CONFIG, http_transport=carrier, observer=metrics.request_observer()) as client:
        pods = client.api(Pod, namespace="default")
        await pods.get("a")
        with pytest.raises(NotFoundError):
            await pods.delete("b")
        await pods.list()  # twice
        async with pods.watch(resource_version="5"):
            pass
    name = "rest_client_requests_total"
    assert by_label(metrics, name, "code", method="GET", host="api.test:6443") == {"200": 3, "<error>": 1}
    assert by_label(metrics, name, "code", method="DELETE", host="api.test:6443") == {"404": 1}
    retries = by_label(metrics, "rest_client_request_retries_total", "code", verb="GET", host="api.test:6443")
    assert retries == {"200": 1}
    name = "rest_client_request_duration_seconds"
    assert by_label(metrics, f"{name}_count", "verb", host="api.test:6443") == {"GET": 3, "DELETE": 1}
    assert by_label(metrics, f"{name}_sum", "verb") == pytest.approx({"GET": 0.3, "DELETE": 3})
    bounds = by_label(metrics, f"{name}_bucket", "le", verb="DELETE")
    assert [bounds[le] for le in ("2.0", "4.0", "60.0", "+Inf")] == [0, 1, 1, 1]
    assert samples(metrics, "rest_client_rate_limiter_duration_seconds_count") == []


async def test_a_client_with_a_rate_limit_has_the_delays_of_its_requests(autojump_clock: Clock) -> None:
    metrics = Metrics()
    carrier = InMemory([response(200, POD) for _ in range(3)])
    async with open_client(
        CONFIG,
        http_transport=carrier,
        observer=metrics.request_observer(),
        rate_limiter=TokenBucketRateLimiter(qps=0.5, burst=1),
    ) as client:
        for _ in range(3):
            await client.api(Pod, namespace="default").get("a")
    name = "rest_client_rate_limiter_duration_seconds"
    assert value(metrics, f"{name}_count", verb="GET", host="api.test:6443") == 3
    assert value(metrics, f"{name}_sum") == pytest.approx(4)
    assert value(metrics, "rest_client_request_duration_seconds_sum") == 0
