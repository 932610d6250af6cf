"""What becomes of a controller and of a queue when something goes wrong, and the line in the log that says so.

docs/contract.rst has the same in words; tests/leaderelection/test_lease_claim.py has the leaders.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from tests.support.controllers import Reconcile, Step, leaves, pods, start
from trioformer.controller import Controller, Request, RequeueAfter, TerminalError
from trioformer.workqueue import ItemExponentialFailureRateLimiter, RateLimitingQueue, WorkQueue

FAILED = "ERROR controller pods: reconcile of default/a failed"
AGAIN = "to be tried again in 0.005 s, after failure number 1 in a row"
LATE = f"{FAILED}, {AGAIN}: ReconcileDeadlineError: the reconcile was cancelled at its deadline, after 30 s"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What is logged for users, and not that something began."""
    caplog.set_level(logging.INFO, "trioformer")

    def lines() -> list[str]:
        records = [each for each in caplog.records if each.name in ("trioformer.controller", "trioformer.workqueue")]
        told = [f"{record.levelname} {record.getMessage()}" for record in records]
        assert all("\n" not in line for line in told)
        return [line for line in told if ": started, workers" not in line]

    return lines


# --- how a reconcile ends ---------------------------------------------------------------------------------------------


async def in_its_nursery(request: Request) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        raise OSError("disk full")


async def by_its_own_scope(request: Request) -> None:
    with trio.move_on_after(3):
        await trio.sleep_forever()


async def for_a_while_in_spite_of(request: Request) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(42)
    await trio.sleep_forever()


async def of_the_wrong_type(request: Request) -> bool:
    return True


@attrs.frozen
class Outcome:
    """What a reconcile does first, before it succeeds; what the log says then, and when it was called again."""

    script: list[Step]
    lines: list[str]
    gaps: list[float]


RECONCILES = {
    "it returns": Outcome([None], [], []),
    "it wants to look again": Outcome([RequeueAfter(60)], [], [60]),
    "it gives up something by itself": Outcome([by_its_own_scope], [], []),
    "it raises": Outcome([OSError("disk full")], [f"{FAILED}, {AGAIN}: OSError: disk full"], [0.005]),
    "it raises in a nursery": Outcome(
        [in_its_nursery],
        [f"{FAILED}, {AGAIN}: ExceptionGroup: Exceptions from Trio nursery (1 sub-exception)"],
        [0.005],
    ),
    "it raises what would happen again": Outcome(
        [TerminalError("no such zone")],
        [f"{FAILED}, not tried again, since the error is terminal: TerminalError: no such zone"],
        [],
    ),
    "it raises too often": Outcome(
        [OSError(), OSError(), OSError()],
        [
            f"{FAILED}, {AGAIN}: OSError",
            f"{FAILED}, to be tried again in 0.01 s, after failure number 2 in a row: OSError",
            f"{FAILED}, given up, since it is failure number 3 in a row: OSError",
        ],
        [0.005, 0.01],
    ),
    "it is late": Outcome(
        [math.inf],
        [LATE],
        [30.005],
    ),
    "it is late and ignores that": Outcome(
        [for_a_while_in_spite_of],
        [f"{LATE}, and ended 12.0 s later"],
        [42.005],
    ),
    "it returns something else": Outcome(
        [of_the_wrong_type],  # type: ignore[list-item]
        [f"{FAILED}, {AGAIN}: TypeError: a reconcile must return None or RequeueAfter, not bool"],
        [0.005],
    ),
}


@pytest.mark.parametrize("what", RECONCILES)
async def test_however_a_reconcile_ends_the_controller_goes_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]], what: str
) -> None:
    outcome = RECONCILES[what]
    informer, reconcile = pods("a"), Reconcile(outcome.script)
    controller = Controller("pods", reconcile, max_retries=2, reconcile_deadline=30)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert log() == outcome.lines
    assert reconcile.gaps() == outcome.gaps
    assert controller.statistics().phase == "running"
    assert controller.add(Request("default", "b"))
    await trio.sleep(1)
    assert reconcile.done[-1] == "b"


