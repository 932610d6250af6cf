"""Many controllers in one process: which are started, in what order they begin and end, and how they fail."""

from __future__ import annotations

import logging
import math
from functools import partial

import pytest
import trio
import trio.lowlevel
import trio.testing

from tests.support.controllers import Reconcile, errors_of, leaves
from tests.support.managers import Worker, starting
from tests.support.raw_requests import pod
from trioformer import CacheSyncError, Client, SharedInformerFactory
from trioformer.controller import Controller
from trioformer.manager import ControllerInitializer, ManagerContext, run_controllers
from trioformer.manager._managed import ManagedController
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer


def log_of(caplog: pytest.LogCaptureFixture) -> list[str]:
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


# --- what is started ---


async def test_a_controller_is_started_works_and_is_drained(
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


async def test_it_says_which_controllers_it_starts_and_which_it_does_not(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.manager")
    diary: list[str] = []

    async def skip(context: ManagerContext) -> None:
        return None

    starters = {"skips": skip, **starting(Worker("works", diary), Worker("off", diary), Worker("default-off", diary))}
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        run = partial(run_controllers, enabled="*,-off", disabled_by_default=["default-off"], stop=stop)
        await inner.start(run, client, starters)
        stop.set()
    assert log_of(caplog) == [
        "controller off: disabled",
        "controller default-off: disabled",
        "controller skips: starting",
        "controller skips: skipped",
        "controller works: starting",
        "controller works: started",
        "stopping",
    ]
    assert diary == ["0 works begins", "0 works is stopped", "0 works ends"]


async def test_starters_are_given_what_all_share_and_each_its_name(
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


async def test_caches_that_were_asked_for_before_are_filled_before_the_first_starter_is_called(
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


async def test_controllers_are_started_one_by_one_with_an_interval_that_differs(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    at: list[float] = []

    async def note(context: ManagerContext) -> None:
        at.append(trio.current_time())

    starters = {f"controller-{number}": note for number in range(50)}
    await nursery.start(partial(run_controllers, client, starters, start_interval=10.0))
    gaps = [after - before for before, after in zip([0.0, *at], at, strict=False)]
    assert all(10 <= gap < 20 for gap in gaps)
    assert max(gaps) - min(gaps) > 2
    nursery.cancel_scope.cancel()


async def test_a_controller_that_has_not_begun_does_not_keep_the_next_from_starting(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    diary: list[str] = []
    starters = starting(Worker("slow", diary, begin_after=20), Worker("quick", diary))
    await nursery.start(partial(run_controllers, client, starters))
    assert trio.current_time() == 20  # it has started when all have
    assert diary == ["0 quick begins", "20 slow begins"]
    nursery.cancel_scope.cancel()


async def test_a_controller_that_ends_by_itself_leaves_the_others_alone(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.manager")
    diary: list[str] = []
    stop = trio.Event()
    starters = starting(Worker("short", diary, work_for=5), Worker("long", diary))
    await nursery.start(partial(run_controllers, client, starters, stop=stop))
    await trio.sleep(10)
    stop.set()
    await trio.sleep(10)
    assert diary[2:] == ["5 short ends", "10 long is stopped", "10 long ends"]
    assert [line for line in log_of(caplog) if "ended" in line] == ["controller short: ended by itself"]


async def test_a_controller_that_has_ended_is_not_stopped_any_more(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    worker = Worker("short", [], work_for=1)
    member = ManagedController("short", worker.start, phase="waiting to begin", runnable=worker)
    await member.run()
    await member.stop()
    assert (member.phase, member.is_working) == ("ended", False)
    assert worker.diary == ["0 short begins", "1 short ends"]


async def test_a_controller_that_ends_before_it_has_begun_is_not_waited_for(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    class Hasty(Worker):
        async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
            await trio.sleep(5)

    starters = {"hasty": Hasty("hasty", []).start}
    await nursery.start(partial(run_controllers, client, starters))
    assert trio.current_time() == 5
    nursery.cancel_scope.cancel()


async def test_with_nothing_to_run_it_waits_for_the_end(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, starting(Worker("a", [])), enabled="", stop=stop))
        await trio.sleep(100)
        stop.set()
    assert trio.current_time() == 100


# --- what goes wrong ---


async def test_a_list_that_names_an_unknown_controller_is_refused_before_anything_begins(client: Client) -> None:
    with pytest.raises(ValueError, match="no controller named 'b', in the list 'b'; there are: a"):
        await run_controllers(client, starting(Worker("a", [])), enabled="b")


async def test_seconds_cannot_be_negative(client: Client) -> None:
    with pytest.raises(ValueError, match="start_interval"):
        await run_controllers(client, {}, start_interval=-1.0)
    with pytest.raises(ValueError, match="shutdown_grace"):
        await run_controllers(client, {}, shutdown_grace=-1.0)


async def test_a_starter_that_raises_ends_the_manager_with_the_controllers_name(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    diary: list[str] = []

    async def fail(context: ManagerContext) -> None:
        await trio.sleep(5)
        raise KeyError("a bug")

    starters = {**starting(Worker("works", diary)), "fails": fail, **starting(Worker("never", diary))}
    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            await nursery.start(run_controllers, client, starters)
    (error,) = leaves(caught.value)
    assert isinstance(error, KeyError)
    assert error.__notes__ == ["in the starter of controller fails"]
    assert errors_of(caplog) == ["controller fails: failed to start: KeyError('a bug')"]
    assert diary == ["0 works begins", "5 works is cancelled"]


async def test_a_controller_that_fails_ends_the_manager_with_its_name(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    diary: list[str] = []
    starters = starting(Worker("works", diary), Worker("fails", diary, fail_after=5))
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, starters)
    (error,) = leaves(caught.value)
    assert error.__notes__ == ["in controller fails"]
    assert errors_of(caplog) == ["controller fails: failed, which ends the manager: KeyError('a bug')"]
    assert diary[-1] == "5 works is cancelled"


async def test_a_controller_that_fails_while_it_is_stopped_is_named(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    class Unstoppable(Worker):
        async def stop(self) -> None:
            raise KeyError("a bug")

    stop = trio.Event()
    nursery.start_soon(set_after, stop, 1.0)
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, {"a": Unstoppable("a", []).start}, stop=stop)
    (error,) = leaves(caught.value)
    assert error.__notes__ == ["while controller a was stopped"]


async def test_two_controllers_of_one_name_are_refused(autojump_clock: trio.testing.MockClock, client: Client) -> None:
    starters = {"one": Worker("same", []).start, "two": Worker("same", []).start}
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, starters)
    (error,) = leaves(caught.value)
    assert str(error) == (
        "the starters of one and two have both made a controller named 'same'; give them different names, since logs "
        "and metrics go by them"
    )


async def test_a_cache_that_cannot_be_filled_ends_the_manager(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.fail_next(100, resource="pods", status=403)
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, {"pods": pods_controller(Reconcile())})
    assert any("403" in str(error) or isinstance(error, CacheSyncError) for error in leaves(caught.value))


async def test_a_factory_that_runs_already_is_refused(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    factory = SharedInformerFactory(client)
    await nursery.start(factory.run)
    with pytest.raises(ExceptionGroup) as caught:
        await run_controllers(client, {}, factory=factory)
    (error,) = leaves(caught.value)
    assert "this factory is already running" in str(error)
    nursery.cancel_scope.cancel()


# --- how it ends ---


async def test_at_the_deadline_what_still_works_is_cancelled(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    diary: list[str] = []
    stop = trio.Event()
    starters = starting(Worker("slow", diary, end_after=100), Worker("quick", diary, end_after=2))
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, starters, stop=stop, shutdown_grace=5.0))
        stop.set()
    assert sorted(diary[2:]) == [
        "0 quick is stopped",
        "0 slow is stopped",
        "2 quick ends",
        "5 slow is cancelled",
    ]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "not ended within 5 s, so they are cancelled: slow"
    ]


@pytest.mark.parametrize(("grace", "ended_at"), [(0.0, 0.0), (math.inf, 1_000.0)])
async def test_the_grace_may_be_none_or_without_end(
    autojump_clock: trio.testing.MockClock, client: Client, grace: float, ended_at: float
) -> None:
    stop = trio.Event()
    starters = starting(Worker("slow", [], end_after=1_000))
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, starters, stop=stop, shutdown_grace=grace))
        stop.set()
    assert trio.current_time() == ended_at


async def test_cancelled_it_ends_at_once(
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


async def test_a_controller_can_read_caches_until_it_has_ended(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    stop = trio.Event()
    synced: list[bool] = []
    worker = Worker("late", [], end_after=10, on_end=lambda: synced.append(informer.has_synced))
    async with trio.open_nursery() as inner:
        await inner.start(partial(run_controllers, client, starting(worker), factory=factory, stop=stop))
        stop.set()
        await trio.sleep(5)
        api_server.create(pod("a"))
        await trio.sleep(1)
        assert len(informer.lister.list()) == 1
    assert synced == [True]
    assert not informer.has_synced


@pytest.mark.parametrize(
    "when", ["before", "in a list", "in an interval", "in a starter", "before handlers have synced"]
)
async def test_it_can_be_stopped_at_any_time_of_its_start(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    when: str,
) -> None:
    caplog.set_level(logging.INFO, "trioformer.manager")
    reconcile, stop = Reconcile(), trio.Event()
    factory = SharedInformerFactory(client)
    starter, interval = pods_controller(reconcile), 0.0

    async def never(context: ManagerContext) -> None:
        await trio.sleep_forever()

    if when == "before":
        stop.set()
    elif when == "in a list":
        factory.informer(ConfigMap)
        api_server.fail_next(100, resource="configmaps", status=500)
    elif when == "in an interval":
        interval = 1_000.0
    elif when == "in a starter":
        starter = never
    else:
        api_server.fail_next(100, resource="pods", status=500)
    async with trio.open_nursery() as inner:
        run = partial(run_controllers, client, {"pods": starter}, start_interval=interval, factory=factory, stop=stop)
        inner.start_soon(inner.start, run)
        await trio.sleep(5)
        if when != "before":
            assert len(inner.child_tasks) == 1
        stop.set()
    assert trio.current_time() == 5
    assert reconcile.calls == []
    assert "controller pods: started" not in log_of(caplog)


async def test_a_controller_that_is_made_while_the_manager_stops_does_not_begin_or_ends(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    reconcile = Reconcile()

    async def take_long(context: ManagerContext) -> Controller:
        with trio.CancelScope(shield=True):
            await trio.sleep(2)
        return Controller(context.name, reconcile)

    for number in range(1, 21):  # trio's order of tasks differs
        stop = trio.Event()
        nursery.start_soon(set_after, stop, 1.0)
        await run_controllers(client, {"pods": take_long}, stop=stop)
        assert trio.current_time() == 2 * number
