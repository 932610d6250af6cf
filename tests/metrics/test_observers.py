"""The metrics of requests."""

from __future__ import annotations

import httpx
import pytest
import trio.testing

from tests.support.metric_samples import by_label, samples, value
from tests.support.scripted_http import InMemory, response
from trioformer.client import open_client
from trioformer.errors import NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.metrics import Metrics
from trioformer.models.core_v1 import Pod
from trioformer.transport import TokenBucketRateLimiter

Clock = trio.testing.MockClock

CONFIG = ClusterConfig(server="http://api.test:6443/prefix")
POD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"}}'
LIST = b'{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]}'


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


async def test_a_watch_is_counted_when_it_begins_and_has_no_duration(autojump_clock: Clock) -> None:
    """As in client-go, which counts responses."""
    metrics, carrier = Metrics(), InMemory([response(200, None)])
    async with (
        open_client(CONFIG, http_transport=carrier, observer=metrics.request_observer()) as client,
        client.api(Pod, namespace="default").watch(resource_version="5"),
    ):
        assert value(metrics, "rest_client_requests_total", code="200") == 1
    assert value(metrics, "rest_client_requests_total", code="200") == 1
    assert samples(metrics, "rest_client_request_duration_seconds_count") == []
