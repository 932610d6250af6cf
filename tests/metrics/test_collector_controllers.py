"""Metrics of controllers and queues, on an embedded server and in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from tests.support.controllers import Step
from tests.support.metric_samples import by_label, samples, value
from tests.support.own_writes import WEB, Setup, broken_informers, controlled, create
from tests.support.raw_requests import pod
from trioformer import Client, SharedInformerFactory
from trioformer.controller import Controller, Request, RequeueAfter, TerminalError
from trioformer.metrics import Metrics
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer
from trioformer.workqueue import RateLimitingQueue, WorkQueue

Clock = trio.testing.MockClock


@attrs.define(eq=False)
class Scripted:
    """A reconcile that runs the next step of the request's script, and succeeds after the last one."""

    scripts: dict[str, list[Step]]

    async def __call__(self, request: Request) -> RequeueAfter | None:
        script = self.scripts.get(request.name)
        step = script.pop(0) if script else None
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, RequeueAfter):
            return step
        if isinstance(step, int | float):
            await trio.sleep(step)
        return None


@attrs.define(eq=False)
class World:
    """An embedded server with a synced informer of its pods."""

    server: APIServer
    factory: SharedInformerFactory
    metrics: Metrics = attrs.field(factory=Metrics)

    def controller(self, name: str, scripts: dict[str, list[Step]], *, workers: int = 1, **more: float) -> Controller:
        """A controller of all pods with observers, registered with the metrics."""
        controller = Controller(
            name,
            Scripted(scripts),
            workers=workers,
            reconcile_deadline=more.get("reconcile_deadline", 1e9),
            observer=self.metrics.controller_observer(name, workers=workers),
        )
        controller.watch(self.factory.informer(Pod))
        self.metrics.register_controller(controller)
        return controller


@asynccontextmanager
async def world(*names: str) -> AsyncIterator[World]:
    server = APIServer()
    for name in names:
        server.create(pod(name))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            factory = SharedInformerFactory(client)
            factory.informer(Pod)
            await nursery.start(factory.run)
            yield World(server, factory)
            nursery.cancel_scope.cancel()


async def test_counters_of_reconciles_and_keys_match_what_happened(autojump_clock: Clock) -> None:
    scripts: dict[str, list[Step]] = {
        "succeeds": [0.27],
        "flaky": [OSError("no"), OSError("no")],
        "terminal": [TerminalError("never")],
        "also-terminal": [TerminalError("never")],
        "slow": [1_000.0],
        "requeued": [RequeueAfter(60)],
    }
    async with world(*scripts) as here, trio.open_nursery() as nursery:
        controller = here.controller("web", scripts, workers=2, reconcile_deadline=17)
        await nursery.start(controller.run)
        await trio.sleep(100)
        metrics = here.metrics
        of = partial(value, metrics, controller="web")
        assert by_label(metrics, "controller_runtime_reconcile_total", "result", controller="web") == {
            "success": 4,  # in the end all but the two terminal ones
            "requeue_after": 1,
            "error": 5,
            "cancelled": 0,
        }
        assert of("controller_runtime_reconcile_errors_total") == 5
        assert of("controller_runtime_terminal_reconcile_errors_total") == 2
        assert of("controller_runtime_reconcile_timeouts_total") == 1
        assert of("controller_runtime_active_workers") == 0
        assert of("controller_runtime_max_concurrent_reconciles") == 2
        assert of("workqueue_adds_total", name="web") == 10  # 6 pods, 3 retries, and one RequeueAfter
        assert of("workqueue_retries_total", name="web") == 4
        assert by_label(metrics, "workqueue_depth", "priority", name="web", controller="web") == {"0": 0}
        assert of("workqueue_unfinished_work_seconds", name="web") == 0
        assert of("workqueue_longest_running_processor_seconds", name="web") == 0
        # The controller's statistics agree.
        told = controller.statistics()
        assert (told.succeeded, told.failed, told.terminal, told.timed_out) == (5, 5, 2, 1)
        nursery.cancel_scope.cancel()


