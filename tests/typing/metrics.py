"""What type checkers infer for metrics; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import assert_type

from prometheus_client import REGISTRY, CollectorRegistry

from trioformer import Client, SharedInformerFactory, open_client
from trioformer.controller import Controller, ControllerObserver, Request
from trioformer.leaderelection import LeaderElector
from trioformer.metrics import Metrics
from trioformer.workqueue import QueueObserver, RateLimitingQueue, WorkQueue


async def reconcile(request: Request) -> None: ...


async def observing() -> None:
    metrics = Metrics(REGISTRY)
    assert_type(metrics.registry, CollectorRegistry)
    assert_type(metrics.controller_observer("web", workers=4), ControllerObserver[Hashable])
    assert_type(metrics.queue_observer("web"), QueueObserver[Hashable])
    assert_type(metrics.render(), tuple[bytes, str])
    # An observer of any key is also an observer of these keys.
    controller = Controller("web", reconcile, observer=metrics.controller_observer("web", 1))
    queue = WorkQueue[str](name="keys", observer=metrics.queue_observer("keys"))
    limited = RateLimitingQueue[int](name="numbers", observer=metrics.queue_observer("numbers"))
    metrics.register_controller(controller)
    metrics.register_queue(queue)
    metrics.register_queue(limited)
    metrics.unregister(queue)
    metrics.unregister(limited)
    metrics.unregister("web")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # an object is needed, not its name
    async with open_client(observer=metrics.request_observer()) as client:
        assert_type(client, Client)
        metrics.register_factory(SharedInformerFactory(client), name="mine")
        metrics.register_elector(LeaderElector(client, name="x", namespace="y"), name="x")
