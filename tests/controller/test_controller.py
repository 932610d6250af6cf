"""Controllers with scripted lists and watches: the start, the order of reconciles, watches, and fatal errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.support.controllers import Observer, Reconcile, informer_of, leaves, pods, start, watch_and_start
from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, added, deleted, listing, modified, pod
from trioformer import CacheSyncError, ConnectionFailedError, ForbiddenError, Notification
from trioformer.controller import Controller, Request, labels_changed
from trioformer.models import unstructured_kind
from trioformer.models.core_v1 import Pod

# --- what is reconciled when ---


async def test_every_object_is_reconciled_at_the_start_and_after_each_event(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps = [10.0, added(pod("c", 2)), 10.0, modified(pod("a", 3)), 10.0, deleted(pod("b", 4))]
    informer, reconcile = pods("a", "b", steps=steps), Reconcile()
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(100)
    assert reconcile.calls == ["a", "b", "c", "a", "b"]
    assert [round(at) for at in reconcile.at] == [0, 0, 10, 20, 30]


async def test_workers_start_when_the_slowest_handler_has_synced(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    slow = ScriptedListWatch([ConnectionFailedError("not yet"), listing(pod("b"))])
    first, second, reconcile = pods("a"), informer_of(slow), Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(first)
    controller.watch(second)
    nursery.start_soon(first.run)
    await first.wait_until_synced()
    nursery.start_soon(controller.run)
    await trio.testing.wait_all_tasks_blocked()
    assert controller.statistics().phase == "waiting for handlers"
    assert controller.statistics().waiting_for == ("handler pods of informer Pod: not started",)
    await trio.sleep(100)
    assert reconcile.calls == []
    nursery.start_soon(second.run)
    await trio.sleep(10)
    assert sorted(reconcile.calls) == ["a", "b"]
    assert min(reconcile.at) > 100.5  # a backoff after the failed list
    assert controller.statistics().phase == "running"
    assert controller.statistics().waiting_for == ()


async def test_start_returns_when_the_initial_objects_have_been_added(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a", "b", "c"), Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    assert controller.statistics().handlers[0].calls == 3
    queue = controller.statistics().queue
    assert queue is not None
    assert queue.depth + queue.processing == 3
    assert reconcile.calls == []
    assert repr(controller) == "<Controller 'pods': running>"


async def test_what_a_controller_waits_for_is_logged_once_a_minute(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    forbidden = ForbiddenError("pods is forbidden", code=403, reason="Forbidden")
    informer = informer_of(ScriptedListWatch([ConnectionFailedError("connection refused"), forbidden, listing()]))
    controller = Controller("pods", Reconcile())
    controller.watch(informer)
    nursery.start_soon(controller.run)
    await trio.sleep(125)
    assert [record.getMessage() for record in caplog.records if record.name == "trioformer.controller"] == [
        "controller pods: waiting to start: handler pods of informer Pod: not started"
    ] * 2
    nursery.start_soon(informer.run)
    await trio.sleep(0.1)
    (reason,) = controller.statistics().waiting_for
    assert reason == "handler pods of informer Pod: backing off after connection refused"


async def test_a_controller_does_not_log_a_failure_of_its_cache_that_the_informer_logs(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer = informer_of(ScriptedListWatch([ConnectionFailedError("connection refused")]))
    controllers = [Controller(name, Reconcile()) for name in ("a", "b")]
    nursery.start_soon(informer.run)
    for controller in controllers:
        controller.watch(informer)
        nursery.start_soon(controller.run)
    await trio.sleep(59)
    assert len(caplog.records) == 1
    await trio.sleep(600)
    assert len(caplog.records) <= 11
    assert "connection refused" in controllers[0].statistics().waiting_for[0]


async def test_waiting_for_names_handlers_that_process_the_initial_objects(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reasons = pods("a", "b"), list[tuple[str, ...]]()

    def note(event: object) -> bool:
        reasons.append(controller.statistics().waiting_for)
        return True

    controller = Controller("pods", Reconcile())
    controller.watch(informer, predicates=[note])
    await start(nursery, controller, informer)
    assert reasons == [(f"handler pods of informer Pod: in call number {number}",) for number in (1, 2)]


async def test_enqueue_functions_may_read_every_cache_at_the_first_event(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    first, reconcile = pods("a"), Reconcile()
    second = informer_of(ScriptedListWatch([ConnectionFailedError("not yet"), listing(pod("b"))]))
    controller = Controller("pods", reconcile)
    controller.watch(first, enqueue=lambda _: [Request.of(each) for each in second.lister])
    controller.watch(second, enqueue=lambda _: [])
    await start(nursery, controller, first, second)
    await trio.sleep(10)
    assert reconcile.calls == ["b"]


async def test_one_request_has_one_worker_and_several_requests_have_several(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps = [1.0, modified(pod("a", 2)), 1.0, modified(pod("a", 3)), 1.0, modified(pod("a", 4))]
    informer, reconcile = pods("a", "b", "c", steps=steps), Reconcile([10.0, 10.0, 10.0])
    controller = Controller("pods", reconcile, workers=4)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(5)
    assert controller.statistics().active == reconcile.most_at_once == 3
    assert controller.statistics().workers == 4
    await trio.sleep(50)
    assert reconcile.calls == ["a", "b", "c", "a"]
    assert reconcile.at[3] == reconcile.at[0] + 10


async def test_changes_come_before_initial_objects(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    informer = pods("a", "b", "c", "d", steps=[1.0, added(pod("new", 2)), modified(pod("d", 3))])
    reconcile = Reconcile([10.0])
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(2)
    queue = controller.statistics().queue
    assert queue is not None
    assert queue.depth_by_priority == {0: 2, -100: 2}
    await trio.sleep(20)
    assert reconcile.calls == ["a", "new", "d", "b", "c"]


async def test_initial_objects_are_reconciled_beside_requests_that_are_always_added(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """With strict priorities ``a`` would never be reconciled: there is always a request of a higher priority."""
    informer, calls = pods("a"), []

    async def reconcile(request: Request) -> None:
        calls.append(request.name)
        if request.name != "a":
            controller.add(request)
            await trio.sleep(1)

    controller = Controller("pods", reconcile)
    controller.watch(informer, enqueue=lambda obj: [Request("default", name) for name in ("a", "x", "y")])
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    controller.add(Request("default", "x"))
    controller.add(Request("default", "y"))
    await trio.sleep(30)
    assert "a" in calls[:10]


async def test_predicates_and_enqueue_functions_decide_what_is_reconciled(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps = [1.0, modified(pod("a", 2, node="n1")), 1.0, modified(pod("a", 3, node="n2")), 1.0, deleted(pod("b", 4))]
    informer, reconcile = pods("a", "b", steps=steps), Reconcile()

    def nodes(obj: Pod) -> list[Request]:
        return [Request(None, obj.spec.node_name)] if obj.spec.node_name else []

    events: list[Notification[Pod]] = []

    def is_change(event: Notification[Pod]) -> bool:
        events.append(event)
        return True

    controller = Controller("nodes", reconcile)
    controller.watch(informer, enqueue=nodes, predicates=[is_change])
    by_label = Controller("labels", quiet_reconcile := Reconcile())
    by_label.watch(informer, predicates=[labels_changed])
    nursery.start_soon(by_label.run)
    await start(nursery, controller, informer)
    await trio.sleep(10)
    assert reconcile.calls == ["n1", "n1", "n2"]
    assert [type(event).__name__ for event in events] == ["Added", "Added", "Updated", "Updated", "Deleted"]
    assert quiet_reconcile.calls == ["a", "b", "b"]


async def test_watching_during_a_run_adds_the_cached_objects(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    first, second, reconcile = pods("a"), pods("b", steps=[20.0, modified(pod("b", 2))]), Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(first)
    await start(nursery, controller, first)
    await trio.sleep(1)
    controller.watch(second)
    await trio.sleep(1)
    assert controller.statistics().phase == "running"
    assert reconcile.calls == ["a"]
    nursery.start_soon(second.run)
    await trio.sleep(30)
    assert reconcile.calls == ["a", "b", "b"]
    assert len(controller.statistics().handlers) == 2


async def test_an_informer_that_is_watched_during_the_start_is_waited_for(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    first, second, reconcile = pods("a"), pods("b"), Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(first)
    nursery.start_soon(controller.run)
    await trio.sleep(1)
    controller.watch(second)
    nursery.start_soon(first.run)
    await trio.sleep(1)
    assert controller.statistics().phase == "waiting for handlers"
    nursery.start_soon(second.run)
    await trio.sleep(1)
    assert sorted(reconcile.calls) == ["a", "b"]


async def test_a_request_can_be_added_while_the_controller_runs(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    controller = Controller("timer", reconcile := Reconcile())
    request = Request(None, "now")
    assert not controller.add(request)
    await nursery.start(controller.run)
    assert controller.add(request)
    await trio.sleep(1)
    assert reconcile.calls == ["now"]
    await controller.stop()
    assert not controller.add(request)


# --- fatal errors ---


class Item(NamedTuple):
    """A request of one's own form, which can be iterated over like a tuple of requests."""

    name: str


Widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
NO_LISTS = ["a", b"a", Request("default", "a"), Item("a"), {"a": "b"}, Widget.of({"metadata": {"name": "a"}}), None]


@pytest.mark.parametrize("returned", NO_LISTS, ids=repr)
async def test_an_enqueue_function_must_return_requests_in_a_list(
    returned: Any, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """Not a string, of which each letter would be a request."""
    reconcile = Reconcile()
    controller = Controller("pods", reconcile)
    controller.watch(informer := pods("a"), enqueue=lambda obj: returned)
    await nursery.start(informer.run)
    with pytest.raises(ExceptionGroup) as caught, trio.fail_after(60):
        await controller.run()
    (error,) = leaves(caught.value)
    assert isinstance(error, TypeError)
    assert "[Request.of(obj)]" in str(error)
    assert reconcile.gaps() == []


@pytest.mark.parametrize("what", ["predicate", "enqueue", "enqueue while iterating"])
async def test_errors_of_predicates_and_enqueue_functions_end_the_run_only(
    what: str, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer = pods("a", steps=[10.0, added(pod("bad", 2)) + added(pod("bad2", 3)), 10.0, added(pod("c", 4))])
    informer.add_event_handler(other := Recorder())
    reconcile = Reconcile([math.inf])

    events: list[str] = []

    def fail(event: object) -> bool:
        events.append(str(event))
        if "bad" in str(event):
            raise ZeroDivisionError(what)
        return True

    def requests(obj: Pod) -> list[Request]:
        fail(obj)
        return [Request.of(obj)]

    controller = Controller("pods", reconcile)
    if what == "predicate":
        controller.watch(informer, predicates=[fail])
    elif what == "enqueue":
        controller.watch(informer, enqueue=requests)
    else:
        controller.watch(informer, enqueue=lambda obj: (Request.of(obj) for _ in range(1) if fail(obj)))
    await nursery.start(informer.run)
    with pytest.raises(ExceptionGroup) as caught:
        await controller.run()
    (error,) = leaves(caught.value)
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__ == ["in controller pods, on Added Pod default/bad"]
    assert reconcile.cancelled == ["a"]
    assert len(events) == 2
    assert informer.statistics().handlers_and_subscriptions == 1
    await trio.sleep(20)
    assert other.seen == ["+a@1*", "+bad@2", "+bad2@3", "+c@4"]


class StopEverything(BaseException):
    """A BaseException that is not an Exception."""


async def test_a_base_exception_ends_the_controller(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    async def stop_everything(_: Request) -> None:
        await trio.sleep(1)
        raise StopEverything

    informer, observer = pods("a", "b"), Observer()
    controller = Controller("pods", Reconcile([stop_everything, math.inf]), workers=2, observer=observer)
    controller.watch(informer)
    await nursery.start(informer.run)
    with pytest.raises(BaseExceptionGroup) as caught:
        await controller.run()
    assert [type(leaf) for leaf in leaves(caught.value)] == [StopEverything]
    assert sorted(observer.results) == ["a cancelled 1", "b cancelled 1"]


async def test_an_informer_that_fails_before_the_start_is_a_cache_sync_error(
    autojump_clock: MockClock,
) -> None:
    forbidden = ForbiddenError("pods is forbidden", code=403, reason="Forbidden")
    good, bad = pods("a"), informer_of(ScriptedListWatch([forbidden]))
    controller = Controller("pods", Reconcile())
    controller.watch(good)
    controller.watch(bad)
    found: list[BaseException] = []

    async def fail() -> None:
        with pytest.raises(ExceptionGroup):
            await bad.run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(good.run)
        nursery.start_soon(fail)
        with pytest.raises(ExceptionGroup) as caught:
            await controller.run()
        found = leaves(caught.value)
        nursery.cancel_scope.cancel()
    (error,) = found
    assert isinstance(error, CacheSyncError)
    assert str(error).startswith(
        "controller pods cannot start: handler pods of informer Pod: failed after pods is forbidden"
    )
    assert error.not_synced[0].phase == "failed"


async def test_an_informer_that_has_stopped_is_an_error(autojump_clock: MockClock) -> None:
    informer = pods("a")
    async with trio.open_nursery() as nursery:
        await nursery.start(informer.run)
        nursery.cancel_scope.cancel()
    controller = Controller("pods", Reconcile())
    controller.watch(informer)
    with pytest.raises(ExceptionGroup) as caught:
        await controller.run()
    assert str(leaves(caught.value)[0]).startswith("cannot add a handler: the informer of Pod has stopped")
    assert controller.statistics().phase == "not running"


async def test_a_controller_may_run_again_but_not_twice_at_the_same_time(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer = pods("a", steps=[5.0, added(pod("b", 2))])
    controller = Controller("pods", reconcile := Reconcile())
    controller.watch(informer)
    await nursery.start(informer.run)
    for _ in range(3):
        async with trio.open_nursery() as inner:
            await inner.start(controller.run)
            with pytest.raises(RuntimeError, match="controller pods is already running"):
                await controller.run()
            await trio.sleep(3)
            inner.cancel_scope.cancel()
        assert controller.statistics().phase == "not running"
        assert informer.statistics().handlers_and_subscriptions == 0
    assert reconcile.calls == ["a", "a", "b", "a", "b"]
    assert controller.statistics().succeeded == 5
