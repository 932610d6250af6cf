"""What a controller does after each result of a reconcile: retries, delays, log lines, observers."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from tests.support.controllers import Observer, Reconcile, errors_of, pods, watch_and_start
from tests.support.scripted_list_watch import modified, pod
from trioformer.controller import (
    Controller,
    Request,
    RequeueAfter,
    RetryAfter,
    TerminalError,
    current_request,
)
from trioformer.errors import ConnectionFailedError
from trioformer.workqueue import ItemExponentialFailureRateLimiter

# --- retries and delays ---


async def test_a_failed_request_is_retried_with_growing_delays_until_it_succeeds(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer = pods("a", steps=[10.0, modified(pod("a", 2))])
    reconcile = Reconcile([OSError(), OSError(), OSError(), None, OSError()])
    controller = Controller("pods", reconcile, limiter=ItemExponentialFailureRateLimiter())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(5)
    assert reconcile.gaps() == [0.005, 0.01, 0.02]
    assert controller.statistics().failing == 0
    await trio.sleep(100)
    assert reconcile.gaps()[4:] == [0.005]  # the first delay again
    assert (controller.statistics().failed, controller.statistics().succeeded) == (4, 2)


@pytest.mark.parametrize(("result", "first"), [(RequeueAfter(10), "b"), (RequeueAfter(10, priority=5), "a")])
async def test_a_requeue_keeps_the_priority_of_the_call_or_sets_another(
    nursery: trio.Nursery, autojump_clock: MockClock, result: RequeueAfter, first: str
) -> None:
    reconcile = Reconcile([result, 20.0])
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, pods("a"))
    await trio.sleep(1)
    controller.add(Request("default", "c"))
    await trio.sleep(1)
    controller.add(Request("default", "b"))
    await trio.sleep(100)
    assert reconcile.calls[:3] == ["a", "c", first]


async def test_a_failure_is_logged_once_with_controller_key_and_next_step(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, error = pods("a"), ValueError("no\nsuch thing")
    controller = Controller(
        "pods", Reconcile([error, TerminalError("never")]), limiter=ItemExponentialFailureRateLimiter()
    )
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(5)
    failed = "controller pods: reconcile of default/a failed"
    assert errors_of(caplog) == [
        f"{failed}, retrying in 0.005 s (failure 1 in a row): ValueError: no such thing",
        f"{failed}, not retrying (terminal error): TerminalError: never",
    ]
    record = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert record.exc_info is not None
    assert record.exc_info[1] is error


async def test_errors_of_an_outage_are_logged_in_one_line_without_traceback(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, error = pods("a"), ConnectionFailedError("get pods/a: connection refused")
    controller = Controller("pods", Reconcile([error, error]))
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(5)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is None
    assert record.message.endswith("in a row): ConnectionFailedError: get pods/a: connection refused")


async def test_an_event_adds_a_failed_request_before_the_end_of_its_delay(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a", steps=[10.0, modified(pod("a", 2))]), Reconcile([OSError()])
    controller = Controller("pods", reconcile, limiter=ItemExponentialFailureRateLimiter(500, 500))
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert reconcile.gaps() == [10]


async def test_requeue_after_adds_the_request_and_forgets_its_failures(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer = pods("a", steps=[100.0, modified(pod("a", 2))])
    script = [OSError(), OSError(), RequeueAfter(7), OSError(), RequeueAfter(0), RequeueAfter(500)]
    reconcile = Reconcile(script)
    controller = Controller("pods", reconcile, limiter=ItemExponentialFailureRateLimiter())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert reconcile.gaps()[:5] == [0.005, 0.01, 7, 0.005, 0]
    assert len(reconcile.calls) == 7  # the event came before the end of the 500 s, and ended them
    assert round(reconcile.at[-1]) == 100
    statistics = controller.statistics()
    assert (statistics.succeeded, statistics.requeued, statistics.failed) == (4, 3, 3)


async def test_after_a_terminal_error_a_request_waits_for_the_next_event(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer = pods("a", steps=[100.0, modified(pod("a", 2))])
    reconcile = Reconcile([OSError(), ExceptionGroup("all of it", [TerminalError("no")]), OSError()])
    controller = Controller("pods", reconcile, limiter=ItemExponentialFailureRateLimiter())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert [round(gap, 3) for gap in reconcile.gaps()] == [0.005, 99.995, 0.005]
    assert (controller.statistics().terminal, controller.statistics().failed) == (1, 3)


async def test_repeated_failures_are_one_line_a_minute_with_a_count_and_an_example(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Request) -> None:
        raise error_of[request.name]

    error_of = {"a": OSError("disk full"), "b": OSError("disk full"), "c": ExceptionGroup("", [KeyError()])}
    informer = pods(*error_of, steps=[61.0, modified(pod("b", 2))])
    controller = Controller("pods", fail, limiter=ItemExponentialFailureRateLimiter(base_delay=10))
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(60)  # each of the three has failed after 0 s, 10 s and 30 s
    failed = "controller pods: reconcile of default/"
    assert errors_of(caplog) == [
        f"{failed}a failed, retrying in 10 s (failure 1 in a row): OSError: disk full",
        f"{failed}c failed, retrying in 10 s (failure 1 in a row): KeyError",
    ]
    await trio.sleep(5)
    more = "(5 suppressed since the last such line)"
    assert errors_of(caplog)[2:] == [
        f"{failed}b failed, retrying in 80 s (failure 4 in a row): OSError: disk full {more}"
    ]
    await controller.stop()
    assert errors_of(caplog)[3:] == [f"{failed}c failed with KeyError, retry (2 suppressed since the last such line)"]


async def test_repeated_failures_are_logged_each_at_level_debug(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "trioformer.controller")
    controller = Controller("pods", Reconcile([OSError(), OSError(), OSError()]))
    await watch_and_start(nursery, controller, pods("a"))
    await trio.sleep(5)
    levels = [record.levelno for record in caplog.records if "reconcile of default/a failed" in record.getMessage()]
    assert levels == [logging.ERROR, logging.DEBUG, logging.DEBUG]


async def test_each_run_logs_its_first_failure(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, controller = pods("a"), Controller("pods", Reconcile([TerminalError(), TerminalError()]))
    controller.watch(informer)
    nursery.start_soon(informer.run)
    for _ in range(2):
        await nursery.start(controller.run)
        await trio.sleep(1)
        await controller.stop()
    assert len(errors_of(caplog)) == 2


# --- on_error ---


async def test_on_error_is_called_after_each_failure_with_what_happens_next(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    failed, again, last, final = OSError(1), OSError(2), OSError(3), TerminalError()
    seen: list[tuple[str, Exception, str, object]] = []

    async def on_error(request: Request, error: Exception, then: str) -> None:
        seen.append((str(request), error, then, current_request()))

    reconcile = Reconcile([failed, again, last, RetryAfter(5), RequeueAfter(5), None])
    controller = Controller("pods", reconcile, max_retries=2, on_error=on_error)
    await watch_and_start(nursery, controller, pods("a"))
    await trio.sleep(50)
    controller.add(Request("default", "a"))
    await trio.sleep(50)
    reconcile.script.append(final)
    controller.add(Request("default", "a"))
    await trio.sleep(50)
    assert [each[:3] for each in seen] == [
        ("default/a", failed, "retry"),
        ("default/a", again, "retry"),
        ("default/a", last, "dropped"),
        ("default/a", final, "terminal"),
    ]
    assert all(each[3] is not None for each in seen), "log lines in on_error name the request"


async def test_the_worker_waits_for_on_error(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    async def on_error(request: Request, error: Exception, then: str) -> None:
        await trio.sleep(10)

    reconcile = Reconcile([OSError()])
    controller = Controller("pods", reconcile, on_error=on_error)
    await watch_and_start(nursery, controller, pods("a"))
    await trio.sleep(50)
    assert reconcile.gaps() == [10.0]


async def fail_in_on_error(request: Request, error: Exception, then: str) -> None:
    raise ZeroDivisionError(then)


async def fail_when_cancelled(request: Request, error: Exception, then: str) -> None:
    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ZeroDivisionError(then)


@pytest.mark.parametrize("on_error", [fail_in_on_error, fail_when_cancelled])
async def test_an_exception_in_on_error_is_logged_and_changes_nothing(
    on_error: Callable[[Request, Exception, str], Awaitable[None]],
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reconcile = Reconcile([OSError("disk full"), OSError("disk full"), OSError("disk full")])
    controller = Controller("pods", reconcile, max_retries=1, on_error=on_error)
    await watch_and_start(nursery, controller, pods("a"))
    await trio.sleep(50)
    assert (len(reconcile.calls), controller.statistics().dropped) == (2, 1)
    assert controller.statistics().phase == "running"
    text = "controller pods: on_error of default/a failed, ignoring the exception: ZeroDivisionError: retry"
    assert [line for line in errors_of(caplog) if "on_error" in line] == [text]
    await controller.stop()
    assert errors_of(caplog)[-1] == (
        "controller pods: on_error of default/a failed with ZeroDivisionError, ignored"
        " (1 suppressed since the last such line)"
    )


@pytest.mark.parametrize("cleans_up_badly", [False, True])
async def test_a_cancelled_on_error_ends_with_the_controller(
    cleans_up_badly: bool, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps: list[str] = []

    async def on_error(request: Request, error: Exception, then: str) -> None:
        steps.append(then)
        async with trio.open_nursery() as inner:
            inner.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                if cleans_up_badly:
                    raise ZeroDivisionError

    controller = Controller("pods", Reconcile([OSError()]), on_error=on_error)
    with trio.move_on_after(5) as scope:
        async with trio.open_nursery() as inner:
            await watch_and_start(inner, controller, pods("a"))
    assert scope.cancelled_caught
    assert steps == ["retry"]


async def test_a_request_that_fails_during_a_stop_is_dropped(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    async def fail_late(request: Request) -> None:
        await trio.sleep(10)
        raise OSError

    async def on_error(request: Request, error: Exception, then: str) -> None:
        steps.append(then)

    steps: list[str] = []
    controller = Controller("pods", fail_late, on_error=on_error)
    await watch_and_start(nursery, controller, pods("a"))
    await trio.sleep(1)
    await controller.stop()
    assert steps == ["dropped"]


async def test_a_request_is_dropped_after_five_retries(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer = pods("a", "b", steps=[100.0, modified(pod("a", 2))])
    dropped: list[tuple[str, str, float]] = []

    async def on_error(request: Request, error: Exception, then: str) -> None:
        if then == "dropped":
            await trio.sleep(1)
            dropped.append((str(request), str(error), trio.current_time()))

    async def fail(request: Request) -> None:
        calls.append(request.name)
        if request.name == "a":
            raise OSError(f"try {calls.count('a')}")

    calls: list[str] = []
    controller = Controller("pods", fail, max_retries=5, on_error=on_error)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(50)
    assert calls.count("a") == 6
    assert [each[:2] for each in dropped] == [("default/a", "try 6")]
    assert errors_of(caplog)[-1] == (
        "controller pods: reconcile of default/a failed, giving up (failure 6 in a row): OSError: try 6"
    )
    await trio.sleep(100)
    assert calls.count("a") == 12  # an event added it again, with all retries
    statistics = controller.statistics()
    assert (statistics.dropped, statistics.failed, statistics.failing) == (2, 12, 0)


async def test_retries_are_counted_independently_of_the_limiter(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    class Constant:
        def when(self, key: Request) -> float:
            return 1.0

        def forget(self, key: Request) -> None: ...

        def num_requeues(self, key: Request) -> int:
            return 0

    informer, reconcile = pods("a"), Reconcile([OSError()] * 10)
    controller = Controller("pods", reconcile, limiter=Constant(), max_retries=3)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(100)
    assert reconcile.gaps() == [1, 1, 1]


async def test_the_failures_in_a_users_limiter_are_forgotten_after_each_run(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([OSError()] * 100)
    controller = Controller("pods", reconcile, limiter=ItemExponentialFailureRateLimiter(1, 1_000))
    controller.watch(informer)
    await nursery.start(informer.run)
    for _ in range(2):
        with trio.move_on_after(10):
            await controller.run()
    assert reconcile.gaps() == [1, 2, 4, 3, 1, 2, 4]


async def test_a_reconcile_is_cancelled_at_its_deadline_and_has_failed(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer, reconcile = pods("a"), Reconcile([math.inf, 29.0])
    controller = Controller("pods", reconcile, reconcile_deadline=30, limiter=ItemExponentialFailureRateLimiter())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(100)
    assert (reconcile.cancelled, reconcile.done) == (["a"], ["a"])
    assert reconcile.gaps() == [30.005]
    statistics = controller.statistics()
    assert (statistics.timed_out, statistics.failed, statistics.succeeded) == (1, 1, 1)
    (message,) = errors_of(caplog)
    assert message.endswith("the reconcile was cancelled at its deadline, after 30 s")


async def test_a_too_slow_error_of_the_reconcile_itself_is_no_timeout(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([trio.TooSlowError("its own")])
    controller = Controller("pods", reconcile, reconcile_deadline=30)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(100)
    assert (controller.statistics().timed_out, controller.statistics().failed) == (0, 1)


# --- observers, options, statistics ---


async def test_an_observer_receives_the_result_of_each_reconcile(
    nursery: trio.Nursery, autojump_clock: MockClock
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
    assert observer.results == [
        "a success 0",
        "a requeue_after 0",
        "a error 0",
        "a success 3",
        "a error 5 timeout",
        "a error 0 terminal",
        "a cancelled 1",
    ]
    assert observer.calls.count("a began") == 7


async def test_a_queue_observer_receives_what_happens_in_the_queue(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, observer = pods("a"), Observer()
    controller = Controller("pods", Reconcile([RequeueAfter(1)]), observer=observer)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(10)
    once = ["a taken", "a began"]
    assert observer.calls == [
        *("a added -100", *once, "a requeue_after 0", "a delayed 1", "a finished"),
        *("a added -100", *once, "a success 0", "a finished"),
    ]


async def test_a_controller_that_does_not_run_has_statistics(autojump_clock: MockClock) -> None:
    controller = Controller("pods", Reconcile(), workers=2)
    statistics = controller.statistics()
    assert (statistics.phase, statistics.workers, statistics.active, statistics.queue) == ("not running", 2, 0, None)
    assert repr(controller) == "<Controller 'pods': not running>"


# --- RetryAfter ---


async def test_retry_after_is_a_success_that_forgets_failures_and_is_logged_for_debugging(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "trioformer.controller")
    informer, observer = pods("a"), Observer()
    reconcile = Reconcile([OSError(), OSError(), RetryAfter(60, "no certificate yet"), OSError(), None])
    limiter: ItemExponentialFailureRateLimiter[Request] = ItemExponentialFailureRateLimiter()
    controller = Controller("pods", reconcile, max_retries=2, limiter=limiter, observer=observer)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(100)
    assert reconcile.gaps() == [0.005, 0.01, 60, 0.005]  # the first delay again
    statistics = controller.statistics()
    assert (statistics.failed, statistics.succeeded, statistics.requeued, statistics.dropped) == (3, 2, 1, 0)
    (line,) = [each for each in caplog.records if "no certificate yet" in each.getMessage()]
    assert (line.levelname, line.getMessage()) == (
        "DEBUG",
        "controller pods: reconcile of default/a: RetryAfter: no certificate yet",
    )


@pytest.mark.parametrize("delay", [-1, math.inf, math.nan])
def test_a_delay_of_retry_after_is_a_finite_number_of_seconds(delay: float) -> None:
    with pytest.raises(ValueError, match="finite number"):
        RetryAfter(delay)
    assert str(RetryAfter(1.5)) == "again after 1.5 s"


def test_an_observer_of_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match="observer"):
        Controller("pods", Reconcile(), observer=object())  # type: ignore[arg-type]  # the test is that this fails


@pytest.mark.parametrize("name", ["began", "ended", "added", "finished"])
def test_an_observer_with_an_async_method_is_refused(name: str) -> None:
    async def method(self: Observer, *args: object, **named: object) -> None:
        raise AssertionError

    observer = type("Async", (Observer,), {name: method})()
    with pytest.raises(TypeError, match=rf"observer\.{name} must not be async"):
        Controller("pods", Reconcile(), observer=observer)