async def test_histograms_hold_the_durations_of_reconciles_and_waits(autojump_clock: Clock) -> None:
    scripts: dict[str, list[Step]] = {"a": [0.27], "b": [17.5], "c": [0.0]}
    async with world() as here, trio.open_nursery() as nursery:
        controller = here.controller("web", scripts)
        await nursery.start(controller.run)
        for name in scripts:
            controller.add(Request("default", name))
        await trio.sleep(100)
        of = partial(value, here.metrics, controller="web")
        reconcile = "controller_runtime_reconcile_time_seconds"
        assert of(f"{reconcile}_count") == 3
        assert of(f"{reconcile}_sum") == pytest.approx(17.77)
        bounds = by_label(here.metrics, f"{reconcile}_bucket", "le", controller="web")
        # One worker: b waits for a, and c for both.
        assert [bounds[le] for le in ("0.005", "0.25", "0.3", "15.0", "20.0", "60.0", "+Inf")] == [1, 1, 2, 2, 3, 3, 3]
        for name, total, buckets in [
            ("workqueue_work_duration_seconds", 17.77, [1, 1, 2, 2, 3]),
            ("workqueue_queue_duration_seconds", 0.27 + 17.77, [1, 1, 2, 2, 3]),
        ]:
            assert of(f"{name}_count", name="web") == 3
            assert of(f"{name}_sum", name="web") == pytest.approx(total)
            bounds = by_label(here.metrics, f"{name}_bucket", "le", name="web", controller="web")
            assert [bounds[le] for le in ("1e-08", "0.1", "1.0", "10.0", "100.0")] == buckets
        nursery.cancel_scope.cancel()


async def test_a_scrape_during_work_has_running_and_waiting_keys(autojump_clock: Clock) -> None:
    scripts: dict[str, list[Step]] = {"a": [100.0], "b": [100.0]}
    async with world("a", "b", "c", "d", "e") as here, trio.open_nursery() as nursery:
        controller = here.controller("web", scripts, workers=2)
        await nursery.start(controller.run)
        await trio.sleep(3)
        controller.add(Request("default", "added"))
        controller.add(Request("default", "urgent"), priority=7)
        controller.add(Request("default", "e"))  # it waits already, and its priority increases
        await trio.sleep(4)
        of = partial(value, here.metrics, controller="web")
        assert of("controller_runtime_active_workers") == 2
        assert of("workqueue_unfinished_work_seconds") == pytest.approx(14)
        assert of("workqueue_longest_running_processor_seconds") == pytest.approx(7)
        depths = by_label(here.metrics, "workqueue_depth", "priority", controller="web", name="web")
        assert depths == {"-100": 2, "0": 2, "7": 1}
        assert of("workqueue_adds_total") == 7
        assert of("workqueue_work_duration_seconds_count") == 0
        await trio.sleep(100)
        assert of("controller_runtime_active_workers") == 0
        assert of("workqueue_unfinished_work_seconds") == 0
        # The series of an observed priority stays at 0.
        depths = by_label(here.metrics, "workqueue_depth", "priority", controller="web", name="web")
        assert depths == {"-100": 0, "0": 0, "7": 0}
        assert of("workqueue_work_duration_seconds_sum") == pytest.approx(200)
        nursery.cancel_scope.cancel()


