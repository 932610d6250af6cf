"""Names, labels and bounds of metrics, which are those of controller-runtime; registries; rendering."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import prometheus_client
import pytest
import trio
from prometheus_client import CollectorRegistry, Counter

from tests.support.metric_samples import by_label, families, samples, value
from trioformer.leaderelection import LeaderElector
from trioformer.metrics import Metrics
from trioformer.testing import APIServer
from trioformer.transport import ObservedRequest
from trioformer.workqueue import WorkQueue

ROOT = Path(__file__).resolve().parents[2]

# By name: the type, and the labels.
EXPECTED = {
    # controller-runtime pkg/internal/controller/metrics/metrics.go
    "controller_runtime_reconcile_total": ("counter", {"controller", "result"}),
    "controller_runtime_reconcile_errors_total": ("counter", {"controller"}),
    "controller_runtime_terminal_reconcile_errors_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_timeouts_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_time_seconds": ("histogram", {"controller"}),
    "controller_runtime_max_concurrent_reconciles": ("gauge", {"controller"}),
    "controller_runtime_active_workers": ("gauge", {"controller"}),
    # controller-runtime pkg/internal/metrics/workqueue.go
    "workqueue_depth": ("gauge", {"name", "controller", "priority"}),
    "workqueue_adds_total": ("counter", {"name", "controller"}),
    "workqueue_queue_duration_seconds": ("histogram", {"name", "controller"}),
    "workqueue_work_duration_seconds": ("histogram", {"name", "controller"}),
    "workqueue_unfinished_work_seconds": ("gauge", {"name", "controller"}),
    "workqueue_longest_running_processor_seconds": ("gauge", {"name", "controller"}),
    "workqueue_retries_total": ("counter", {"name", "controller"}),
    # controller-runtime pkg/metrics/client_go_adapter.go
    "rest_client_requests_total": ("counter", {"code", "method", "host"}),
    "rest_client_request_retries_total": ("counter", {"code", "verb", "host"}),
    "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}),
    "rest_client_rate_limiter_duration_seconds": ("histogram", {"verb", "host"}),
    # controller-runtime pkg/metrics/leaderelection.go
    "leader_election_master_status": ("gauge", {"name"}),
}

TENTHS = [round(0.05 * step, 2) for step in range(2, 11)]  # 0.1 to 0.5
BOUNDS = {
    "controller_runtime_reconcile_time_seconds": [
        *[0.005, 0.01, 0.025, 0.05, *TENTHS, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5],
        *[6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60],
    ],
    "workqueue_queue_duration_seconds": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000],
    "workqueue_work_duration_seconds": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000],
    "rest_client_request_duration_seconds": [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
    "rest_client_rate_limiter_duration_seconds": [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
}


def observe_everything(metrics: Metrics) -> None:
    """Create a series of every metric that an observer updates."""
    metrics.controller_observer("web", 1)
    metrics.queue_observer("web")
    observer = metrics.request_observer()
    observed = {"method": "GET", "host": "api", "code": None, "duration": 0, "for_watch": False, "attempt": 2}
    request = cast("ObservedRequest", SimpleNamespace(**observed, throttled=0))
    observer.request_started(request)
    observer.request_ended(request)


async def test_the_names_types_and_labels_are_those_of_controller_runtime() -> None:
    metrics = Metrics()
    observe_everything(metrics)
    metrics.register_queue(WorkQueue[str](name="queue"))
    async with APIServer().open_client() as client:
        metrics.register_elector(LeaderElector(client, name="lease", namespace="default"), name="lease")
        found = {}
        for family in families(metrics):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            if not name.startswith(("process_", "trioformer_")) and not name.endswith("_created"):
                labels = {label for sample in family.samples for label in sample.labels} - {"le"}
                found[name] = (family.type, labels)
                assert family.documentation
        assert found == EXPECTED


@pytest.mark.parametrize("name", BOUNDS)
def test_the_bounds_of_the_histograms_are_those_of_controller_runtime(name: str) -> None:
    metrics = Metrics()
    observe_everything(metrics)
    found = [float(bound) for bound in by_label(metrics, f"{name}_bucket", "le")]
    assert found == pytest.approx([*BOUNDS[name], math.inf])


def test_bounds_are_formatted_as_in_go() -> None:
    # Bounds are labels, so 1e-05 would be another series than Go's 9.999999999999999e-06.
    metrics = Metrics()
    metrics.queue_observer("web")
    bounds = by_label(metrics, "workqueue_queue_duration_seconds_bucket", "le")
    assert list(bounds)[:6] == ["1e-08", "1e-07", "1e-06", "9.999999999999999e-06", "9.999999999999999e-05", "0.001"]


def test_all_series_of_a_controller_exist_before_the_first_reconcile() -> None:
    metrics = Metrics()
    metrics.controller_observer("web", workers=4)
    results = by_label(metrics, "controller_runtime_reconcile_total", "result", controller="web")
    assert results == {"success": 0, "requeue_after": 0, "error": 0, "cancelled": 0}
    for name in ("reconcile_errors_total", "terminal_reconcile_errors_total", "reconcile_timeouts_total"):
        assert value(metrics, f"controller_runtime_{name}", controller="web") == 0
    assert value(metrics, "controller_runtime_active_workers", controller="web") == 0
    assert value(metrics, "controller_runtime_max_concurrent_reconciles", controller="web") == 4


# --- registries -------------------------------------------------------------------------------------------------------


def test_two_instances_are_independent() -> None:
    one, two = Metrics(), Metrics()
    one.queue_observer("web").added("a", priority=0)
    assert value(one, "workqueue_adds_total", name="web") == 1
    assert samples(two, "workqueue_adds_total") == []
    assert b"workqueue" not in prometheus_client.generate_latest(prometheus_client.REGISTRY)


def test_the_default_registry_has_metrics_of_the_process() -> None:
    assert value(Metrics(), "process_open_fds") > 0


def test_a_given_registry_is_used() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    assert metrics.registry is registry
    Counter("mine", "A metric of the program.", registry=registry).inc()
    assert value(metrics, "mine_total") == 1
    assert samples(metrics, "process_open_fds") == []


def test_the_global_registry_accepts_the_metrics_without_trio() -> None:
    program = (
        "from prometheus_client import REGISTRY; from trioformer.metrics import Metrics; "
        "Metrics(REGISTRY).queue_observer('web').added('a', priority=0); "
        "print(REGISTRY.get_sample_value('workqueue_adds_total', {'name': 'web', 'controller': 'web'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "1.0\n"


@pytest.mark.parametrize("name", ["workqueue_adds_total", "workqueue_depth"])
def test_a_registry_with_the_same_names_raises(name: str) -> None:
    registry = CollectorRegistry()
    prometheus_client.Gauge(name, "Another metric.", registry=registry)
    with pytest.raises(ValueError, match=name):
        Metrics(registry)


def test_without_prometheus_client_the_import_error_names_the_extra() -> None:
    program = "import sys; sys.modules['prometheus_client'] = None; import trioformer.metrics"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: trioformer.metrics needs prometheus-client; "
        "install it with `pip install 'trioformer[metrics]'`"
    )


# --- rendering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", ["", "text/plain;version=0.0.4", "application/json"])
def test_the_text_format_is_the_default(accept: str) -> None:
    body, content_type = Metrics().render(accept)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert b"# EOF" not in body


def test_openmetrics_is_rendered_on_request() -> None:
    metrics = Metrics()
    observe_everything(metrics)
    body, content_type = metrics.render("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.2")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert body.endswith(b"# EOF\n")
    assert b'workqueue_adds_total{controller="web",name="web"} 0.0' in body


async def test_the_asgi_application_of_prometheus_client_serves_the_metrics_on_trio() -> None:
    metrics = Metrics()
    queue = WorkQueue[str](name="queue")
    metrics.register_queue(queue)
    queue.add("a")
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    app = prometheus_client.make_asgi_app(metrics.registry)
    await app({"type": "http", "headers": [], "query_string": b""}, receive, send)
    assert [message.get("status") for message in sent] == [200, None]
    assert b'workqueue_depth{controller="queue",name="queue",priority="0"} 1.0\n' in cast("bytes", sent[1]["body"])


async def test_a_scrape_in_another_thread_raises_while_objects_are_registered() -> None:
    metrics = Metrics()
    metrics.queue_observer("counted")

    async def scrape() -> bytes:
        body, _ = await trio.to_thread.run_sync(metrics.render)
        return body

    assert b"counted" in await scrape()
    queue = WorkQueue[str](name="queue")
    metrics.register_queue(queue)
    with pytest.raises(RuntimeError, match=r"only be read in trio's thread while trio runs; serve Metrics.render\(\)"):
        await scrape()
    metrics.unregister(queue)
    assert b"counted" in await scrape()
