"""Informers that fail while a controller runs: log lines, and ``waiting_for`` of the statistics."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock

from tests.support.controllers import Reconcile, informer_of, pods, start, watch_and_start
from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, listing, pod
from trioformer.controller import Controller, RequeueAfter
from trioformer.errors import ConnectionFailedError, ForbiddenError
from trioformer.models.core_v1 import Pod

HANDLER = "handler pods of informer Pod"
LOST = ConnectionFailedError("watch pods: connection reset")
FORBIDDEN = ForbiddenError("list pods: forbidden", code=403, reason="Forbidden")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the controller's log lines about its informers."""
    found = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "trioformer.controller"]
    return [f"{level} {message}" for level, message in found if "events" in message]


class Failing(Recorder):
    """A handler that fails, which ends the informer."""

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        raise KeyError("no such field")


async def test_an_informer_that_fails_while_the_controller_runs_is_logged(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def run_informer() -> None:
        with pytest.raises(ExceptionGroup):
            await informer.run()

    informer, controller = pods("a"), Controller("pods", Reconcile([RequeueAfter(60)]))
    controller.watch(informer)
    nursery.start_soon(run_informer)
    await nursery.start(controller.run)
    informer.add_event_handler(Failing())
    await trio.sleep(100)
    (line,) = lines(caplog)
    assert line.startswith(f"ERROR controller pods: no more events: {HANDLER}: failed after ")
    (reason,) = controller.statistics().waiting_for
    assert reason.startswith(f"{HANDLER}: failed after ")
    assert controller.statistics().phase == "running"


async def test_an_informer_that_is_cancelled_while_the_controller_runs_is_logged(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, controller = pods("a"), Controller("pods", Reconcile([RequeueAfter(60)]))
    controller.watch(informer)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            inner.start_soon(informer.run)
            await nursery.start(controller.run)
            assert controller.statistics().waiting_for == ()
            scope.cancel()
    await trio.sleep(100)
    assert lines(caplog) == [f"WARNING controller pods: no more events: {HANDLER}: stopped"]
    assert controller.statistics().waiting_for == (f"{HANDLER}: stopped",)


async def test_an_informer_that_is_watched_later_and_stops_is_logged(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, later, controller = pods("a"), pods("b"), Controller("pods", Reconcile())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(5)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            await inner.start(later.run)
            controller.watch(later)
            await trio.sleep(5)
            scope.cancel()
    await trio.sleep(1)
    assert lines(caplog) == [f"WARNING controller pods: no more events: {HANDLER}: stopped"]


async def test_an_informer_that_cannot_watch_is_logged_once_and_when_it_watches_again(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.controller")
    # The watch breaks after 10 s, and requests are forbidden for some minutes.
    lists = [listing(pod("a")), *[FORBIDDEN] * 6, listing(pod("a"), version=2)]
    source = ScriptedListWatch(lists, [[10.0, LOST], [FORBIDDEN], [None]])
    informer, controller = informer_of(source), Controller("pods", Reconcile())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(9)
    assert controller.statistics().waiting_for == ()
    await trio.sleep(10)
    (reason,) = controller.statistics().waiting_for
    assert reason.startswith(f"{HANDLER}: backing off after list pods: forbidden")
    assert lines(caplog) == []  # most failures are short
    await trio.sleep(600)
    delayed, again = lines(caplog)
    assert delayed.startswith(f"WARNING controller pods: events are delayed: {HANDLER}: ")
    assert "list pods: forbidden" in delayed
    assert again == f"INFO controller pods: events are received again: {HANDLER}"
    assert controller.statistics().waiting_for == ()


async def test_all_informers_that_fail_are_in_one_line(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    controller = Controller("pods", Reconcile())
    informers = [informer_of(ScriptedListWatch([listing()], [[1.0, LOST], *[LOST] * 99])) for _ in range(3)]
    for each in informers:
        controller.watch(each)
    await start(nursery, controller, *informers)
    await trio.sleep(200)
    (line,) = lines(caplog)
    assert line.count(HANDLER) == 3


async def test_a_short_failure_is_not_logged(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.controller")
    lists = [listing(pod("a")), *[FORBIDDEN] * 3, listing(pod("a"), version=2)]
    source = ScriptedListWatch(lists, [[28.0, LOST], [FORBIDDEN], [None]])
    informer, controller = informer_of(source), Controller("pods", Reconcile())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(30.5)
    assert controller.statistics().waiting_for != ()
    await trio.sleep(100)
    assert controller.statistics().waiting_for == ()
    assert lines(caplog) == []


async def test_of_two_informers_with_the_same_name_only_the_failing_one_is_logged(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.controller")
    lists = [listing(pod("a")), *[FORBIDDEN] * 6, listing(pod("a"), version=2)]
    failing, works = informer_of(ScriptedListWatch(lists, [[1.0, LOST], [FORBIDDEN], [None]])), pods("b")
    controller = Controller("pods", Reconcile())
    controller.watch(failing)
    controller.watch(works)
    await start(nursery, controller, failing, works)
    await trio.sleep(600)
    delayed, again = lines(caplog)
    assert (delayed.split()[0], again.split()[0]) == ("WARNING", "INFO")
    assert delayed.count(HANDLER) == 1


async def test_an_informer_that_stops_with_its_controller_is_not_logged(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def shielded(_: object) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(50)

    informer, controller = pods("a"), Controller("pods", Reconcile([shielded]))
    controller.watch(informer)
    async with trio.open_nursery() as inner:
        await inner.start(informer.run)
        await nursery.start(controller.run)
        await trio.sleep(1)
        nursery.start_soon(controller.stop)
        await trio.sleep(1)
        inner.cancel_scope.cancel()
    await trio.sleep(100)
    assert lines(caplog) == []
    assert controller.statistics().waiting_for == ()
