"""What happens when a reconcile, a controller or a queue fails or is cancelled, and what the log says.

docs/contract.rst describes the same; tests/leaderelection/test_lease_claim.py tests leader election.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.support.controllers import Reconcile, Step, leaves, pods, watch_and_start
from trioformer.controller import Controller, Request, RequeueAfter, RetryAfter, TerminalError
from trioformer.workqueue import ItemExponentialFailureRateLimiter, RateLimitingQueue, WorkQueue

FAILED = "ERROR controller pods: reconcile of default/a failed"
RETRY = "retrying in 0.005 s (failure 1 in a row)"
TIMED_OUT = f"{FAILED}, {RETRY}: ReconcileDeadlineError: the reconcile was cancelled at its deadline, after 30 s"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return the lines in the log, except those of starts."""
    caplog.set_level(logging.INFO, "trioformer")

    def lines() -> list[str]:
        records = [each for each in caplog.records if each.name in ("trioformer.controller", "trioformer.workqueue")]
        messages = [f"{record.levelname} {record.getMessage()}" for record in records]
        assert all("\n" not in message for message in messages)
        return [message for message in messages if ": started, workers" not in message]

    return lines


# --- ends of a reconcile ----------------------------------------------------------------------------------------------


async def fail_in_a_nursery(request: Request) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        raise OSError("disk full")


async def ask_in_a_nursery(request: Request) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(ask, 60)
        nursery.start_soon(ask, 30)


async def ask_and_fail_in_a_nursery(request: Request) -> None:
    # Made by hand: two tasks of a nursery would fail in either order.
    raise ExceptionGroup("of a nursery", [RetryAfter(60, "the certificate is not issued"), OSError("disk full")])


async def ask(delay: float) -> None:
    raise RetryAfter(delay, "the certificate is not issued")


async def cancel_itself(request: Request) -> None:
    with trio.move_on_after(3):
        await trio.sleep_forever()


async def ignore_cancellation_for_a_while(request: Request) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(42)
    await trio.sleep_forever()


def is_not_async(request: Request) -> None:
    """Return None, and nothing to await."""


async def return_another_type(request: Request) -> bool:
    return True


@attrs.frozen
class Outcome:
    """The first steps of a reconcile, which then succeeds; the lines in the log, and the seconds between its calls."""

    script: list[Step]
    lines: list[str]
    gaps: list[float]


RECONCILES = {
    "it returns": Outcome([None], [], []),
    "it returns RequeueAfter": Outcome([RequeueAfter(60)], [], [60]),
    "it raises RetryAfter": Outcome([RetryAfter(60)], [], [60]),
    "it raises RetryAfter in a nursery": Outcome([ask_in_a_nursery], [], [30]),
    "it raises RetryAfter and an error in a nursery": Outcome(
        [ask_and_fail_in_a_nursery],
        [f"{FAILED}, {RETRY}: RetryAfter: the certificate is not issued; OSError: disk full"],
        [0.005],
    ),
    "it cancels a scope of its own": Outcome([cancel_itself], [], []),
    "it raises": Outcome([OSError("disk full")], [f"{FAILED}, {RETRY}: OSError: disk full"], [0.005]),
    "it raises in a nursery": Outcome(
        [fail_in_a_nursery],
        [f"{FAILED}, {RETRY}: OSError: disk full"],
        [0.005],
    ),
    "it raises a TerminalError": Outcome(
        [TerminalError("no such zone")],
        [f"{FAILED}, not retrying (terminal error): TerminalError: no such zone"],
        [],
    ),
    "it raises too often": Outcome(
        [OSError(), OSError(), OSError()],
        [
            f"{FAILED}, {RETRY}: OSError",
            f"{FAILED}, giving up (failure 3 in a row): OSError",
        ],
        [0.005, 0.01],
    ),
    "it exceeds its deadline": Outcome(
        [math.inf],
        [TIMED_OUT],
        [30.005],
    ),
    "it exceeds its deadline and ignores the cancellation": Outcome(
        [ignore_cancellation_for_a_while],
        [f"{TIMED_OUT}, and ended 12.0 s later"],
        [42.005],
    ),
    "it returns another type": Outcome(
        [return_another_type],  # type: ignore[list-item]
        [f"{FAILED}, {RETRY}: TypeError: reconcile must return None or RequeueAfter, not bool"],
        [0.005],
    ),
}


