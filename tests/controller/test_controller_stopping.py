"""The end of a controller: cancelled or stopped at any point, it leaves nothing behind."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.support.controllers import Observer, Reconcile, informer_of, pods
from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, added, listing, modified, pod
from trioformer import SharedInformer
from trioformer.controller import Controller, Request, RequeueAfter, TerminalError
from trioformer.models.core_v1 import Pod


async def assert_ended(controller: Controller, informer: SharedInformer[Pod], reconcile: Reconcile) -> None:
    """Assert that no handler and no task is left, and that no reconcile is called any more."""
    assert controller.statistics().phase == "not running"
    assert controller.statistics().handlers == ()
    assert informer.statistics().handlers_and_subscriptions == 0
    assert reconcile.running == set()
    await trio.testing.wait_all_tasks_blocked()
    ours = (f"handler {controller.name} of", f"controller {controller.name}:")
    assert [name for name in names_of_tasks() if name.startswith(ours)] == []
    calls = len(reconcile.calls)
    await trio.sleep(2_000)
    assert len(reconcile.calls) == calls


def names_of_tasks() -> list[str]:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    tasks, names = [root], []
    while tasks:
        task = tasks.pop()
        names.append(task.name)
        tasks.extend(child for nursery in task.child_nurseries for child in nursery.child_tasks)
    return names


# --- cancellation ---


async def test_cancelling_a_controller_cancels_its_reconciles_immediately(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, reconcile = pods("a", "b", "c"), Reconcile([math.inf, math.inf])
    controller = Controller("pods", reconcile, workers=2, reconcile_deadline=10)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):  # at the time of the reconcile deadline
        await controller.run()
    assert sorted(reconcile.cancelled) == ["a", "b"]
    assert trio.current_time() == 10
    assert controller.statistics().failed == 0
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    await assert_ended(controller, informer, reconcile)


async def test_a_cancelled_controller_waits_for_a_shielded_cleanup(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def clean_up(request: Request) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            cleaned.append(request)

    cleaned: list[Request] = []
    informer = pods("a")
    controller = Controller("pods", Reconcile([clean_up]))
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    assert cleaned == [Request("default", "a")]
    assert trio.current_time() == 15


async def test_cancelling_controller_and_informers_together_logs_no_warning(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    for seconds in (0.0, 0.5, 1.5, 5.0):
        slow = informer_of(ScriptedListWatch([listing(pod("b"))]))
        informer, controller = pods("a"), Controller("pods", Reconcile([math.inf]))
        controller.watch(informer)
        controller.watch(slow)
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(controller.run)
                nursery.start_soon(informer.run)
                await trio.sleep(1)
                nursery.start_soon(slow.run)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@attrs.define(eq=False)
class AtStep(trio.abc.Instrument):
    """Calls a function after a number of steps of tasks."""

    left: int
    then: Callable[[], object]

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.then()


@attrs.define(eq=False)
class Interrupted:
    """A controller with requests of every outcome that is interrupted after a number of steps."""

    step: int
    reconcile: Reconcile = attrs.field(factory=lambda: Reconcile([1.0, OSError(), RequeueAfter(1), TerminalError()]))
    informer: SharedInformer[Pod] = attrs.field(init=False)
    controller: Controller = attrs.field(init=False)
    failed: list[Request] = attrs.field(factory=list)
    was_interrupted: bool = False

    def __attrs_post_init__(self) -> None:
        self.informer = pods("a", "b", "c", steps=[0.5, added(pod("d", 2)), modified(pod("a", 3))])
        self.controller = Controller("pods", self.reconcile, workers=2, max_retries=0, on_error=self.record)
        self.controller.watch(self.informer)

    async def record(self, request: Request, error: Exception, then: str) -> None:
        await trio.sleep(0.1)
        self.failed.append(request)

    async def run(self, interrupt: Callable[[], object]) -> None:
        """Run until interrupted, or for 10 s."""

        def interrupt_now() -> None:
            self.was_interrupted = True
            interrupt()

        instrument = AtStep(self.step, interrupt_now)
        with trio.move_on_after(10):
            trio.lowlevel.add_instrument(instrument)
            try:
                await self.controller.run()
            finally:
                trio.lowlevel.remove_instrument(instrument)


async def test_a_controller_cancelled_at_any_step_leaves_nothing_behind(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    for step in range(1, 1_000):
        case = Interrupted(step)
        async with trio.open_nursery() as inner:
            inner.start_soon(case.informer.run)
            with trio.CancelScope() as scope:
                await case.run(scope.cancel)
            await assert_ended(case.controller, case.informer, case.reconcile)
            inner.cancel_scope.cancel()
        if not case.was_interrupted:
            break
    assert 30 < step < 999
    messages = {record.getMessage() for record in caplog.records if record.name == "trioformer.controller"}
    assert {message.rpartition(", ")[2] for message in messages} == {
        "giving up (failure 1 in a row): OSError",
        "not retrying (terminal error): TerminalError",
    }


# --- stop() ---


async def test_stop_lets_running_reconciles_finish_and_starts_no_others(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.controller")
    steps = [5.0, added(pod("late", 9)), modified(pod("a", 10))]
    informer = pods("a", "b", "c", "d", steps=steps)
    reconcile = Reconcile([10.0, 20.0])
    controller = Controller("pods", reconcile, workers=2)
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        await inner.start(controller.run)
        await trio.sleep(2)
        with trio.fail_after(30):
            await controller.stop()
        assert trio.current_time() == 20
        assert controller.statistics().phase == "not running"
    assert reconcile.calls == reconcile.done == ["a", "b"]
    assert [record.getMessage() for record in caplog.records] == [
        "controller pods: started, workers: 2",
        "controller pods: stopping; 2 requests running, 2 pending, 0 delayed",
        "controller pods: ended",
    ]
    await assert_ended(controller, informer, reconcile)


async def test_requests_that_wait_at_a_stop_are_not_reported_as_handled(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    observer = Observer()
    informer, reconcile = pods("a", "b", "c", "d"), Reconcile([10.0])
    controller = Controller("pods", reconcile, observer=observer)
    controller.watch(informer)
    await nursery.start(informer.run)
    nursery.start_soon(controller.run)
    await trio.sleep(1)
    await controller.stop()
    assert trio.current_time() == 10
    of_the_work = [call for call in observer.calls if "added" not in call]
    assert of_the_work == ["a taken", "a began", "a success 10", "a finished"]


async def test_a_request_given_to_a_worker_as_a_stop_begins_is_not_handled(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    observer, informer, reconcile = Observer(), pods(), Reconcile()
    controller = Controller("pods", reconcile, observer=observer)
    controller.watch(informer)
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.testing.wait_all_tasks_blocked()
    assert controller.add(Request("default", "a"))  # wakes a worker, which runs after the stop has begun
    await controller.stop()
    assert (reconcile.calls, observer.calls) == ([], ["a added 0"])


async def test_events_and_results_during_a_stop_have_no_effect(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def again(request: Request) -> RequeueAfter:
        await trio.sleep(10)
        return RequeueAfter(1)

    informer, other = pods("a", "b", steps=[5.0, modified(pod("a", 9))]), pods("z")
    reconcile = Reconcile([again])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    await nursery.start(other.run)
    nursery.start_soon(controller.run)
    await trio.sleep(1)
    nursery.start_soon(controller.stop)
    await trio.sleep(1)
    assert controller.statistics().phase == "stopping"
    assert not controller.add(Request("default", "x"))
    controller.watch(other)
    assert other.statistics().handlers_and_subscriptions == 0
    await trio.sleep(100)
    assert reconcile.calls == ["a"]
    await assert_ended(controller, informer, reconcile)
    await nursery.start(controller.run)  # the informer that was watched during the stop is watched now
    await trio.sleep(1)
    assert sorted(reconcile.calls[1:]) == ["a", "b", "z"]


async def test_a_failure_during_a_stop_is_logged_and_not_retried(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Request) -> None:
        await trio.sleep(10)
        raise OSError("too bad")

    informer, reconcile = pods("a"), Reconcile([fail])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    nursery.start_soon(controller.run)
    await trio.sleep(1)
    await controller.stop()
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert errors == [
        "controller pods: reconcile of default/a failed, not retrying (the controller is stopping): OSError: too bad"
    ]
    await assert_ended(controller, informer, reconcile)


async def test_reconciles_that_exceed_the_deadline_of_a_stop_are_cancelled(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a", "b"), Reconcile([10.0, math.inf])
    controller = Controller("pods", reconcile, workers=2)
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        inner.start_soon(controller.run)
        await trio.sleep(1)
        with trio.move_on_after(30) as scope:
            await controller.stop()
        assert scope.cancelled_caught
        assert trio.current_time() == 31
    assert trio.current_time() == 31
    assert (reconcile.done, reconcile.cancelled) == (["a"], ["b"])
    await assert_ended(controller, informer, reconcile)


@pytest.mark.parametrize("cancelled", [["a"], []])
async def test_a_stop_with_a_deadline_of_0_cancels_reconciles_immediately(
    cancelled: list[str], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([math.inf for _ in cancelled])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        await inner.start(controller.run)
        await trio.sleep(1)
        with trio.move_on_after(0):
            await controller.stop()
    assert trio.current_time() == 1
    assert reconcile.cancelled == cancelled


async def test_nursery_start_returns_when_the_run_is_stopped_before_it_has_started(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile()
    never = informer_of(ScriptedListWatch([listing()]))
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    controller.watch(never)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        inner.start_soon(partial(inner.start, controller.run))
        await trio.sleep(5)
        assert controller.statistics().phase == "waiting for handlers"
        await controller.stop()
    assert trio.current_time() == 5
    await assert_ended(controller, informer, reconcile)


async def test_a_run_that_is_stopped_while_handlers_sync_returns(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    def stop(event: object) -> bool:
        events.append(event)
        if len(events) == 1:
            nursery.start_soon(controller.stop)  # it runs before the handler has processed all objects
        return True

    events: list[object] = []
    informer, reconcile = pods(*(f"p-{number}" for number in range(5_000))), Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(informer, predicates=[stop])
    await nursery.start(informer.run)
    await controller.run()
    assert len(events) < 5_000
    await assert_ended(controller, informer, reconcile)


async def test_a_controller_stopped_at_any_step_finishes_its_reconciles(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    for step in range(1, 1_000):
        case, now = Interrupted(step), trio.Event()

        async def stop(case: Interrupted, now: trio.Event) -> None:
            await now.wait()
            with trio.fail_after(2):
                await case.controller.stop()

        async with trio.open_nursery() as inner:
            inner.start_soon(case.informer.run)
            inner.start_soon(stop, case, now)
            await case.run(now.set)
            await assert_ended(case.controller, case.informer, case.reconcile)
            if case.was_interrupted:
                assert case.reconcile.cancelled == []
            inner.cancel_scope.cancel()
        if not case.was_interrupted:
            break
    assert 30 < step < 999


async def test_stopping_inside_a_reconcile_is_an_error(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    errors: list[str] = []

    async def stop() -> None:
        with pytest.raises(RuntimeError, match="was called inside a reconcile") as caught:
            await controller.stop()
        errors.append(str(caught.value))

    async def reconcile(request: Request) -> None:
        await stop()
        async with trio.open_nursery() as inner:
            inner.start_soon(stop)
        nursery.start_soon(controller.stop)  # in another nursery: this reconcile does not wait for it

    informer = pods("a")
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.fail_after(1):
        await controller.run()
    assert len(errors) == 2


async def test_stop_may_be_called_by_several_tasks_and_repeatedly(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([10.0])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    with trio.testing.assert_checkpoints():
        await controller.stop()
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.sleep(1)
    async with trio.open_nursery() as inner:
        for _ in range(3):
            inner.start_soon(controller.stop)
    assert trio.current_time() == 10
    with trio.testing.assert_checkpoints():
        await controller.stop()
    assert reconcile.done == ["a"]


async def test_other_handlers_continue_when_a_controller_has_ended(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer = pods("a", steps=[20.0, added(pod("b", 2))])
    informer.add_event_handler(other := Recorder())
    controller = Controller("pods", Reconcile())
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    await trio.sleep(20)
    assert other.seen == ["+a@1*", "+b@2"]


async def test_an_informer_that_ends_does_not_end_a_controller_that_has_started(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([RequeueAfter(60)])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    async with trio.open_nursery() as inner:
        await inner.start(informer.run)
        await nursery.start(controller.run)
        inner.cancel_scope.cancel()
    await trio.sleep(100)
    assert reconcile.gaps() == [60]
    await controller.stop()
