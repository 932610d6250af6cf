"""Several controllers in one process: which are started, in what order they start and stop, and how they fail."""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from tests.support.controllers import Reconcile, errors_of, leaves
from tests.support.managers import Worker, initializing
from tests.support.raw_requests import pod
from trioformer import CacheSyncError, Client, SharedInformerFactory
from trioformer.controller import Controller
from trioformer.manager import ManagerContext, run_controllers
from trioformer.manager._initializers import ControllerInitializer
from trioformer.manager._managed import ManagedController
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "trioformer.manager"]


def pods_controller(reconcile: Reconcile) -> ControllerInitializer:
    async def start(context: ManagerContext) -> Controller:
        controller = Controller(context.name, reconcile)
        controller.watch(context.factory.informer(Pod))
        return controller

    return start


async def set_after(event: trio.Event, seconds: float) -> None:
    await trio.sleep(seconds)
    event.set()


# --- starting ---


async def test_a_controller_is_started_and_drained(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    api_server.create(pod("a"))
    reconcile, stop = Reconcile([0.0, 5.0]), trio.Event()
    run = partial(run_controllers, client, {"pods": pods_controller(reconcile)}, stop=stop)
    assert await nursery.start(run) is None
    await trio.sleep(1)
    assert reconcile.done == ["a"]
    api_server.create(pod("b"))
    await trio.sleep(1)
    assert reconcile.running == {"b"}
    stop.set()
    await trio.sleep(10)
    assert reconcile.done == ["a", "b"]
    assert reconcile.cancelled == []
    assert api_server.statistics().open_watches == 0


async def test_the_log_has_started_skipped_and_disabled_controllers(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.manager")
    log: list[str] = []

    async def skip(context: ManagerContext) -> None:
        return None

    initializers = {
        "skips": skip,
        **initializing(Worker("works", log), Worker("off", log), Worker("default-off", log)),
    }
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        run = partial(run_controllers, enabled="*,-off", disabled_by_default=["default-off"], stop=stop)
        await inner.start(run, client, initializers)
        stop.set()
    assert messages(caplog) == [
        "controller off: disabled",
        "controller default-off: disabled",
        "controller skips: skipped",
        "controller works: started",
        "stopping",
    ]
    assert log == ["0 works starts", "0 works is stopped", "0 works ends"]


async def test_a_controller_logs_in_one_line_that_it_has_started(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer")
    await nursery.start(run_controllers, client, {"pods": pods_controller(Reconcile())})
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("controller pods: started")


async def test_initializers_receive_the_shared_objects_and_their_name(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    contexts: list[ManagerContext] = []

    async def note(context: ManagerContext) -> None:
        contexts.append(context)

    factory = SharedInformerFactory(client)
    await nursery.start(partial(run_controllers, client, {"one": note, "two": note}, factory=factory))
    assert [context.name for context in contexts] == ["one", "two"]
    assert all((context.client, context.factory, context.metrics) == (client, factory, None) for context in contexts)
    assert contexts[0].leadership is None
    assert contexts[0].controller_observer(workers=4) is None
    assert contexts[0].queue_observer() is None
    nursery.cancel_scope.cancel()


async def test_informers_requested_before_are_synced_before_the_first_initializer_runs(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    api_server.create(pod("a"))
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)

    async def look(context: ManagerContext) -> None:
        assert context.factory.informer(Pod) is informer
        assert [one.name for one in informer.lister.list()] == ["a"]

    await nursery.start(partial(run_controllers, client, {"look": look}, factory=factory))
    nursery.cancel_scope.cancel()


async def test_controllers_are_started_one_by_one_with_random_intervals(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    at: list[float] = []

    async def note(context: ManagerContext) -> None:
        at.append(trio.current_time())

    initializers = {f"controller-{number}": note for number in range(50)}
    await nursery.start(partial(run_controllers, client, initializers, start_interval=10.0))
    gaps = [after - before for before, after in zip([0.0, *at], at, strict=False)]
    assert all(10 <= gap < 20 for gap in gaps)
    assert max(gaps) - min(gaps) > 2
    nursery.cancel_scope.cancel()


async def test_a_controller_that_has_not_started_its_work_does_not_delay_the_next_one(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    log: list[str] = []
    initializers = initializing(Worker("slow", log, start_after=20), Worker("quick", log))
    await nursery.start(partial(run_controllers, client, initializers))
    assert trio.current_time() == 20  # started when all controllers have
    assert log == ["0 quick starts", "20 slow starts"]
    nursery.cancel_scope.cancel()


async def test_a_controller_that_returns_early_does_not_affect_the_others(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.manager")
    log: list[str] = []
    stop = trio.Event()
    initializers = initializing(Worker("short", log, work_for=5), Worker("long", log))
    await nursery.start(partial(run_controllers, client, initializers, stop=stop))
    await trio.sleep(10)
    stop.set()
    await trio.sleep(10)
    assert log[2:] == ["5 short ends", "10 long is stopped", "10 long ends"]
    assert [line for line in messages(caplog) if "ended" in line] == ["controller short: ended without being stopped"]


async def test_a_controller_that_has_ended_is_not_stopped(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    worker = Worker("short", [], work_for=1)
    context = ManagerContext(client=client, factory=SharedInformerFactory(client), name="short")
    managed = ManagedController("short", worker.initialize, context, phase="waiting to start", runnable=worker)
    await managed.run()
    await managed.stop()
    assert (managed.phase, managed.is_active) == ("ended", False)
    assert worker.log == ["0 short starts", "1 short ends"]


async def test_a_controller_that_ends_before_its_start_is_not_waited_for(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    class EndsEarly(Worker):
        async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
            await trio.sleep(5)

    initializers = {"early": EndsEarly("early", []).initialize}
    await nursery.start(partial(run_controllers, client, initializers))
    assert trio.current_time() == 5
    nursery.cancel_scope.cancel()


async def test_a_manager_without_controllers_waits_for_stop(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, initializing(Worker("a", [])), enabled="", stop=stop))
        await trio.sleep(100)
        stop.set()
    assert trio.current_time() == 100


# --- errors ---


async def test_an_unknown_controller_in_the_list_raises_before_anything_starts(client: Client) -> None:
    with pytest.raises(ValueError, match="unknown controllers in the list 'b': 'b'; known controllers: a"):
        await run_controllers(client, initializing(Worker("a", [])), enabled="b")


async def test_negative_durations_raise(client: Client) -> None:
    with pytest.raises(ValueError, match="start_interval"):
        await run_controllers(client, {}, start_interval=-1.0)
    with pytest.raises(ValueError, match="shutdown_grace"):
        await run_controllers(client, {}, shutdown_grace=-1.0)


async def test_an_exception_of_an_initializer_ends_the_manager_and_names_the_controller(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[str] = []

    async def fail(context: ManagerContext) -> None:
        await trio.sleep(5)
        raise KeyError("a bug")

    initializers = {**initializing(Worker("works", log)), "fails": fail, **initializing(Worker("never", log))}
    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            await nursery.start(run_controllers, client, initializers)
    (error,) = leaves(caught.value)
    assert isinstance(error, KeyError)
    assert error.__notes__ == ["in the initializer of controller fails"]
    assert errors_of(caplog) == ["controller fails: failed to start: KeyError('a bug')"]
    assert log == ["0 works starts", "5 works is cancelled"]


async def return_three(context: ManagerContext) -> int:
    return 3


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (lambda context: None, "must be an async function"),
        (return_three, "must return a controller or None, not a value of type int"),
    ],
)
async def test_an_initializer_of_another_type_is_refused_by_name(client: Client, wrong: Any, problem: str) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, {"a": wrong}, start_interval=0.0)
    (error,) = leaves(caught.value)
    assert isinstance(error, TypeError)
    assert str(error) == f"the initializer of controller a {problem}"


async def test_an_exception_of_a_controller_ends_the_manager_and_names_it(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[str] = []
    initializers = initializing(Worker("works", log), Worker("fails", log, fail_after=5))
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, initializers)
    (error,) = leaves(caught.value)
    assert error.__notes__ == ["in controller fails"]
    assert errors_of(caplog) == ["controller fails: failed, stopping the manager: KeyError('a bug')"]
    assert log[-1] == "5 works is cancelled"


async def test_an_exception_while_a_controller_is_stopped_names_it(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    class Unstoppable(Worker):
        async def stop(self) -> None:
            raise KeyError("a bug")

    stop = trio.Event()
    nursery.start_soon(set_after, stop, 1.0)
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, {"a": Unstoppable("a", []).initialize}, stop=stop)
    (error,) = leaves(caught.value)
    assert error.__notes__ == ["while controller a was stopped"]


async def test_two_controllers_with_the_same_name_raise(autojump_clock: trio.testing.MockClock, client: Client) -> None:
    initializers = {"one": Worker("same", []).initialize, "two": Worker("same", []).initialize}
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, initializers)
    (error,) = leaves(caught.value)
    assert str(error) == (
        "the initializers of one and two both returned a controller named 'same'; use different names, because logs "
        "and metrics identify controllers by name"
    )


async def test_a_cache_that_cannot_be_synced_ends_the_manager(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(100, resource="pods", status=403)
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, {"pods": pods_controller(Reconcile())})
    assert any("403" in str(error) or isinstance(error, CacheSyncError) for error in leaves(caught.value))


async def test_a_factory_that_is_running_raises(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    factory = SharedInformerFactory(client)
    await nursery.start(factory.run)
    with pytest.raises(RuntimeError, match="this factory is already running"):
        await run_controllers(client, {}, factory=factory)
    nursery.cancel_scope.cancel()


# --- stopping ---


async def test_controllers_that_still_run_at_the_deadline_are_cancelled(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[str] = []
    stop = trio.Event()
    initializers = initializing(Worker("slow", log, end_after=100), Worker("quick", log, end_after=2))
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, initializers, stop=stop, shutdown_grace=5.0))
        stop.set()
    assert sorted(log[2:]) == [
        "0 quick is stopped",
        "0 slow is stopped",
        "2 quick ends",
        "5 slow is cancelled",
    ]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "cancelling controllers that did not stop within 5 s: slow"
    ]


@pytest.mark.parametrize(("grace", "ended_at"), [(0.0, 0.0), (math.inf, 1_000.0)])
async def test_the_shutdown_grace_may_be_zero_or_infinite(
    autojump_clock: trio.testing.MockClock, client: Client, grace: float, ended_at: float
) -> None:
    stop = trio.Event()
    initializers = initializing(Worker("slow", [], end_after=1_000))
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, initializers, stop=stop, shutdown_grace=grace))
        stop.set()
    assert trio.current_time() == ended_at


async def test_cancellation_ends_the_manager_immediately(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.create(pod("a"))
    reconcile = Reconcile([100.0])
    with trio.move_on_after(10) as scope:
        await run_controllers(client, {"pods": pods_controller(reconcile)})
    assert scope.cancelled_caught
    assert trio.current_time() == 10
    assert reconcile.cancelled == ["a"]
    await trio.testing.wait_all_tasks_blocked()
    assert api_server.statistics().open_watches == 0


async def test_caches_run_until_the_controllers_have_ended(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    stop = trio.Event()
    synced: list[bool] = []
    worker = Worker("late", [], end_after=10, on_end=lambda: synced.append(informer.has_synced))
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, initializing(worker), factory=factory, stop=stop))
        stop.set()
        await trio.sleep(5)
        api_server.create(pod("a"))
        await trio.sleep(1)
        assert len(informer.lister.list()) == 1
    assert synced == [True]
    assert not informer.has_synced


@pytest.mark.parametrize(
    "when", ["before", "in a list", "in an interval", "in an initializer", "before handlers have synced"]
)
async def test_the_manager_can_be_stopped_at_any_time_during_its_start(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    when: str,
) -> None:
    caplog.set_level(logging.INFO, "trioformer")
    reconcile, stop = Reconcile(), trio.Event()
    factory = SharedInformerFactory(client)
    initializer, interval = pods_controller(reconcile), 0.0

    async def never(context: ManagerContext) -> None:
        await trio.sleep_forever()

    if when == "before":
        stop.set()
    elif when == "in a list":
        factory.informer(ConfigMap)
        api_server.fail_next(100, resource="configmaps", status=500)
    elif when == "in an interval":
        interval = 1_000.0
    elif when == "in an initializer":
        initializer = never
    else:
        api_server.fail_next(100, resource="pods", status=500)
    async with trio.open_nursery() as inner:
        run = partial(
            run_controllers, client, {"pods": initializer}, start_interval=interval, factory=factory, stop=stop
        )
        inner.start_soon(inner.start, run)
        await trio.sleep(5)
        if when != "before":
            assert len(inner.child_tasks) == 1
        stop.set()
    assert trio.current_time() == 5
    assert reconcile.calls == []
    assert ": started" not in caplog.text


async def test_a_controller_created_while_the_manager_stops_does_not_keep_it_running(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    reconcile = Reconcile()

    async def take_long(context: ManagerContext) -> Controller:
        with trio.CancelScope(shield=True):
            await trio.sleep(2)
        return Controller(context.name, reconcile)

    for number in range(1, 21):  # trio randomizes the order of tasks
        stop = trio.Event()
        nursery.start_soon(set_after, stop, 1.0)
        await run_controllers(client, {"pods": take_long}, stop=stop)
        assert trio.current_time() == 2 * number