@pytest.mark.parametrize("what", RECONCILES)
async def test_the_controller_continues_however_a_reconcile_ends(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]], what: str
) -> None:
    outcome = RECONCILES[what]
    informer, reconcile = pods("a"), Reconcile(outcome.script)
    limiter = ItemExponentialFailureRateLimiter()  # without jitter
    controller = Controller("pods", reconcile, max_retries=2, reconcile_deadline=30, limiter=limiter)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert log() == outcome.lines
    assert reconcile.gaps() == outcome.gaps
    assert controller.statistics().phase == "running"
    assert controller.add(Request("default", "b"))
    await trio.sleep(1)
    assert reconcile.done[-1] == "b"


# --- ends of a controller ---------------------------------------------------------------------------------------------

STOPPING = "INFO controller pods: stopping; 0 requests running, 0 pending, 0 delayed"
ENDED = "INFO controller pods: ended"


class StopEverything(BaseException):
    """A BaseException that is not an Exception."""


def fail_on(request: Request) -> list[Request]:
    raise KeyError("no such index")


FATAL = {
    "a reconcile raises a BaseException": (
        {"reconcile": Reconcile([StopEverything("now")])},
        "StopEverything: now in controller pods, on default/a",
        "0 requests running, 1 pending, 0 delayed",
    ),
    "an enqueue function fails": (
        {"enqueue": fail_on},
        "KeyError: 'no such index' in controller pods, on Added Pod default/a",
        "0 requests running, 0 pending, 0 delayed",
    ),
}


async def test_a_reconcile_that_is_not_async_is_named_in_the_log(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    wrong: Any = lambda request: is_not_async(request)  # noqa: E731  # what it returns is known when it is called
    informer, controller = pods("a"), Controller("pods", wrong, max_retries=0)
    await watch_and_start(nursery, controller, informer)
    await trio.testing.wait_all_tasks_blocked()
    assert log() == [f"{FAILED}, giving up (failure 1 in a row): TypeError: reconcile must be an async function"]


@pytest.mark.parametrize("what", FATAL)
async def test_a_controller_that_fails_logs_the_error_and_the_object(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]], what: str
) -> None:
    arguments, cause, left = FATAL[what]
    arguments = {"reconcile": Reconcile(), **arguments}
    enqueue = arguments.pop("enqueue", None)
    informer, controller = pods("a"), Controller("pods", **arguments)
    controller.watch(informer, **({} if enqueue is None else {"enqueue": enqueue}))
    await nursery.start(informer.run)
    with pytest.raises(BaseExceptionGroup) as caught:
        await controller.run()
    assert len(leaves(caught.value)) == 1
    assert [line for line in log() if "reconcile of" not in line] == [
        f"ERROR controller pods: failed: {cause}",
        f"INFO controller pods: stopping; {left}",
        ENDED,
    ]


async def clean_up_badly(request: Request) -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise OSError("cannot be undone")


async def clean_up_badly_in_its_nursery(request: Request) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(clean_up_badly, request)


@pytest.mark.parametrize("clean_up", [clean_up_badly, clean_up_badly_in_its_nursery])
async def test_an_error_during_cancellation_is_logged_and_not_raised(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]], clean_up: Step
) -> None:
    informer, controller = pods("a"), Controller("pods", Reconcile([clean_up]))
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    failure, *rest = log()
    assert failure.startswith(f"{FAILED}, not retrying (the controller is cancelled): ")
    assert rest == [STOPPING, ENDED]


async def finish_in_a_shield(request: Request) -> None:
    with trio.CancelScope(shield=True):
        await trio.testing.wait_all_tasks_blocked(0.01)


@pytest.mark.parametrize("end", [clean_up_badly, finish_in_a_shield])
async def test_a_worker_that_was_cancelled_takes_no_further_request(
    nursery: trio.Nursery, autojump_clock: MockClock, end: Step
) -> None:
    informer, reconcile = pods(*(f"p{n}" for n in range(30))), Reconcile([end] * 30)
    controller = Controller("pods", reconcile)
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        await inner.start(controller.run)
        await trio.testing.wait_all_tasks_blocked()
        inner.cancel_scope.cancel()  # within the millisecond in which the worker takes keys without a checkpoint
    assert len(reconcile.calls) == 1


