"""How a controller ends: cancelled at each point, stopped in good order, and what is left of it: nothing."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from tests.support.controllers import Reconcile, informer_of, pods
from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, added, listing, modified, pod
from trioformer import SharedInformer
from trioformer.controller import Controller, Request, RequeueAfter, TerminalError
from trioformer.models.core_v1 import Pod


async def ended(controller: Controller, informer: SharedInformer[Pod], reconcile: Reconcile) -> None:
    """Nothing is left: no handler, no task, and nothing happens any more."""
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


# --- cancelled ---


async def test_cancelled_while_it_waits_for_caches_it_is_gone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    with trio.move_on_after(10) as scope:
        await controller.run()
    assert scope.cancelled_caught
    nursery.start_soon(informer.run)
    await ended(controller, informer, reconcile)


async def test_cancelled_while_it_waits_for_handlers_it_is_gone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile()
    never = informer_of(ScriptedListWatch([listing()]))
    asked: list[object] = []
    controller = Controller("pods", reconcile)
    controller.watch(informer, predicates=[lambda event: bool(asked.append(event))])
    controller.watch(never)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    # The handler was in a call, where it waited for the other cache; that has returned without doing anything.
    await ended(controller, informer, reconcile)
    assert asked == []


async def test_cancelled_while_it_has_nothing_to_do_it_is_gone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    steps = [20.0, added(pod("b", 2))]
    informer, reconcile = pods("a", steps=steps), Reconcile([RequeueAfter(60)])
    controller = Controller("pods", reconcile, workers=3)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    assert reconcile.calls == ["a"]
    await ended(controller, informer, reconcile)


async def test_cancelled_in_the_middle_of_reconciles_these_are_cancelled_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, reconcile = pods("a", "b", "c"), Reconcile([math.inf, math.inf])
    controller = Controller("pods", reconcile, workers=2, reconcile_deadline=10)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):  # at the very moment of the reconcile deadline
        await controller.run()
    assert sorted(reconcile.cancelled) == ["a", "b"]
    assert trio.current_time() == 10
    assert controller.statistics().failed == 0
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    await ended(controller, informer, reconcile)


async def test_cancelled_while_it_tells_of_a_request_that_was_given_up_it_is_gone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    async def on_dropped(request: Request, error: Exception) -> None:
        await trio.sleep_forever()

    informer, reconcile = pods("a"), Reconcile([OSError()])
    controller = Controller("pods", reconcile, max_retries=0, on_dropped=on_dropped)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10) as scope:
        await controller.run()
    assert scope.cancelled_caught
    await ended(controller, informer, reconcile)


async def test_a_reconcile_that_cleans_up_under_a_shield_is_waited_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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


async def test_the_end_of_everything_at_once_is_quiet(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
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
    """Calls a function after so many steps that tasks have made."""

    left: int
    then: Callable[[], object]

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.then()


@attrs.define(eq=False)
class Interrupted:
    """A controller that has something of everything to do, and that is interrupted after so many steps."""

    step: int
    reconcile: Reconcile = attrs.field(factory=lambda: Reconcile([1.0, OSError(), RequeueAfter(1), TerminalError()]))
    informer: SharedInformer[Pod] = attrs.field(init=False)
    controller: Controller = attrs.field(init=False)
    dropped: list[Request] = attrs.field(factory=list)
    was_interrupted: bool = False

    def __attrs_post_init__(self) -> None:
        self.informer = pods("a", "b", "c", steps=[0.5, added(pod("d", 2)), modified(pod("a", 3))])
        self.controller = Controller("pods", self.reconcile, workers=2, max_retries=0, on_dropped=self.drop)
        self.controller.watch(self.informer)

    async def drop(self, request: Request, error: Exception) -> None:
        await trio.sleep(0.1)
        self.dropped.append(request)

    async def run(self, interrupt: Callable[[], object]) -> None:
        """Run until interrupted; a run that has nothing more to do is over, too."""

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


async def test_cancelled_at_any_step_nothing_is_left_of_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    for step in range(1, 1_000):
        case = Interrupted(step)
        async with trio.open_nursery() as inner:
            inner.start_soon(case.informer.run)
            with trio.CancelScope() as scope:
                await case.run(scope.cancel)
            await ended(case.controller, case.informer, case.reconcile)
            inner.cancel_scope.cancel()
        if not case.was_interrupted:
            break
    assert 30 < step < 999
    told = {record.getMessage() for record in caplog.records if record.name == "trioformer.controller"}
    assert {message.rpartition(", ")[2] for message in told} == {
        "since it is failure number 1 in a row: OSError",
        "since the error is terminal: TerminalError",
    }


# --- stopped ---


async def test_stopped_it_lets_what_runs_come_to_its_end_and_begins_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
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
        "controller pods: stopping; 2 running, 2 waiting and 0 delayed requests are left",
        "controller pods: ended",
    ]
    await ended(controller, informer, reconcile)


async def test_while_it_stops_events_and_results_come_to_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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
    await ended(controller, informer, reconcile)
    await nursery.start(controller.run)  # what was watched too late is watched now
    await trio.sleep(1)
    assert sorted(reconcile.calls[1:]) == ["a", "b", "z"]


async def test_a_failure_while_it_stops_is_logged_and_not_tried_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
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
        "controller pods: reconcile of default/a failed, not tried again, since the controller stops: OSError: too bad"
    ]
    await ended(controller, informer, reconcile)


async def test_what_takes_longer_than_the_drain_deadline_is_cancelled_and_run_returns(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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
    await ended(controller, informer, reconcile)


async def test_stopped_without_any_patience_it_cancels_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([math.inf])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        await inner.start(controller.run)
        await trio.sleep(1)
        with trio.move_on_after(0):
            await controller.stop()
    assert trio.current_time() == 1
    assert reconcile.cancelled == ["a"]


async def test_stopped_before_it_has_started_it_returns_to_whoever_starts_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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
    await ended(controller, informer, reconcile)


async def test_stopped_while_handlers_go_through_what_was_there_it_returns(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    def stop(event: object) -> bool:
        asked.append(event)
        if len(asked) == 1:
            nursery.start_soon(controller.stop)  # its turn comes before the handler is through
        return True

    asked: list[object] = []
    informer, reconcile = pods(*(f"p-{number}" for number in range(5_000))), Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(informer, predicates=[stop])
    await nursery.start(informer.run)
    await controller.run()
    assert len(asked) < 5_000
    await ended(controller, informer, reconcile)


async def test_stopped_at_any_step_it_finishes_what_it_has_begun(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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
            await ended(case.controller, case.informer, case.reconcile)
            if case.was_interrupted:
                assert case.reconcile.cancelled == []
            inner.cancel_scope.cancel()
        if not case.was_interrupted:
            break
    assert 30 < step < 999


async def test_stopping_inside_of_a_reconcile_is_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    refused: list[str] = []

    async def stop() -> None:
        with pytest.raises(RuntimeError, match="is stopped inside of a reconcile") as caught:
            await controller.stop()
        refused.append(str(caught.value))

    async def reconcile(request: Request) -> None:
        await stop()
        async with trio.open_nursery() as inner:
            inner.start_soon(stop)
        nursery.start_soon(controller.stop)  # of somebody else's nursery: this reconcile does not wait for it

    informer = pods("a")
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.fail_after(1):
        await controller.run()
    assert len(refused) == 2


async def test_stopping_is_for_everybody_and_as_often_as_you_like(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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


async def test_the_handlers_of_others_go_on_when_a_controller_has_ended(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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


async def test_the_end_of_an_informer_does_not_end_a_controller_that_has_started(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
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
