"""Metrics of a manager's controllers: each is measured by its own name and workers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from tests.support.controllers import Observer, Reconcile
from tests.support.metric_samples import samples, value
from tests.support.raw_requests import pod
from trioformer import Client
from trioformer.controller import Controller
from trioformer.manager import ManagerContext, run_controllers
from trioformer.metrics import Metrics
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

ASKED = {
    "for nothing": {},
    "for observers": {"workers": 3},
    "for observers without the number of workers": {},
}


@pytest.mark.parametrize("asked", ASKED)
async def test_every_controller_is_measured_by_its_own_name_and_workers(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    client: Client,
    asked: str,
) -> None:
    async def start(context: ManagerContext) -> Controller:
        observers: dict[str, Any] = {}
        if asked != "for nothing":
            observer = context.controller_observer(**ASKED[asked])
            observers = {"observer": observer}
        controller = Controller(name, Reconcile([KeyError("a bug"), math.inf]), workers=3, **observers)
        controller.watch(context.factory.informer(Pod))
        return controller

    name = "its-own" if asked == "for nothing" else "pods"
    metrics, stop = Metrics(), trio.Event()
    api_server.create(pod("a"))
    await nursery.start(partial(run_controllers, client, {"pods": start}, metrics=metrics, stop=stop, shutdown_grace=1))
    await trio.sleep(10)
    read = partial(value, metrics, controller=name)
    assert read("controller_runtime_max_concurrent_reconciles") == 3
    assert read("controller_runtime_active_workers") == 1  # the retry
    assert read("controller_runtime_reconcile_errors_total") == 1
    assert read("controller_runtime_reconcile_time_seconds_count") == 1
    assert read("workqueue_adds_total", name=name) == 2
    assert read("workqueue_retries_total", name=name) == 1
    assert read("workqueue_queue_duration_seconds_count", name=name) == 2
    assert [each.labels["controller"] for each in samples(metrics, "controller_runtime_active_workers")] == [name]
    stop.set()
    await trio.sleep(10)
    assert read("controller_runtime_active_workers") == 0


async def test_a_controllers_own_observers_are_called_beside_the_metrics(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    async def start(context: ManagerContext) -> Controller:
        controller = Controller("pods", Reconcile([OSError()]), observer=recorder)
        controller.watch(context.factory.informer(Pod))
        return controller

    recorder, metrics = Observer(), Metrics()
    api_server.create(pod("a"))
    await nursery.start(partial(run_controllers, client, {"pods": start}, metrics=metrics))
    await trio.sleep(10)
    once = ["a added -100", "a taken", "a began"]
    assert [each for each in recorder.calls if "delayed" not in each] == [
        *(*once, "a error 0", "a finished"),
        *(*once, "a success 0", "a finished"),
    ]
    assert value(metrics, "workqueue_work_duration_seconds_count", name="pods") == 2
    assert value(metrics, "controller_runtime_reconcile_total", controller="pods", result="success") == 1
    nursery.cancel_scope.cancel()


async def test_the_metrics_of_another_instance_do_not_replace_the_managers(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    async def start(context: ManagerContext) -> Controller:
        controller = Controller("pods", Reconcile(), observer=other.controller_observer("pods", 1))
        controller.watch(context.factory.informer(Pod))
        return controller

    other, metrics = Metrics(), Metrics()
    api_server.create(pod("a"))
    await nursery.start(partial(run_controllers, client, {"pods": start}, metrics=metrics))
    await trio.sleep(10)
    for each in (metrics, other):
        assert value(each, "controller_runtime_reconcile_total", controller="pods", result="success") == 1
        assert value(each, "workqueue_adds_total", name="pods") == 1
    nursery.cancel_scope.cancel()