async def test_a_controller_that_is_cancelled_logs_the_cancelled_reconciles(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    informer, controller = pods("a", "b", "c"), Controller("pods", Reconcile([math.inf, math.inf]), workers=2)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    stopping, ended = log()
    assert stopping == "INFO controller pods: stopping; 0 requests running, 3 pending, 0 delayed"
    assert ended in (
        f"{ENDED}; cancelled reconciles of {each}" for each in ("default/a, default/b", "default/b, default/a")
    )


async def test_a_reconcile_that_cancels_the_scope_of_its_controller_ends_it(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    async def cancel(request: Request) -> None:
        scope.cancel()
        await trio.sleep_forever()

    informer, controller = pods("a"), Controller("pods", Reconcile([cancel]))
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.CancelScope() as scope:
        await controller.run()
    assert log()[-1] == f"{ENDED}; cancelled reconciles of default/a"


@pytest.mark.parametrize("how", ["stopped", "cancelled"])
async def test_a_reconcile_that_delays_the_end_is_logged_every_30_seconds(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]], how: str
) -> None:
    async def shielded(request: Request) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(75)

    informer, controller = pods("a"), Controller("pods", Reconcile([shielded]))
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            await inner.start(controller.run)
            await trio.sleep(5)
            if how == "stopped":
                await controller.stop()
            else:
                scope.cancel()
    assert trio.current_time() == 75
    assert [line for line in log() if line.startswith("WARNING")] == [
        "WARNING controller pods: waiting to end: reconcile of default/a, running for 35.0 s",
        "WARNING controller pods: waiting to end: reconcile of default/a, running for 65.0 s",
    ]


