"""What is told of requests: each one once, however it ends; and what that looks like in a scrape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.metric_samples import by_label, samples, value
from tests.support.scripted_http import InMemory, Reply, answer
from trioformer.client import open_client
from trioformer.errors import ConnectionFailedError, NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.metrics import Metrics
from trioformer.models.core_v1 import Pod
from trioformer.transport import RequestObserver
from trioformer.transport._internal import Transport, open_transport

Clock = trio.testing.MockClock

CONFIG = ClusterConfig(server="http://api.test:6443/prefix")
POD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"}}'
LIST = b'{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]}'


@attrs.define(eq=False)
class Told:
    """Writes down what it is told."""

    requests: list[str] = attrs.field(factory=list)

    def ended(
        self, *, method: str, host: str, code: int | None, lasted: float, throttled: float | None, for_watch: bool
    ) -> None:
        held = "" if throttled is None else f" held {throttled:g}"
        self.requests.append(f"{method} {host} {code} {lasted:g}{held}{' watch' * for_watch}")


def implements(observer: RequestObserver) -> RequestObserver:
    return observer


@asynccontextmanager
async def transport(told: Told, *replies: Reply, qps: float | None = None) -> AsyncIterator[Transport]:
    carrier = InMemory([*replies])
    async with open_transport(CONFIG, http_transport=carrier, qps=qps, burst=1, observer=implements(told)) as opened:
        yield opened


async def test_a_request_is_told_when_its_answer_is_there(autojump_clock: Clock) -> None:
    told = Told()
    async with transport(told, 2.0, answer(201, "he", 3.0, "llo"), answer(404)) as opened:
        await opened.request("POST", "/x", content=b"{}")
        assert told.requests == ["POST api.test:6443 201 5"]
        await opened.request("DELETE", "/x")
    assert told.requests[1:] == ["DELETE api.test:6443 404 0"]


async def test_a_body_that_is_read_as_it_comes_is_told_when_it_begins(autojump_clock: Clock) -> None:
    told = Told()
    async with transport(told, 1.0, answer(200, 5.0, "x"), 2.0, answer(200, None)) as opened:
        async with opened.stream("/list", for_watch=False) as body:
            assert told.requests == ["GET api.test:6443 200 1"]
            await body.receive_some()
        async with opened.stream("/watch", for_watch=True):
            assert told.requests[1:] == ["GET api.test:6443 200 2 watch"]
    assert len(told.requests) == 2


async def test_a_request_without_an_answer_is_told_of_too(autojump_clock: Clock) -> None:
    told = Told()
    refused, broken = httpx.ConnectError("refused"), answer(200, "he", httpx.ReadError("reset"))
    async with transport(told, 1.0, refused, 1.0, broken, 100.0) as opened:
        for _ in range(2):
            with pytest.raises(ConnectionFailedError):
                await opened.request("GET", "/x")
        with trio.move_on_after(10):
            await opened.request("GET", "/x")
    assert told.requests == ["GET api.test:6443 None 1"] * 2 + ["GET api.test:6443 None 10"]


async def test_what_the_throttle_holds_back_is_told_beside_what_the_request_took(autojump_clock: Clock) -> None:
    told = Told()
    async with transport(told, 1.0, answer(200), 1.0, answer(200), answer(200, None), qps=0.25) as opened:
        await opened.request("GET", "/x")
        await opened.request("GET", "/x")
        async with opened.stream("/watch", for_watch=True):
            pass
    assert told.requests == [
        "GET api.test:6443 200 1 held 0",
        "GET api.test:6443 200 1 held 3",
        "GET api.test:6443 200 0 watch",
    ]


async def test_a_closed_client_sends_nothing_and_tells_of_nothing() -> None:
    told = Told()
    async with transport(told) as opened:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await opened.request("GET", "/x")
    assert told.requests == []


async def test_requests_are_counted_by_code_method_and_host_and_measured_but_for_watches(
    autojump_clock: Clock,
) -> None:
    metrics = Metrics()
    ok, missing = answer(200, 0.3, POD), answer(404, b'{"kind":"Status","code":404,"reason":"NotFound"}')
    carrier = InMemory([ok, 3.0, missing, httpx.ConnectError("refused"), answer(200, LIST), 70.0, answer(200, None)])
    async with open_client(CONFIG, http_transport=carrier, observer=metrics.request_observer()) as client:
        pods = client.api(Pod, namespace="default")
        await pods.get("a")
        with pytest.raises(NotFoundError):
            await pods.delete("b")
        with pytest.raises(ConnectionFailedError):
            await pods.get("c")
        await pods.list()
        async with pods.watch(resource_version="5"):
            pass
    name = "rest_client_requests_total"
    assert by_label(metrics, name, "code", method="GET", host="api.test:6443") == {"200": 3, "<error>": 1}
    assert by_label(metrics, name, "code", method="DELETE", host="api.test:6443") == {"404": 1}
    name = "rest_client_request_duration_seconds"
    assert by_label(metrics, f"{name}_count", "verb", host="api.test:6443") == {"GET": 3, "DELETE": 1}
    assert by_label(metrics, f"{name}_sum", "verb") == pytest.approx({"GET": 0.3, "DELETE": 3})
    bounds = by_label(metrics, f"{name}_bucket", "le", verb="DELETE")
    assert [bounds[le] for le in ("2.0", "4.0", "60.0", "+Inf")] == [0, 1, 1, 1]
    assert samples(metrics, "rest_client_rate_limiter_duration_seconds_count") == []


async def test_a_client_with_a_limit_of_its_own_tells_how_long_that_held_it_back(autojump_clock: Clock) -> None:
    metrics = Metrics()
    carrier = InMemory([answer(200, POD) for _ in range(3)])
    async with open_client(
        CONFIG, http_transport=carrier, qps=0.5, burst=1, observer=metrics.request_observer()
    ) as client:
        for _ in range(3):
            await client.api(Pod, namespace="default").get("a")
    name = "rest_client_rate_limiter_duration_seconds"
    assert value(metrics, f"{name}_count", verb="GET", host="api.test:6443") == 3
    assert value(metrics, f"{name}_sum") == pytest.approx(4)
    assert value(metrics, "rest_client_request_duration_seconds_sum") == 0