# --- how a controller ends --------------------------------------------------------------------------------------------

LEFT_NOTHING = "INFO controller pods: stopping; 0 running, 0 waiting and 0 delayed requests are left"
ENDED = "INFO controller pods: ended"


class StopEverything(BaseException):
    """No Exception."""


def fail_on(request: Request) -> list[Request]:
    raise KeyError("no such index")


async def drop(request: Request, error: Exception) -> None:
    raise ZeroDivisionError


FATAL = {
    "a reconcile raises what is no Exception": (
        {"reconcile": Reconcile([StopEverything("now")])},
        "StopEverything: now in controller pods, on default/a",
        "0 running, 1 waiting and 0 delayed",
    ),
    "an enqueue function fails": (
        {"enqueue": fail_on},
        "KeyError: 'no such index' in controller pods, on Added Pod default/a",
        "0 running, 0 waiting and 0 delayed",
    ),
    "on_dropped fails": (
        {"reconcile": Reconcile([OSError()]), "max_retries": 0, "on_dropped": drop},
        "ZeroDivisionError in on_dropped of controller pods, on default/a",
        "0 running, 0 waiting and 1 delayed",
    ),
}


@pytest.mark.parametrize("what", FATAL)
async def test_a_controller_that_fails_says_with_what_and_on_what(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]], what: str
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
        f"ERROR controller pods: fails with {cause}",
        f"INFO controller pods: stopping; {left} requests are left",
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
async def test_what_fails_as_it_is_cancelled_is_told_and_spares_whoever_cancelled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]], clean_up: Step
) -> None:
    informer, controller = pods("a"), Controller("pods", Reconcile([clean_up]))
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    failure, *rest = log()
    assert failure.startswith(f"{FAILED}, not tried again, since the controller is cancelled: ")
    assert rest == [LEFT_NOTHING, ENDED]


async def test_a_controller_that_is_cancelled_says_which_reconciles_it_broke_off(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
) -> None:
    informer, controller = pods("a", "b", "c"), Controller("pods", Reconcile([math.inf, math.inf]), workers=2)
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.move_on_after(10):
        await controller.run()
    stopping, ended = log()
    assert stopping == "INFO controller pods: stopping; 0 running, 3 waiting and 0 delayed requests are left"
    assert ended in (
        f"{ENDED}, in the middle of reconciles of {each}" for each in ("default/a, default/b", "default/b, default/a")
    )


async def test_a_reconcile_that_cancels_what_the_controller_runs_in_ends_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
) -> None:
    async def cancel(request: Request) -> None:
        scope.cancel()
        await trio.sleep_forever()

    informer, controller = pods("a"), Controller("pods", Reconcile([cancel]))
    controller.watch(informer)
    await nursery.start(informer.run)
    with trio.CancelScope() as scope:
        await controller.run()
    assert log()[-1] == f"{ENDED}, in the middle of reconciles of default/a"


@pytest.mark.parametrize("way", ["stopped", "cancelled"])
async def test_a_reconcile_that_holds_up_the_end_is_named_every_half_minute(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]], way: str
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
            if way == "stopped":
                await controller.stop()
            else:
                scope.cancel()
    assert trio.current_time() == 75
    assert [line for line in log() if line.startswith("WARNING")] == [
        "WARNING controller pods waits to end: reconcile of default/a, which has run for 35.0 s",
        "WARNING controller pods waits to end: reconcile of default/a, which has run for 65.0 s",
    ]


async def test_when_the_patience_of_a_stop_ends_the_log_names_the_reconciles_that_are_cancelled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
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
        "INFO controller pods: stopping; 2 running, 1 waiting and 0 delayed requests are left",
        "WARNING controller pods: cancelled as it stops: reconcile of default/b, which has run for 11.0 s",
        f"{ENDED}, in the middle of reconciles of default/b",
    ]


async def test_a_controller_that_is_cancelled_while_it_stops_breaks_off_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
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
        "INFO controller pods: stopping; 1 running, 0 waiting and 0 delayed requests are left",
        f"{ENDED}, in the middle of reconciles of default/a",
    ]