async def test_a_stop_that_is_cancelled_logs_the_reconciles_that_it_cancels(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    informer, controller = pods("a", "b", "c"), Controller("pods", Reconcile([2.0, math.inf]), workers=2)
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        inner.start_soon(controller.run)
        await trio.sleep(1)
        with trio.move_on_after(10):
            await controller.stop()
    assert log() == [
        "INFO controller pods: stopping; 2 requests running, 1 pending, 0 delayed",
        "WARNING controller pods: stop cancelled; cancelling reconcile of default/b, running for 11.0 s",
        f"{ENDED}; cancelled reconciles of default/b",
    ]


async def test_a_controller_that_is_cancelled_while_it_stops_ends_immediately(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    informer, controller = pods("a"), Controller("pods", Reconcile([math.inf]))
    controller.watch(informer)
    await nursery.start(informer.run)
    async with trio.open_nursery() as inner:
        inner.start_soon(controller.run)
        await trio.sleep(1)
        nursery.start_soon(controller.stop)
        await trio.sleep(1)
        inner.cancel_scope.cancel()
    assert trio.current_time() == 2
    assert log() == [
        "INFO controller pods: stopping; 1 requests running, 0 pending, 0 delayed",
        f"{ENDED}; cancelled reconciles of default/a",
    ]


# --- queues -----------------------------------------------------------------------------------------------------------


async def test_draining_a_queue_under_load_processes_pending_keys_and_logs_dropped_ones(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    async def work(key: str) -> None:
        await trio.sleep(10)
        done.append(key)

    done: list[str] = []
    queue = WorkQueue[str](name="pods")
    nursery.start_soon(partial(queue.process, work, workers=2))
    for key in "abc":
        queue.add(key)
    await trio.sleep(1)
    queue.add("a")  # while it is processed
    queue.add_after("later", 5)
    assert log() == []
    assert (await queue.drain()).delayed == ("later",)
    assert sorted(done) == ["a", "a", "b", "c"]
    assert not queue.add("d")
    assert log() == ["INFO queue pods: shut down; 2 keys pending, 2 processing, 1 delayed dropped"]


async def test_draining_an_empty_queue_ends_its_workers_and_logs_nothing(
    autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    queue = WorkQueue[float](name="pods")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(queue.process, trio.sleep_until, workers=3))
        await trio.sleep(1)
        assert queue.statistics().tasks_waiting == 3
        assert not await queue.drain()
    assert trio.current_time() == 1
    assert log() == []


async def test_a_drain_waits_for_keys_that_no_worker_has_taken(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def work(key: str) -> None:
        await trio.sleep(1)

    async def start_later() -> None:
        await trio.sleep(10)
        await queue.process(work)

    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    nursery.start_soon(start_later)
    assert not await queue.drain()
    assert trio.current_time() == 12


async def test_a_drain_and_workers_that_are_cancelled_log_what_is_left(
    autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    async def work(key: str) -> None:
        await trio.sleep_forever()

    queue = WorkQueue[str](name="pods")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.process, work)
        queue.add("a")
        queue.add("b")
        await trio.sleep(1)
        with trio.move_on_after(10):
            await queue.drain()
        nursery.cancel_scope.cancel()
    left = queue.remaining()
    assert (left.ready, left.unfinished) == (("b",), ("a",))
    assert log()[1:] == [
        "WARNING queue pods: drain cancelled; 1 keys pending, 1 processing",
        "WARNING queue pods: 'a' is unfinished, and is not added again after the shutdown",
    ]


async def test_a_key_that_fails_after_the_shutdown_is_logged_and_not_retried(
    autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    queue = RateLimitingQueue[str](name="pods")
    queue.add("a")
    with pytest.raises(OSError, match="disk full"):  # noqa: PT012  # the block is what fails
        async with queue.take():
            queue.shut_down()
            raise OSError("disk full")
    assert queue.remaining().unfinished == ("a",)
    assert log()[1:] == ["WARNING queue pods: 'a' is unfinished, and is not added again after the shutdown"]


async def test_a_worker_that_is_cancelled_puts_its_key_back_and_logs_nothing(
    autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    queue = RateLimitingQueue[str](name="pods")
    queue.add("a", priority=5)
    with trio.move_on_after(1):
        async with queue.take():
            await trio.sleep_forever()
    assert queue.remaining().ready == ("a",)
    assert queue.statistics().depth_by_priority == {5: 1}
    assert queue.num_requeues("a") == 0
    assert log() == []


async def test_a_queue_without_a_name_logs_nothing(autojump_clock: MockClock, log: Callable[[], list[str]]) -> None:
    queue = RateLimitingQueue[str]()
    queue.add("a")
    queue.add("b")
    with pytest.raises(OSError, match="disk full"):  # noqa: PT012  # the block is what fails
        async with queue.take():
            with trio.move_on_after(1):
                await queue.drain()
            raise OSError("disk full")
    assert log() == []


# --- a process that was suspended ------------------------------------------------------------------------------------


async def test_after_a_suspension_delayed_keys_become_due_once_and_in_order(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    queue, taken = RateLimitingQueue[str](ItemExponentialFailureRateLimiter(1, 1_000)), list[tuple[str, float]]()

    async def work(key: str) -> None:
        taken.append((key, trio.current_time()))

    nursery.start_soon(queue.process, work)
    await trio.sleep(1)
    for key, delay in {"c": 30, "a": 10, "b": 20, "d": 90}.items():
        queue.add_after(key, delay)
    queue.add_rate_limited("a")
    autojump_clock.jump(60)  # SIGSTOP, and SIGCONT a minute later; or a suspended laptop
    await trio.testing.wait_all_tasks_blocked()
    assert taken == [("a", 61), ("b", 61), ("c", 61)]
    await trio.sleep(100)
    assert taken[3:] == [("d", 91)]


async def test_after_a_suspension_a_reconcile_times_out_and_is_retried(
    nursery: trio.Nursery, autojump_clock: MockClock, log: Callable[[], list[str]]
) -> None:
    informer, reconcile = pods("a"), Reconcile([20.0, 20.0])
    controller = Controller("pods", reconcile, reconcile_deadline=30, limiter=ItemExponentialFailureRateLimiter())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(10)
    autojump_clock.jump(60)
    await trio.sleep(50)
    assert (reconcile.cancelled, reconcile.done) == (["a"], ["a"])
    assert log() == [f"{TIMED_OUT}, and ended 40.0 s later"]