async def test_a_reconcile_can_scrape(autojump_clock: Clock) -> None:
    seen: list[float] = []
    async with world("a") as here, trio.open_nursery() as nursery:

        async def reconcile(request: Request) -> None:
            seen.append(value(here.metrics, "controller_runtime_active_workers", controller="web"))

        observer = here.metrics.controller_observer("web", workers=1)
        controller = Controller("web", reconcile, observer=observer)
        controller.watch(here.factory.informer(Pod))
        here.metrics.register_controller(controller)
        await nursery.start(controller.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert seen == [1]


async def test_two_controllers_have_separate_metrics(autojump_clock: Clock) -> None:
    async with world("a", "b") as here, trio.open_nursery() as nursery:
        good = here.controller("good", {}, workers=3)
        bad = here.controller("bad", {"a": [TerminalError("no")], "b": [50.0]})
        await nursery.start(good.run)
        await nursery.start(bad.run)
        await trio.sleep(10)
        for name, expected in [
            ("controller_runtime_reconcile_errors_total", {"good": 0, "bad": 1}),
            ("controller_runtime_max_concurrent_reconciles", {"good": 3, "bad": 1}),
            ("controller_runtime_active_workers", {"good": 0, "bad": 1}),
            ("controller_runtime_reconcile_time_seconds_count", {"good": 2, "bad": 1}),
            ("workqueue_adds_total", {"good": 2, "bad": 2}),
            ("workqueue_work_duration_seconds_count", {"good": 2, "bad": 1}),
            ("workqueue_unfinished_work_seconds", {"good": 0, "bad": 10}),
        ]:
            assert by_label(here.metrics, name, "controller") == pytest.approx(expected), name
        assert by_label(here.metrics, "controller_runtime_reconcile_total", "controller", result="success") == {
            "good": 2,
            "bad": 0,
        }
        handlers = by_label(here.metrics, "trioformer_handler_delivered_total", "handler")
        assert handlers == {"handler good of informer Pod": 2, "handler bad of informer Pod": 2}
        nursery.cancel_scope.cancel()


async def test_a_controller_that_runs_again_continues_its_counters_and_resets_its_gauges(
    autojump_clock: Clock,
) -> None:
    async with world("a", "b", "c") as here:
        controller = here.controller("web", {"a": [None, 100.0]})
        of = partial(value, here.metrics, controller="web")

        async def run_for(seconds: float) -> None:
            with trio.move_on_after(seconds):
                await controller.run()

        await run_for(10)
        assert of("workqueue_adds_total") == 3
        assert of("workqueue_depth", priority="0") == 0
        assert samples(here.metrics, "trioformer_handler_waiting") == []  # handlers exist only during a run
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_for, 20)
            await trio.sleep(15)
            assert of("workqueue_unfinished_work_seconds") == pytest.approx(15)
            assert of("workqueue_depth", priority="-100") == 2
            assert of("controller_runtime_active_workers") == 1
            assert len(samples(here.metrics, "trioformer_handler_waiting")) == 1
        # It was cancelled during a reconcile, while two keys waited.
        assert of("workqueue_unfinished_work_seconds") == 0
        assert by_label(here.metrics, "workqueue_depth", "priority", name="web", controller="web") == {
            "-100": 0,
            "0": 0,
        }
        assert of("controller_runtime_active_workers") == 0
        results = by_label(here.metrics, "controller_runtime_reconcile_total", "result", controller="web")
        assert results == {"success": 3, "requeue_after": 0, "error": 0, "cancelled": 1}
        assert of("workqueue_adds_total") == 7  # the key of the cancelled reconcile was added again
        await run_for(10)
        assert of("workqueue_adds_total") == 10
        assert of("controller_runtime_reconcile_time_seconds_count") == 7
        assert of("controller_runtime_reconcile_time_seconds_sum") == pytest.approx(20)


async def test_a_new_controller_of_the_same_name_continues_its_counters(autojump_clock: Clock) -> None:
    async with world("a") as here:
        for term in (1, 2, 3):
            controller = here.controller("web", {})
            with trio.move_on_after(10):
                await controller.run()
            here.metrics.unregister(controller)
            of = partial(value, here.metrics, controller="web")
            assert of("controller_runtime_reconcile_total", result="success") == term
            assert of("workqueue_adds_total") == term


async def test_two_handlers_of_one_name_are_numbered(autojump_clock: Clock) -> None:
    async with world("a") as here, trio.open_nursery() as nursery:
        controller = here.controller("web", {})
        controller.watch(here.factory.informer(Pod))
        await nursery.start(controller.run)
        waiting = by_label(here.metrics, "trioformer_handler_waiting", "handler")
        assert waiting == {"handler web of informer Pod": 0, "handler web of informer Pod (2)": 0}
        nursery.cancel_scope.cancel()


# --- queues without a controller --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [WorkQueue[str], RateLimitingQueue[str]])
async def test_a_queue_without_a_controller_has_metrics(kind: Callable[..., WorkQueue[str]], mock_clock: Clock) -> None:
    metrics = Metrics()
    queue = kind(name="keys", observer=metrics.queue_observer("keys"))
    metrics.register_queue(queue)
    of = partial(value, metrics, name="keys", controller="keys")
    queue.add("a")
    queue.add("a")
    queue.add_after("b", 5)
    assert (of("workqueue_depth", priority="0"), of("workqueue_adds_total"), of("workqueue_retries_total")) == (1, 1, 1)
    mock_clock.jump(3)
    async with queue.take():
        mock_clock.jump(4)
        assert of("workqueue_unfinished_work_seconds") == 4
        assert of("workqueue_depth") == 1  # b is due, which the scrape detects
    assert of("workqueue_queue_duration_seconds_sum") == 3
    assert of("workqueue_work_duration_seconds_sum") == 4
    async with queue.take():
        pass
    assert of("workqueue_queue_duration_seconds_sum") == 3 + 2
    assert of("workqueue_adds_total") == 2