# --- queues -----------------------------------------------------------------------------------------------------------


async def test_a_queue_that_is_shut_down_under_load_works_off_what_waits_and_says_what_it_drops(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
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
    queue.add("a")  # while it is in work
    queue.add_after("later", 5)
    assert log() == []
    assert (await queue.drain()).delayed == ("later",)
    assert sorted(done) == ["a", "a", "b", "c"]
    assert not queue.add("d")
    assert log() == ["INFO queue pods: shut down; 2 keys pending, 2 processing, 1 delayed dropped"]


async def test_a_queue_that_is_shut_down_with_nothing_in_it_dismisses_its_workers_quietly(
    autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
) -> None:
    queue = WorkQueue[float](name="pods")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(queue.process, trio.sleep_until, workers=3))
        await trio.sleep(1)
        assert queue.statistics().tasks_waiting == 3
        assert not await queue.drain()
    assert trio.current_time() == 1
    assert log() == []


async def test_a_drain_waits_for_keys_that_nobody_has_begun_with(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(key: str) -> None:
        await trio.sleep(1)

    async def come_late() -> None:
        await trio.sleep(10)
        await queue.process(work)

    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    nursery.start_soon(come_late)
    assert not await queue.drain()
    assert trio.current_time() == 12


async def test_a_drain_that_takes_too_long_says_what_is_left_and_so_do_workers_that_are_cancelled_then(
    autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
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
        "WARNING queue pods: 'a' is unfinished and not added again after the shutdown",
    ]


async def test_what_fails_after_the_shutdown_is_not_tried_again_and_named(
    autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
) -> None:
    queue = RateLimitingQueue[str](name="pods")
    queue.add("a")
    with pytest.raises(OSError, match="disk full"):  # noqa: PT012  # the block is what fails
        async with queue.take():
            queue.shut_down()
            raise OSError("disk full")
    assert queue.remaining().unfinished == ("a",)
    assert log()[1:] == ["WARNING queue pods: 'a' is unfinished and not added again after the shutdown"]


async def test_a_worker_that_is_cancelled_gives_its_key_back_and_nothing_need_be_said(
    autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
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


async def test_a_queue_without_a_name_logs_nothing(
    autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
) -> None:
    queue = RateLimitingQueue[str]()
    queue.add("a")
    queue.add("b")
    with pytest.raises(OSError, match="disk full"):  # noqa: PT012  # the block is what fails
        async with queue.take():
            with trio.move_on_after(1):
                await queue.drain()
            raise OSError("disk full")
    assert log() == []


# --- a process that stood still ---------------------------------------------------------------------------------------


async def test_after_a_process_stood_still_delayed_keys_come_at_once_in_their_order_and_once_each(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    queue, taken = RateLimitingQueue[str](ItemExponentialFailureRateLimiter(1, 1_000)), list[tuple[str, float]]()

    async def work(key: str) -> None:
        taken.append((key, trio.current_time()))

    nursery.start_soon(queue.process, work)
    await trio.sleep(1)
    for key, delay in {"c": 30, "a": 10, "b": 20, "d": 90}.items():
        queue.add_after(key, delay)
    queue.add_rate_limited("a")
    autojump_clock.jump(60)  # SIGSTOP and SIGCONT a minute later, or a laptop that slept
    await trio.testing.wait_all_tasks_blocked()
    assert taken == [("a", 61), ("b", 61), ("c", 61)]
    await trio.sleep(100)
    assert taken[3:] == [("d", 91)]


async def test_after_a_process_stood_still_a_reconcile_is_late_and_tried_again_like_any_other(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, log: Callable[[], list[str]]
) -> None:
    informer, reconcile = pods("a"), Reconcile([20.0, 20.0])
    controller = Controller("pods", reconcile, reconcile_deadline=30)
    controller.watch(informer)
    await start(nursery, controller, informer)
    await trio.sleep(10)
    autojump_clock.jump(60)
    await trio.sleep(50)
    assert (reconcile.cancelled, reconcile.done) == (["a"], ["a"])
    assert log() == [f"{LATE}, and ended 40.0 s later"]
