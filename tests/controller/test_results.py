"""What becomes of a request when its reconcile has ended, and what is told of it."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.support.controllers import Observer, Reconcile, errors_of, pods, start
from tests.support.scripted_list_watch import modified, pod
from trioformer.controller import Controller, Request, RequeueAfter, TerminalError
from trioformer.errors import ConnectionFailedError
from trioformer.workqueue import ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter

# --- what comes again ---


async def test_a_failure_is_tried_again_later_and_later_until_it_succeeds(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = pods("a", steps=[10.0, modified(pod("a", 2))])
    reconcile = Reconcile([OSError(), OSError(), OSError(), None, OSError()])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(5)
    assert reconcile.gaps() == [0.005, 0.01, 0.02]
    assert controller.statistics().failing == 0
    await trio.sleep(100)
    assert reconcile.gaps()[4:] == [0.005]  # it began anew
    assert (controller.statistics().failed, controller.statistics().succeeded) == (4, 2)


async def test_a_failure_is_logged_once_with_the_controller_the_key_and_what_comes_now(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, error = pods("a"), ValueError("no\nsuch thing")
    controller = Controller("pods", Reconcile([error, TerminalError("never")]))
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(5)
    failed = "controller pods: reconcile of default/a failed"
    assert errors_of(caplog) == [
        f"{failed}, to be tried again in 0.005 s, after failure number 1 in a row: ValueError: no such thing",
        f"{failed}, not tried again, since the error is terminal: TerminalError: never",
    ]
    record = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert record.exc_info is not None
    assert record.exc_info[1] is error


async def test_an_outage_is_logged_in_a_line_for_each_try_without_tracebacks(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, error = pods("a"), ConnectionFailedError("get pods/a: connection refused")
    controller = Controller("pods", Reconcile([error, error]))
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(5)
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(records) == 2
    for record in records:
        assert record.exc_info is None
        assert record.message.endswith("in a row: ConnectionFailedError: get pods/a: connection refused")


async def test_an_event_brings_a_failed_request_before_its_delay_is_over(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, reconcile = pods("a", steps=[10.0, modified(pod("a", 2))]), Reconcile([OSError()])
    controller = Controller("pods", reconcile, limiter=ItemFastSlowRateLimiter(500, 500, 1))
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert reconcile.gaps() == [10]


async def test_requeue_after_brings_a_request_again_and_forgets_its_failures(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = pods("a", steps=[100.0, modified(pod("a", 2))])
    script = [OSError(), OSError(), RequeueAfter(7), OSError(), RequeueAfter(0), RequeueAfter(500)]
    reconcile = Reconcile(script)
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert reconcile.gaps()[:5] == [0.005, 0.01, 7, 0.005, 0]
    assert len(reconcile.calls) == 7  # the event came before the 500 s were over, and they are over with it
    assert round(reconcile.at[-1]) == 100
    statistics = controller.statistics()
    assert (statistics.succeeded, statistics.requeued, statistics.failed) == (4, 3, 3)


async def test_a_terminal_error_is_not_tried_again_until_something_happens(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = pods("a", steps=[100.0, modified(pod("a", 2))])
    reconcile = Reconcile([OSError(), ExceptionGroup("all of it", [TerminalError("no")]), OSError()])
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert [round(gap, 3) for gap in reconcile.gaps()] == [0.005, 99.995, 0.005]
    assert (controller.statistics().terminal, controller.statistics().failed) == (1, 3)


async def test_five_times_tried_again_then_given_up_and_told(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer = pods("a", "b", steps=[100.0, modified(pod("a", 2))])
    told: list[tuple[str, str, float]] = []

    async def on_dropped(request: Request, error: Exception) -> None:
        await trio.sleep(1)
        told.append((str(request), str(error), trio.current_time()))

    async def fail(request: Request) -> None:
        calls.append(request.name)
        if request.name == "a":
            raise OSError(f"try {calls.count('a')}")

    calls: list[str] = []
    controller = Controller("pods", fail, max_retries=5, on_dropped=on_dropped)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(50)
    assert calls.count("a") == 6
    assert [each[:2] for each in told] == [("default/a", "try 6")]
    assert errors_of(caplog)[-1] == (
        "controller pods: reconcile of default/a failed, given up, since it is failure number 6 in a row: "
        "OSError: try 6"
    )
    await trio.sleep(100)
    assert calls.count("a") == 12  # an event brought it again, with all its tries
    statistics = controller.statistics()
    assert (statistics.dropped, statistics.failed, statistics.failing) == (2, 12, 0)


async def test_no_retries_means_none(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    informer, reconcile = pods("a"), Reconcile([OSError()])
    controller = Controller("pods", reconcile, max_retries=0)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(100)
    assert reconcile.calls == ["a"]
    assert controller.statistics().dropped == 1


async def test_retries_are_counted_whatever_the_limiter_counts(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    class Constant:
        def when(self, key: Request) -> float:
            return 1.0

        def forget(self, key: Request) -> None: ...

        def num_requeues(self, key: Request) -> int:
            return 0

    informer, reconcile = pods("a"), Reconcile([OSError()] * 10)
    controller = Controller("pods", reconcile, limiter=Constant(), max_retries=3)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(100)
    assert reconcile.gaps() == [1, 1, 1]


async def test_a_limiter_of_ones_own_begins_anew_with_each_run(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([OSError()] * 100)
    controller = Controller("pods", reconcile, limiter=ItemExponentialFailureRateLimiter(1, 1_000))
    controller.watch(informer)
    await nursery.start(informer.run)
    for _ in range(2):
        with trio.move_on_after(10):
            await controller.run()
    assert reconcile.gaps() == [1, 2, 4, 3, 1, 2, 4]


async def test_a_reconcile_that_runs_too_long_is_cancelled_and_has_failed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, reconcile = pods("a"), Reconcile([math.inf, 29.0])
    controller = Controller("pods", reconcile, reconcile_deadline=30)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(100)
    assert (reconcile.cancelled, reconcile.done) == (["a"], ["a"])
    assert reconcile.gaps() == [30.005]
    statistics = controller.statistics()
    assert (statistics.late, statistics.failed, statistics.succeeded) == (1, 1, 1)
    (message,) = errors_of(caplog)
    assert message.endswith("the reconcile was cancelled at its deadline, after 30 s")


async def test_a_reconciles_own_lateness_is_an_error_like_others(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([trio.TooSlowError("its own")])
    controller = Controller("pods", reconcile, reconcile_deadline=30)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(100)
    assert (controller.statistics().late, controller.statistics().failed) == (0, 1)


async def test_a_result_of_another_type_is_a_failure(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def reconcile(request: Request) -> bool:
        return True

    informer = pods("a")
    controller = Controller("pods", reconcile, max_retries=0)  # type: ignore[arg-type]
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(1)
    assert errors_of(caplog)[0].endswith("TypeError: a reconcile must return None or RequeueAfter, not bool")


# --- what is told ---


async def test_an_observer_is_told_how_each_reconcile_went(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, observer = pods("a"), Observer()
    script = [None, RequeueAfter(1), OSError(), 3.0, math.inf, TerminalError(), math.inf]
    controller = Controller("pods", Reconcile(script), observer=observer, reconcile_deadline=5)
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        await inner.start(controller.run)
        for _ in range(3):
            await trio.sleep(10)
            controller.add(Request("default", "a"))
        await trio.sleep(1)
        inner.cancel_scope.cancel()
    assert [each for each in observer.told if each != "a began"] == [
        "a success 0",
        "a requeue_after 0",
        "a error 0",
        "a success 3",
        "a error 5 late",
        "a error 0 terminal",
        "a cancelled 1",
    ]
    assert observer.told.count("a began") == 7


async def test_the_queues_observer_is_told_of_the_queue(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer, observer = pods("a"), Observer()
    controller = Controller("pods", Reconcile([RequeueAfter(1)]), observer=observer, queue_observer=observer)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(10)
    once = ["a taken", "a began"]
    assert observer.told == [
        *("a added -100", *once, "a requeue_after 0", "a delayed 1", "a finished"),
        *("a added -100", *once, "a success 0", "a finished"),
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda reconcile: Controller("x", reconcile, workers=0),
        lambda reconcile: Controller("x", reconcile, max_retries=-1),
        lambda reconcile: Controller("x", reconcile, reconcile_deadline=0),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make: Callable[[Reconcile], Controller]) -> None:
    with pytest.raises(ValueError, match=re.compile("must be >")):
        make(Reconcile())


async def test_a_controller_that_does_not_run_has_statistics(autojump_clock: trio.testing.MockClock) -> None:
    controller = Controller("pods", Reconcile(), workers=2)
    statistics = controller.statistics()
    assert (statistics.phase, statistics.workers, statistics.active, statistics.queue) == ("not running", 2, 0, None)
    assert repr(controller) == "<Controller 'pods': not running>"
