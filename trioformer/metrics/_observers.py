"""Metrics that observers update: counts and durations of reconciles, queue keys and requests.

The names, labels and bounds are the same as in controller-runtime (``pkg/internal/controller/metrics/metrics.go``,
``pkg/internal/metrics/workqueue.go``, ``pkg/metrics/client_go_adapter.go``), so existing dashboards and alerts work.
The Kubernetes components use the same metrics for queues and requests.  Native histograms are omitted, because the
Python client does not support them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ..controller._internal import ReconcileResult
from ..transport import ObservedRequest
from ..transport._internal import SWITCHED

RECONCILE_BOUNDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
"""The bounds of the histogram of reconcile times, in seconds."""


def _powers_of_ten() -> tuple[float, ...]:
    # Rounded at each step as in Go, because bounds are labels and must be equal to the last digit.
    bounds = [10e-9]
    while len(bounds) < 12:
        bounds.append(bounds[-1] * 10)
    return tuple(bounds)


QUEUE_BOUNDS: Final = _powers_of_ten()
"""The bounds of the histograms of queues, in seconds: from 10 ns to 1,000 s."""
REQUEST_BOUNDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""The bounds of the histograms of requests, in seconds."""

NO_RESPONSE: Final = "<error>"
"""The value of the label ``code`` for a request without a response."""


@final
class ReconcileMetrics:
    """The metrics of all controllers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        one, prefix = ["controller"], "controller_runtime"
        self.total = Counter(
            f"{prefix}_reconcile_total", "Reconciles that ended, by result.", [*one, "result"], registry=registry
        )
        self.errors = Counter(f"{prefix}_reconcile_errors_total", "Reconciles that failed.", one, registry=registry)
        self.terminal = Counter(
            f"{prefix}_terminal_reconcile_errors_total",
            "Reconciles that failed with an error that is not retried.",
            one,
            registry=registry,
        )
        self.late = Counter(
            f"{prefix}_reconcile_timeouts_total", "Reconciles that their deadline cancelled.", one, registry=registry
        )
        self.seconds = Histogram(
            f"{prefix}_reconcile_time_seconds",
            "How long reconciles took.",
            one,
            buckets=RECONCILE_BOUNDS,
            registry=registry,
        )
        self.workers = Gauge(
            f"{prefix}_max_concurrent_reconciles", "How many reconciles may run at once.", one, registry=registry
        )
        self.active = Gauge(f"{prefix}_active_workers", "How many reconciles are running.", one, registry=registry)


@final
class ReconcileCounts:
    """The metrics of one controller, updated as a :class:`~trioformer.controller.ControllerObserver`."""

    def __init__(self, metrics: ReconcileMetrics, name: str, workers: int) -> None:
        self.metrics = metrics
        self._workers = metrics.workers.labels(name)
        # As in controller-runtime, all series exist with the value 0 before the first reconcile.
        results: tuple[ReconcileResult, ...] = get_args(ReconcileResult)
        self._total = {result: metrics.total.labels(name, result) for result in results}
        self._errors = metrics.errors.labels(name)
        self._terminal = metrics.terminal.labels(name)
        self._late = metrics.late.labels(name)
        self._seconds = metrics.seconds.labels(name)
        self._active = metrics.active.labels(name)
        self.record_workers(workers)

    def record_workers(self, workers: int) -> None:
        """Record the controller's number of workers."""
        self._workers.set(workers)

    def began(self, request: Hashable) -> None:
        """Count a reconcile that begins."""
        self._active.inc()

    def ended(
        self, request: Hashable, *, result: ReconcileResult, duration: float, is_terminal: bool, has_timed_out: bool
    ) -> None:
        """Count the result and duration of a reconcile."""
        self._active.dec()
        self._total[result].inc()
        self._seconds.observe(duration)
        if result == "error":
            self._errors.inc()
        if is_terminal:
            self._terminal.inc()
        if has_timed_out:
            self._late.inc()


@final
class QueueMetrics:
    """The metrics of all queues, except for the metrics that are read at each scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["name", "controller"]
        self.adds = Counter("workqueue_adds_total", "Keys that were added to the queue.", labels, registry=registry)
        self.retries = Counter(
            "workqueue_retries_total", "Keys that were added with a delay.", labels, registry=registry
        )
        self.waited = Histogram(
            "workqueue_queue_duration_seconds",
            "How long keys waited for a worker.",
            labels,
            buckets=QUEUE_BOUNDS,
            registry=registry,
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long workers took to process keys.",
            labels,
            buckets=QUEUE_BOUNDS,
            registry=registry,
        )


@final
class QueueCounts:
    """The metrics of one queue, updated as a :class:`~trioformer.workqueue.QueueObserver`."""

    def __init__(self, metrics: QueueMetrics, name: str) -> None:
        self.metrics = metrics
        # As in controller-runtime, both labels are the queue's name; its dashboards use the second one.
        self._adds = metrics.adds.labels(name, name)
        self._retries = metrics.retries.labels(name, name)
        self._waited = metrics.waited.labels(name, name)
        self._worked = metrics.worked.labels(name, name)

    def added(self, key: Hashable, *, priority: int) -> None:
        """Count an added key."""
        self._adds.inc()

    def delayed(self, key: Hashable, *, delay: float) -> None:
        """Count a delayed key."""
        self._retries.inc()

    def taken(self, key: Hashable, *, waited: float) -> None:
        """Record how long a key waited."""
        self._waited.observe(waited)

    def finished(self, key: Hashable, *, duration: float) -> None:
        """Record how long a worker processed a key."""
        self._worked.observe(duration)


@final
class ControllerCounts:
    """The metrics of one controller and its queue, updated as an observer of both."""

    def __init__(self, reconciles: ReconcileCounts, queue: QueueCounts) -> None:
        self.reconciles = reconciles
        self.queue = queue
        self.began, self.ended = reconciles.began, reconciles.ended
        self.added, self.delayed, self.taken, self.finished = queue.added, queue.delayed, queue.taken, queue.finished


@final
class RequestMetrics:
    """The metrics of all requests, updated as a :class:`~trioformer.transport.RequestObserver`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "rest_client_requests_total",
            f"Requests by status code, or {NO_RESPONSE} without a response.",
            ["code", "method", "host"],
            registry=registry,
        )
        self._retries = Counter(
            "rest_client_request_retries_total",
            "Requests that were sent again, by the status code of that attempt.",
            ["code", "verb", "host"],
            registry=registry,
        )
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "How long requests took, except for watches.",
            ["verb", "host"],
            buckets=REQUEST_BOUNDS,
            registry=registry,
        )
        self._throttled = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long the client's rate limiter delayed requests.",
            ["verb", "host"],
            buckets=REQUEST_BOUNDS,
            registry=registry,
        )

    def request_started(self, request: ObservedRequest) -> None:
        """Record how long the request was delayed."""
        if request.throttled is not None:
            self._throttled.labels(request.method, request.host).observe(request.throttled)

    def request_responded(self, request: ObservedRequest) -> None:
        """Count the request by its status code."""
        shown = NO_RESPONSE if request.code is None else str(request.code)
        self._total.labels(shown, request.method, request.host).inc()
        if request.attempt > 1:
            self._retries.labels(shown, request.method, request.host).inc()

    def request_ended(self, request: ObservedRequest) -> None:
        """Record the duration of the request."""
        if request.code is None:
            self.request_responded(request)
        if not request.for_watch and request.code != SWITCHED:
            self._seconds.labels(request.method, request.host).observe(request.duration)