async def test_a_queue_with_too_many_priorities_has_one_label_for_all() -> None:
    metrics = Metrics()
    queue = WorkQueue[int](name="keys")
    metrics.register_queue(queue)
    for priority in range(25):
        queue.add(priority, priority=priority)
    depths = by_label(metrics, "workqueue_depth", "priority")
    assert depths == {str(priority): 1 for priority in range(25)}
    queue.add(25, priority=25)
    assert by_label(metrics, "workqueue_depth", "priority") == {"exceeded_cardinality_limit": 26}
    async with queue.take():
        assert by_label(metrics, "workqueue_depth", "priority") == {"exceeded_cardinality_limit": 25}


async def test_a_controller_is_measured_from_its_registration_to_its_end(
    autojump_clock: Clock,
) -> None:
    async with world("a") as here:
        controller = Controller("web", Scripted({"a": [RequeueAfter(60)]}), workers=2)
        controller.watch(here.factory.informer(Pod))
        done = partial(value, here.metrics, "controller_runtime_reconcile_total", controller="web")
        adds = partial(value, here.metrics, "workqueue_adds_total", name="web")
        for registers, expected in [(True, (1, 1, 2)), (True, (1, 2, 3)), (False, (1, 2, 3))]:
            if registers:
                here.metrics.register_controller(controller)
            async with trio.open_nursery() as nursery:
                await nursery.start(controller.run)
                await trio.sleep(100)
                nursery.cancel_scope.cancel()
            assert (done(result="requeue_after"), done(result="success"), adds()) == expected
            assert value(here.metrics, "controller_runtime_max_concurrent_reconciles", controller="web") == 2
            here.metrics.unregister(controller)


async def test_a_controller_registered_during_a_run_is_measured_from_the_next_run_on(
    autojump_clock: Clock,
) -> None:
    async with world("a") as here, trio.open_nursery() as nursery:
        controller = Controller("web", Scripted({}))
        controller.watch(here.factory.informer(Pod))
        await nursery.start(controller.run)
        here.metrics.register_controller(controller)
        await trio.sleep(1)
        assert value(here.metrics, "workqueue_adds_total", name="web") == 0
        await controller.stop()
        await trio.sleep(1)
        await nursery.start(controller.run)
        await trio.sleep(1)
        assert value(here.metrics, "workqueue_adds_total", name="web") == 1
        nursery.cancel_scope.cancel()


async def test_paused_requests_are_counted(autojump_clock: Clock) -> None:
    async with world("a", "b") as here, trio.open_nursery() as nursery:
        controller = Controller("web", Scripted({}), paused_by="example.com/paused")
        controller.watch(here.factory.informer(Pod))
        here.metrics.register_controller(controller)
        await nursery.start(controller.run)
        await trio.sleep(1)
        assert value(here.metrics, "trioformer_controller_paused", controller="web") == 0
        here.server.patch(Pod, "a", {"metadata": {"annotations": {"example.com/paused": "true"}}})
        await trio.sleep(1)
        assert value(here.metrics, "trioformer_controller_paused", controller="web") == 1
        nursery.cancel_scope.cancel()


async def test_requests_that_wait_for_their_writes_are_counted_by_resource(
    autojump_clock: Clock, api_server: APIServer, k8s_client: Client
) -> None:
    async def remove(setup: Setup) -> None:
        await setup.client.api(ConfigMap, "default").delete("new")

    metrics = Metrics()
    of = partial(value, metrics, controller="own", group="", resource="configmaps")
    async with controlled(api_server, k8s_client) as setup:
        metrics.register_controller(setup.controller)
        for work, lasts in ((create, 10), (remove, 400)):
            with broken_informers(api_server, ConfigMap):
                await trio.sleep(0.01)
                setup.work = work
                for _ in range(2):
                    setup.controller.add(WEB)
                    await trio.sleep(0.05)
                await trio.sleep(lasts)
            await trio.sleep(100)
        assert of("trioformer_controller_stale_sync_skips_total") == 2
        assert of("trioformer_controller_stale_syncs_total") == 1
